package import RelayModel

/// A part of a condition that is allowed but probably a mistake.
package struct PredicateWarning: Sendable, Hashable {
    /// The kind of a warning.
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        /// No change of this record type has arrived, and the schema does not have the type.
        case unknownRecordType
        /// No record of the type has had this field.
        case unknownField
        /// The field has had values of another kind.
        case otherKind
        /// A pattern contains wildcards of SQL.
        case foreignWildcard
        /// No record can satisfy the condition.
        case neverTrue
        /// The condition needs the record before a change, which the source does not send.
        case noBeforeImage
        /// A date was probably given in another unit.
        case unlikelyDate
    }

    /// The kind of the warning.
    package var kind: Kind
    /// The reason, as a sentence for people.
    package var reason: String
    /// What was probably meant, or what to do instead.
    package var hint: String?
    /// The place in the condition's text.
    ///
    /// Its length is zero if there is none.
    package var span: SourceSpan

    /// Creates a warning about the text at `span`.
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
    /// The comparisons of the predicate, without those nested in expressions.
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

    /// Returns the warnings that follow from the condition itself, without any records.
    ///
    /// `schema` is the declared schema of the record type, or `nil` if there is none.
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

    /// Returns, in words, which records can never satisfy a part, or `nil` if some record might.
    private static func neverTrue(
        _ node: Node, by schema: RecordSchema?, _ preparation: Preparation,
        _ effort: ContradictionEffort
    ) -> String? {
        func isNever(_ schema: RecordSchema?) -> Bool {
            Contradiction(schema: schema, preparation: preparation, effort: effort).isIn(node)
        }
        if isNever(nil) { return "no record" }
        guard let schema, isNever(schema) else { return nil }
        return "no record that follows the schema"
    }

    /// Returns a hint about the most likely mistake.
    private func neverTrueHint(in form: PredicateForm) -> String? {
        if comparisons.contains(where: Contradiction.isOfOneself) {
            return "__defaultOwner__ means the current user only in CloudKit's own classes: "
                + "write the user's record name instead"
        }
        if comparisons.contains(where: WholeRecord.isMistaken) {
            return "SELF is the whole record: to compare its name, write recordName or recordID"
        }
        if comparisons.contains(where: NamelessRecord.isAskedFor) {
            return "every record has a name, which is never nil or empty"
        }
        let isEmpty = comparisons.contains { comparison in
            [.contains, .beginsWith, .endsWith].contains(comparison.comparator)
                && comparison.rules == .apple && comparison.right == .constant(.string(""))
        }
        if isEmpty {
            return "CONTAINS, BEGINSWITH and ENDSWITH are always false with an empty text"
        }
        let isOfEmptyList = comparisons.contains { comparison in
            guard comparison.comparator == .in,
                case .list(let values)? = comparison.right.literal
            else { return false }
            return values.isEmpty
        }
        if isOfEmptyList { return "the list is empty, so no value is in it" }
        if comparisons.contains(where: CalculatedKind.isMistaken) {
            return "the result of a calculated side never has the type that the comparison needs"
        }
        let sides = comparisons.flatMap { [$0.left, $0.right] }
        if sides.contains(where: Contradiction.isBeforeFirst) {
            return "write [0] or [FIRST] for the first element, and [LAST] for the last one"
        }
        if sides.contains(where: Contradiction.isByZero) { return "the condition divides by zero" }
        if comparisons.contains(where: LetterCase.isMistaken) {
            return "upper-case and lower-case letters are never equal: to ignore case, write ==[c]"
        }
        switch root {
        case .and, .or: return form.hintForAlternatives
        case .constant, .comparison, .not: return nil
        }
    }

    /// Warns of a field in quotes, as SQL writes it: a text that is compared with another constant.
    private static func quotedField(_ comparison: Comparison) -> PredicateWarning? {
        guard case .string(let name)? = comparison.left.literal,
            comparison.right.literal != nil, isName(name)
        else { return nil }
        return PredicateWarning(
            .unknownField, "this compares a text with another constant, not with a field",
            hint: "write a field name without quotes: \(name)", at: comparison.leftSpan)
    }

    /// Warns of a date in seconds since 1970 that was read as milliseconds, or the reverse.
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

    /// The dates that result if seconds of the years 1973 to 2128 are read as milliseconds.
    ///
    /// They lie in January and February 1970.
    private static let secondsAsMilliseconds: ClosedRange<Int64> = 100_000...5_000_000
    /// The end of the year 9999.
    ///
    /// Milliseconds since 1978, read as seconds, lie beyond it.
    ///
    /// Dates without an end are often written as one in the year 9999, or in 4001 as
    /// `Date.distantFuture` is.
    private static let latestLikely: Int64 = 253_402_300_799

    /// Returns whether a text could also be the name of a field.
    private static func isName(_ text: String) -> Bool {
        guard let first = text.first, text.utf8.count <= 60 else { return false }
        return (first.isLetter || first == "_")
            && text.allSatisfy { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "." }
    }

    /// Warns of SQL's `%` in a pattern that has no wildcard of LIKE.
    private static func foreignWildcard(_ comparison: Comparison) -> PredicateWarning? {
        guard comparison.comparator == .like,
            case .constant(.string(let pattern)) = comparison.right,
            pattern.unicodeScalars.contains("%"),
            !pattern.unicodeScalars.contains(where: { $0 == "*" || $0 == "?" })
        else { return nil }
        let meant = pattern.replacing("%", by: "*")
        return PredicateWarning(
            .foreignWildcard,
            "% is an ordinary character in a pattern of LIKE; the wildcards are * "
                + "and ?",
            hint: meant.utf8.count > 60 ? nil : "did you mean LIKE \"\(meant)\"?",
            at: comparison.rightSpan)
    }
}

private extension PredicateForm {
    /// A hint on how alternatives are written in this form.
    var hintForAlternatives: String {
        switch self {
        case .predicate, .rql: "join alternatives with OR"
        case .where: "join alternatives with $or"
        case .filterBy:
            "all filters must match: for alternatives, use one filter with IN, or a "
                + "subscription for each"
        }
    }
}
