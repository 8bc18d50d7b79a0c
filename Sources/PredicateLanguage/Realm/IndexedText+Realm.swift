package import RelayModel

// What comparisons under Realm's rules see of values, for an index that wants to look up what
// they would find.

extension IndexedText {
    /// A text, or data, as Realm's comparisons search it: code points, or bytes taken for code
    /// points, folded one by one where case is ignored.
    package static func realmText(_ value: FieldValue, ignoringCase: Bool) -> String {
        var scalars = String.UnicodeScalarView()
        for unit in RealmText(value, ignoringCase ? .ignoringCase : []).units {
            // Units are code points of texts or bytes.
            if let scalar = Unicode.Scalar(unit) { scalars.append(scalar) }
        }
        return String(scalars)
    }
}

extension FieldValue {
    /// The value that a path of plain member names leads to, as a comparison under Realm's rules
    /// sees it: a list where the path passes one.
    package func realmValue(at names: [String]) -> FieldValue {
        let path = RecordPredicate.RecordPath(names.map { .member($0) })
        // Plain members never have an evaluation error.
        return (try? RealmEvaluator(record: self).operand(.path(path)).fieldValue) ?? .null
    }

    /// The record name of the link that an object with these members may stand for by Realm's
    /// rules.
    package static func linkName(_ members: RecordFields) -> String? {
        (members["recordName"] ?? members["_id"])?.primaryKeyText
    }
}
