package import RelayModel

/// Something in a condition that is allowed and was probably not meant.
package struct PredicateWarning: Sendable, Hashable {
    /// What is doubted.
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        /// No change of this record type has come, and the schema does not have it.
        case unknownRecordType
        /// No record of the type had this field.
        case unknownField
        /// The field had values of another kind.
        case otherKind
        /// A pattern has the wildcards of SQL.
        case foreignWildcard
        /// No record can satisfy it.
        case neverTrue
        /// It asks for the record before a change, which does not come.
        case noBeforeImage
        /// A date was probably given in another unit.
        case unlikelyDate
    }

    /// What is doubted.
    package var kind: Kind
    /// What is the matter, as a sentence for people.
    package var reason: String
    /// What was probably meant, or what helps.
    package var hint: String?
    /// The place in the text of the condition; of no length where there is none.
    package var span: SourceSpan

    /// Doubts what stands at `span`.
    package init(
        _ kind: Kind, _ reason: String, hint: String? = nil, at span: SourceSpan = .none
    ) {
        self.kind = kind
        self.reason = reason
        self.hint = hint
        self.span = span
    }

    /// The wire form.
    package var json: JSONObject {
        var object: JSONObject = [
            "warning": .string(kind.rawValue), "reason": .string(reason),
        ]
        object["hint"] = hint.map(JSONValue.string)
        if span.length > 0 {
            object["offset"] = .integer(Int64(span.offset))
            object["length"] = .integer(Int64(span.length))
        }
        return object
    }
}

extension RecordPredicate {
    /// The comparisons that the predicate consists of, those within expressions left out.
    package var comparisons: [Comparison] {
        var found: [Comparison] = []
        Self.collect(root, into: &found)
        return found
    }

    private static func collect(_ node: Node, into found: inout [Comparison]) {
        switch node {
        case .constant: break
        case .comparison(let comparison): found.append(comparison)
        case .and(let nodes), .or(let nodes): for node in nodes { collect(node, into: &found) }
        case .not(let inner): collect(inner, into: &found)
        }
    }

    /// What shows in the condition itself, of records that keep to `schema`, which somebody wrote
    /// down; `nil` where nobody did.
    func ownWarnings(
        by schema: RecordSchema?, in form: PredicateForm, _ preparation: Preparation
    ) -> [PredicateWarning] {
        let all = comparisons
        var warnings = all.compactMap(Self.foreignWildcard)
        warnings += all.compactMap(Self.quotedField)
        warnings += all.compactMap(Self.unlikelyDate)
        let effort = ContradictionEffort()
        if let records = Self.neverTrue(root, by: schema, preparation, effort) {
            warnings.append(
                PredicateWarning(
                    .neverTrue, "\(records) can satisfy this condition",
                    hint: neverTrueHint(in: form)))
        } else if case .or(let branches) = root {
            for branch in branches {
                guard let records = Self.neverTrue(branch, by: schema, preparation, effort) else {
                    continue
                }
                let text = RecordPredicate(branch).canonicalText
                warnings.append(
                    PredicateWarning(
                        .neverTrue,
                        "\(records) can satisfy this part of the condition: "
                            + (text.utf8.count > 100 ? "\(text.prefix(80))…" : text)))
            }
        }
        return warnings
    }

    /// Which records can never satisfy a part, in words; `nil` where one might.
    private static func neverTrue(
        _ node: Node, by schema: RecordSchema?, _ preparation: Preparation,
        _ effort: ContradictionEffort
    ) -> String? {
        func isNever(_ schema: RecordSchema?) -> Bool {
            Contradiction(schema: schema, preparation: preparation, effort: effort).isIn(node)
        }
        if isNever(nil) { return "no record" }
        guard let schema, isNever(schema) else { return nil }
        return "no record that keeps to the schema"
    }

