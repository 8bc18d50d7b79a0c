/// Words of NSPredicate formats: what a key must not be written like, and what reads as one.
enum FormatWords {
    /// Words that are no keys unless `#` stands before them.
    static let reserved: Set<String> = [
        "AND", "OR", "NOT", "ANY", "ALL", "SOME", "NONE", "IN", "BETWEEN", "LIKE", "MATCHES",
        "CONTAINS", "BEGINSWITH", "ENDSWITH", "TRUE", "FALSE", "YES", "NO", "NULL", "NIL", "SELF",
        "TRUEPREDICATE", "FALSEPREDICATE", "ANYKEY", "SUBQUERY", "FETCH", "CAST",
        "CASEINSENSITIVE", "CI", "UTI-CONFORMS-TO", "UTI-EQUALS", "UNION", "INTERSECT", "MINUS",
        "TERNARY", "FUNCTION", "TOKENMATCHES",
    ]

    /// The operator that a misspelt word means; any other word is the name of a member, which may
    /// begin with `@` in JSON.
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
