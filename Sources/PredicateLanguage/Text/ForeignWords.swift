/// Hints for the notation of other languages, for the text dialects.
enum ForeignWords {
    /// The hint for a list that is written as in SQL or JSON.
    static let hintForList = "write a list in braces: {1, 2}"

    /// The hints for operators of other languages.
    static let operators: [String: String] = [
        "EQUALS": "write == for equality", "STARTSWITH": "did you mean BEGINSWITH?",
        "ILIKE": "did you mean LIKE[c], which ignores case?",
        "REGEXP": "did you mean MATCHES?", "RLIKE": "did you mean MATCHES?",
        "SIMILAR": "did you mean MATCHES?", "HAS": "did you mean CONTAINS?",
        "INCLUDES": "did you mean CONTAINS?", "STARTS": "did you mean BEGINSWITH?",
        "BEGINS": "did you mean BEGINSWITH?", "ENDS": "did you mean ENDSWITH?",
    ]
}