    /// What probably was not thought of.
    private func neverTrueHint(in form: PredicateForm) -> String? {
        if comparisons.contains(where: Contradiction.isOfOneself) {
            return "__defaultOwner__ is oneself in CloudKit's own classes only: "
                + "write the user's record name"
        }
        if comparisons.contains(where: WholeRecord.isMistaken) {
            return "SELF is the whole record: which one it is says recordName, or recordID"
        }
        let isEmpty = comparisons.contains { comparison in
            [.contains, .beginsWith, .endsWith].contains(comparison.comparator)
                && comparison.rules == .apple && comparison.right == .constant(.string(""))
        }
        if isEmpty { return "an empty text is part of no text" }
        let isOfEmptyList = comparisons.contains { comparison in
            guard comparison.comparator == .in,
                case .list(let values)? = comparison.right.literal
            else { return false }
            return values.isEmpty
        }
        if isOfEmptyList { return "nothing is in an empty list" }
        if comparisons.contains(where: CalculatedKind.isMistaken) {
            return "one side is calculated, and never of the kind that is asked for"
        }
        let sides = comparisons.flatMap { [$0.left, $0.right] }
        if sides.contains(where: Contradiction.isBeforeFirst) {
            return "the first element is [0] or [FIRST], and the last one [LAST]"
        }
        if sides.contains(where: Contradiction.isByZero) { return "it is divided by zero" }
        if comparisons.contains(where: LetterCase.isMistaken) {
            return "capitals are no small letters: to ignore the case, write ==[c]"
        }
        switch root {
        case .and, .or: return form.hintForAlternatives
        case .constant, .comparison, .not: return nil
        }
    }

    /// A field in quotes, as SQL writes it: a text that is compared with another constant.
    private static func quotedField(_ comparison: Comparison) -> PredicateWarning? {
        guard case .string(let name)? = comparison.left.literal,
            comparison.right.literal != nil, isName(name)
        else { return nil }
        return PredicateWarning(
            .unknownField, "a text is compared here with another constant, and no field is",
            hint: "a field stands without quotes: \(name)", at: comparison.leftSpan)
    }

    /// A date of what are seconds or milliseconds since 1970, taken for the other.
    private static func unlikelyDate(_ comparison: Comparison) -> PredicateWarning? {
        let sides = [
            (comparison.left.literal, comparison.leftSpan),
            (comparison.right.literal, comparison.rightSpan),
        ]
        for case (let value?, let span) in sides {
            for case .timestamp(let date) in value.elements ?? [value] {
                if secondsAsMilliseconds.contains(date.seconds) {
                    return PredicateWarning(
                        .unlikelyDate, "a date is compared with \(date.iso8601Seconds)",
                        hint: "a TIMESTAMP is in milliseconds since 1970", at: span)
                }
                if date.seconds > latestLikely {
                    return PredicateWarning(
                        .unlikelyDate, "a date is compared with one after the year 9999",
                        hint: "{\"$date\": …} is in seconds since 1970, and CAST(…, \"NSDate\") in "
                            + "seconds since 2001", at: span)
                }
            }
        }
        return nil
    }

    /// What the seconds of 1973 to 2128 are as milliseconds: days of January and February 1970.
    private static let secondsAsMilliseconds: ClosedRange<Int64> = 100_000...5_000_000
    /// The end of the year 9999: milliseconds since 1978, as seconds, are behind it.
    ///
    /// What has no end often has one of 9999, or of 4001, as `Date.distantFuture` is.
    private static let latestLikely: Int64 = 253_402_300_799

    /// Whether a text could be a field's name as well.
    private static func isName(_ text: String) -> Bool {
        guard let first = text.first, text.utf8.count <= 60 else { return false }
        return (first.isLetter || first == "_")
            && text.allSatisfy { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "." }
    }

    /// SQL's `%` in a pattern without a wildcard of LIKE's own.
    private static func foreignWildcard(_ comparison: Comparison) -> PredicateWarning? {
        guard comparison.comparator == .like,
            case .constant(.string(let pattern)) = comparison.right,
            pattern.unicodeScalars.contains("%"),
            !pattern.unicodeScalars.contains(where: { $0 == "*" || $0 == "?" })
        else { return nil }
        let meant = pattern.replacing("%", by: "*")
        return PredicateWarning(
            .foreignWildcard,
            "% is a sign like any other in a pattern of LIKE; * and ? stand for "
                + "others",
            hint: meant.utf8.count > 60 ? nil : "did you mean LIKE \"\(meant)\"?",
            at: comparison.rightSpan)
    }
}

private extension PredicateForm {
    /// How alternatives are written.
    var hintForAlternatives: String {
        switch self {
        case .predicate, .rql: "alternatives are joined by OR"
        case .where: "alternatives are joined by $or"
        case .filterBy:
            "all filters must hold: alternatives are one filter with IN, or a subscription each"
        }
    }
}
