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

    /// What shows in the condition itself.
    package var ownWarnings: [PredicateWarning] {
        var warnings = comparisons.compactMap(Self.foreignWildcard)
        if case .constant = root { return warnings }
        if Contradiction.isIn(root) {
            warnings.append(
                PredicateWarning(
                    .neverTrue, "no record can satisfy this condition",
                    hint: "alternatives are joined by OR"))
        } else if case .or(let branches) = root {
            for branch in branches where Contradiction.isIn(branch) {
                let text = RecordPredicate(branch).canonicalText
                warnings.append(
                    PredicateWarning(
                        .neverTrue,
                        "no record can satisfy this part of the condition: "
                            + (text.utf8.count > 100 ? "\(text.prefix(80))…" : text)))
            }
        }
        return warnings
    }

    /// SQL's `%` in a pattern without a wildcard of LIKE's own.
    private static func foreignWildcard(_ comparison: Comparison) -> PredicateWarning? {
        guard comparison.comparator == .like,
            case .constant(.string(let pattern)) = comparison.right,
            pattern.contains("%"), !pattern.contains("*"), !pattern.contains("?")
        else { return nil }
        let meant = pattern.replacing("%", with: "*")
        return PredicateWarning(
            .foreignWildcard,
            "% is a sign like any other in a pattern of LIKE; * and ? stand for "
                + "others",
            hint: meant.utf8.count > 60 ? nil : "did you mean LIKE \"\(meant)\"?",
            at: comparison.rightSpan)
    }
}
