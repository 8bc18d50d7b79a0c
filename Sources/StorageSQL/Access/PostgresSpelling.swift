/// Respells a statement for PostgreSQL word by word.
///
/// Quoted texts stay unchanged.
struct PostgresSpelling {
    /// The statement in PostgreSQL's SQL.
    let text: String

    init(_ sql: String) {
        var words = Self.words(of: sql)
        Self.respell(&words)
        text = words.joined()
    }

    /// Returns names, numbers and quoted texts as whole words, and everything else scalar by
    /// scalar.
    private static func words(of sql: String) -> [String] {
        var words: [String] = []
        var rest = Substring(sql)
        while let first = rest.unicodeScalars.first {
            let word: Substring
            if first == "'" || first == "\"" {
                // A quote within a text is doubled, so the second one simply begins the next quoted
                // word.
                let inner = rest.dropFirst()
                let end = inner.firstIndex(of: Character(first)) ?? inner.endIndex
                word = rest[..<(end < inner.endIndex ? inner.index(after: end) : end)]
            } else if isWord(first) {
                word = rest.prefix { $0.unicodeScalars.allSatisfy(isWord) }
            } else {
                word = rest.prefix(1)
            }
            words.append(String(word))
            rest = rest[word.endIndex...]
        }
        return words
    }

    private static func isWord(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.isAlphabetic || ("0"..."9").contains(scalar) || scalar == "_"
    }

    private static func respell(_ words: inout [String]) {
        var parameters = 0
        for index in words.indices {
            switch words[index] {
            case "?":
                words[index] = "$"
                let next = index + 1 < words.endIndex ? words[index + 1] : ""
                guard next.first?.isNumber != true else { continue }
                parameters += 1
                words[index] = "$\(parameters)"
            case "user": words[index] = "\"user\""
            case "instr": words[index] = "strpos"
            case "INDEXED": drop(3, at: index, in: &words)
            case "CROSS": drop(1, at: index, in: &words)
            case "min": if hasSeveral(after: index, in: words) { words[index] = "least" }
            case "max": if hasSeveral(after: index, in: words) { words[index] = "greatest" }
            case "-" where follows("LIMIT", before: index, in: words): limitAll(index, &words)
            default: continue
            }
        }
    }

    /// Removes `count` words from `index` on, with the spaces after them.
    private static func drop(_ count: Int, at index: Int, in words: inout [String]) {
        var left = count
        var place = index
        while place < words.endIndex, left > 0 || words[place].allSatisfy(\.isWhitespace) {
            if !words[place].allSatisfy(\.isWhitespace) { left -= 1 }
            words[place] = ""
            place += 1
        }
    }

    /// Returns whether the parentheses after `index` contain more than one value.
    private static func hasSeveral(after index: Int, in words: [String]) -> Bool {
        var depth = 0
        for word in words[(index + 1)...] {
            switch word {
            case "(": depth += 1
            case ")":
                depth -= 1
                if depth == 0 { return false }
            case "," where depth == 1: return true
            default: if depth == 0 { return false }
            }
        }
        return false
    }

    private static func follows(_ word: String, before index: Int, in words: [String]) -> Bool {
        words[..<index].last { !$0.allSatisfy(\.isWhitespace) } == word
    }

    /// Replaces `LIMIT -1`, which means no limit in SQLite, by `LIMIT ALL`.
    private static func limitAll(_ index: Int, _ words: inout [String]) {
        words[index] = "ALL"
        if index + 1 < words.endIndex { words[index + 1] = "" }
    }
}
