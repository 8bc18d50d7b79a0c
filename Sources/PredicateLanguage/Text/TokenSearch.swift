import RelayModel

/// CloudKit's token search, by the words of a text.
///
/// It ignores case, marks and stop words.
enum TokenSearch {
    /// The words that CloudKit ignores (CKQuery, "Predicate Rules").
    static let stopWords: Set<String> = [
        "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is",
        "it", "no", "not", "of", "on", "or", "such", "that", "the", "their", "then", "there",
        "these", "they", "this", "to", "was", "will", "with",
    ]

    /// Returns the folded words of `text` in order, without stop words.
    static func words(of text: String) -> [String] {
        var words: [String] = []
        _ = hasWord(text) { word in
            if !stopWords.contains(word) { words.append(word) }
            return false
        }
        return words
    }

    /// Returns whether `fits` holds for one of the folded words of `text`.
    ///
    /// It stops at the first such word.
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

    /// Does the same as `hasWord` for an ASCII text, byte by byte.
    ///
    /// Reading the category of each character would take ten times as long.
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

    /// Returns whether one of the `wanted` words is in `value`: in a text, in the texts of a list,
    /// or in the texts of a record's fields.
    ///
    /// `wanted` must not contain stop words.
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
