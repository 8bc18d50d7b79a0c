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
        _ = hasWord(text) { word in
            if !stopWords.contains(word) { words.append(word) }
            return false
        }
        return words
    }

    /// Whether one of the words of `text`, folded, `fits`; those after it are not looked at.
    private static func hasWord(_ text: String, _ fits: (String) -> Bool) -> Bool {
        if text.utf8Span.isKnownASCII { return hasPlainWord(text, fits) }
        var word = String.UnicodeScalarView()
        let folded = TextFolding.fold(text, [.ignoringCase, .ignoringDiacritics])
        for scalar in folded.unicodeScalars {
            if Identifiers.allows(scalar, isFirst: false), scalar != "_" {
                word.append(scalar)
            } else if !word.isEmpty {
                if fits(String(word)) { return true }
                word = String.UnicodeScalarView()
            }
        }
        return !word.isEmpty && fits(String(word))
    }

    /// The same of a text of ASCII, byte by byte: asking each for its category takes ten times as
    /// long.
    private static func hasPlainWord(_ text: String, _ fits: (String) -> Bool) -> Bool {
        var word: [UInt8] = []
        for byte in text.utf8 {
            let folded = byte.asciiLowercased
            if folded &- 0x61 < 26 || folded.isDigit {
                word.append(folded)
            } else if !word.isEmpty {
                if fits(String(decoding: word, as: UTF8.self)) { return true }
                word.removeAll(keepingCapacity: true)
            }
        }
        return !word.isEmpty && fits(String(decoding: word, as: UTF8.self))
    }

    /// Whether one of `wanted` is a word of `value`: of a text, of the texts in a list, or of the
    /// texts in a record's fields.
    ///
    /// None of `wanted` is a stop word.
    static func isFound(_ wanted: Set<String>, in value: FieldValue) -> Bool {
        switch value {
        case .string(let text): hasWord(text) { wanted.contains($0) }
        case .list(let values): values.contains { isFound(wanted, in: $0) }
        case .set(let values): values.contains { isFound(wanted, in: $0) }
        case .map(let members): members.values.contains { isFound(wanted, in: $0) }
        default: false
        }
    }
}
