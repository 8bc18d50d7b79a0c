/// Words of NSPredicate formats: reserved words, and misspelt operators.
enum FormatWords {
    /// Words that are keys only after `#`.
    static let reserved: Set<String> = [
        "AND", "OR", "NOT", "ANY", "ALL", "SOME", "NONE", "IN", "BETWEEN", "LIKE", "MATCHES",
        "CONTAINS", "BEGINSWITH", "ENDSWITH", "TRUE", "FALSE", "YES", "NO", "NULL", "NIL", "SELF",
        "TRUEPREDICATE", "FALSEPREDICATE", "ANYKEY", "SUBQUERY", "FETCH", "CAST",
        "CASEINSENSITIVE", "CI", "UTI-CONFORMS-TO", "UTI-EQUALS", "UNION", "INTERSECT", "MINUS",
        "TERNARY", "FUNCTION", "TOKENMATCHES",
    ]

    /// Returns the operator that a misspelt word means.
    ///
    /// Any other word is the name of a member, which may begin with `@` in JSON.
    static func operatorMeant(by word: String) -> String? {
        if RecordPredicate.CollectionOperator(rawValue: word) != nil { return nil }
        switch word.lowercased() {
        case "size", "length": return "count"
        case "average": return "avg"
        case "unionofsets": return "unionOfArrays"
        case "distinctunionofsets": return "distinctUnionOfArrays"
        case let folded:
            return RecordPredicate.CollectionOperator.allCases
                .first { $0.rawValue.lowercased() == folded }?.rawValue
        }
    }
}
