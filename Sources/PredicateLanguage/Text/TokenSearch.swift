import RelayModel

/// CloudKit's token search: words of a text, without case, marks and stop words.
enum TokenSearch {
    /// The words that CloudKit leaves out (CKQuery, "Predicate Rules").
    static let stopWords: Set<String> = [
        "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is",
        "it", "no", "not", "of", "on", "or", "such", "that", "the", "their", "then", "there",
        "these", "they", "this", "to", "was", "will", "with",
    ]

    /// The words of `text`, folded, in order, without stop words.
    static func words(of text: String) -> [String] {
        var words: [String] = []
        var word = String.UnicodeScalarView()
        let folded = TextFolding.fold(text, [.ignoringCase, .ignoringDiacritics])
        for scalar in folded.unicodeScalars {
            if Identifiers.allows(scalar, isFirst: false), scalar != "_" {
                word.append(scalar)
            } else if !word.isEmpty {
                words.append(String(word))
                word = String.UnicodeScalarView()
            }
        }
        if !word.isEmpty { words.append(String(word)) }
        return words.filter { !stopWords.contains($0) }
    }

    /// Whether one of `wanted` is a word of `value`: of a text, of the texts in a list, or of the
    /// texts in a record's fields.
    static func isFound(_ wanted: Set<String>, in value: FieldValue) -> Bool {
        switch value {
        case .string(let text): words(of: text).contains { wanted.contains($0) }
        case .list(let values): values.contains { isFound(wanted, in: $0) }
        case .set(let values): values.contains { isFound(wanted, in: $0) }
        case .map(let members): members.values.contains { isFound(wanted, in: $0) }
        default: false
        }
    }
}
