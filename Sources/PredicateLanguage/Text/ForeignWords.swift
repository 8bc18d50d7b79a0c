/// What other languages write in conditions, with what it is in the dialects that are texts.
enum ForeignWords {
    /// How a list is written, for who writes it as SQL or JSON does.
    static let hintForList = "a list is written in braces: {1, 2}"

    /// What is written between two values.
    static let operators: [String: String] = [
        "EQUALS": "equality is written ==", "STARTSWITH": "did you mean BEGINSWITH?",
        "ILIKE": "did you mean LIKE[c], which pays no regard to case?",
        "REGEXP": "did you mean MATCHES?", "RLIKE": "did you mean MATCHES?",
        "SIMILAR": "did you mean MATCHES?", "HAS": "did you mean CONTAINS?",
        "INCLUDES": "did you mean CONTAINS?", "STARTS": "did you mean BEGINSWITH?",
        "BEGINS": "did you mean BEGINSWITH?", "ENDS": "did you mean ENDSWITH?",
    ]
}
