import RelayModel

/// A token of an NSPredicate format: a word, number, text or symbol.
struct FormatToken: Equatable {
    /// The kind of the token.
    var kind: Kind
    /// The place of the token in the text.
    var span: SourceSpan

    enum Kind: Equatable {
        /// The end of the text.
        case end
        /// An integer without its sign.
        case integer(UInt64)
        /// A number with a fraction or exponent.
        case double(Double)
        /// A text between quotes, decoded.
        case string(String)
        /// An identifier, perhaps a keyword.
        case word(String)
        /// A key, written `#word` or `#"any text"`. It is a key even if it spells a keyword.
        case key(String)
        /// `@word`.
        case at(String)
        /// `$word`.
        case variable(String)
        /// `$0`, `$1`, …
        case position(Int)
        /// `%@`, `%K` or a C conversion.
        case argument(Conversion)
        /// An operator or bracket.
        case symbol(String)
    }

    /// The type that a placeholder requires of its argument.
    enum Conversion: Equatable {
        case value
        case key
        case integer
        case double
        case text
        case character
    }

    /// The keyword in upper case, if the token is a word.
    var keyword: String? {
        guard case .word(let word) = kind, word.utf8.count <= 15 else { return nil }
        return word.uppercased()
    }

    func isSymbol(_ text: String) -> Bool {
        if case .symbol(let symbol) = kind { symbol == text } else { false }
    }

    /// The token as error messages name it.
    var found: String {
        switch kind {
        case .end: "the end of the text"
        case .integer(let number): "\(number)"
        case .double(let number): "\(number)"
        case .string: "a text"
        case .word(let word): "`\(word.prefix(40))`"
        case .key(let key): "the key `\(key.prefix(40))`"
        case .at(let word): "`@\(word.prefix(40))`"
        case .variable(let name): "`$\(name.prefix(40))`"
        case .position(let index): "`$\(index)`"
        case .argument: "an argument"
        case .symbol(let symbol): "`\(symbol)`"
        }
    }
}

/// A lexer that splits an NSPredicate format into tokens.
///
/// Offsets count UTF-8 bytes. The lexer has no state besides its position, so it can be set back to
/// the offset of any token.
struct FormatLexer {
    let bytes: [UInt8]
    var position = 0

    init(_ text: String) {
        bytes = Array(text.utf8)
    }

    /// The byte at `index`, or 0 beyond the end.
    func byte(_ index: Int) -> UInt8 {
        index < bytes.count ? bytes[index] : 0
    }

    /// Reads the next token.
    ///
    /// - Throws: ``PredicateError`` of the stage `parse` at text that is not a token.
    mutating func next() throws(PredicateError) -> FormatToken {
        while position < bytes.count, bytes[position].isBlank {
            position += 1
        }
        let start = position
        guard start < bytes.count else { return token(.end, from: start) }
        let first = bytes[start]
        switch first {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
        case UInt8(ascii: ".") where byte(start + 1).isDigit: return try number()
        case UInt8(ascii: "'"), UInt8(ascii: "\""):
            let text = try string()
            return token(.string(text), from: start)
        case UInt8(ascii: "#"): return try escapedKey()
        case UInt8(ascii: "@"):
            position += 1
            guard let word = identifier() else {
                throw failure("a word must follow @", from: start, expected: "@count, @sum …")
            }
            return token(.at(word), from: start)
        case UInt8(ascii: "$"): return try variable()
        case UInt8(ascii: "%"): return try argument()
        default:
            if let word = identifier() { return token(.word(word), from: start) }
            return try symbol()
        }
    }

    /// Creates a token of the bytes from `start` to the current position.
    func token(_ kind: FormatToken.Kind, from start: Int) -> FormatToken {
        FormatToken(kind: kind, span: SourceSpan(offset: start, length: position - start))
    }

    func failure(
        _ reason: String, from start: Int, expected: String? = nil, hint: String? = nil
    ) -> PredicateError {
        let end = min(max(position, start + 1), bytes.count)
        let shown = String(decoding: bytes[start..<min(end, start + 40)], as: UTF8.self)
        return PredicateError(
            .parse, reason, at: SourceSpan(offset: start, length: end - start),
            found: shown.isEmpty ? "the end of the text" : "`\(shown)`", expected: expected,
            hint: hint)
    }
}

extension FormatLexer {
    /// Reads an identifier: a letter or `_`, then letters, digits and `_`.
    ///
    /// Letters and digits may be of any script, and include their combining marks.
    mutating func identifier() -> String? {
        let start = position
        while let length = identifierLength(isFirst: position == start) {
            position += length
        }
        guard position > start else { return nil }
        let word = String(decoding: bytes[start..<position], as: UTF8.self)
        if word.utf8.count == 3, word.uppercased() == "UTI" { return uniformType(from: start) }
        return word
    }

    /// Extends the word `UTI` to `UTI-EQUALS` or `UTI-CONFORMS-TO`, which are the only words with
    /// hyphens.
    private mutating func uniformType(from start: Int) -> String {
        for suffix in ["-EQUALS", "-CONFORMS-TO"] {
            let end = position + suffix.utf8.count
            guard end <= bytes.count else { continue }
            let word = String(decoding: bytes[position..<end], as: UTF8.self)
            if word.uppercased() == suffix {
                position = end
                break
            }
        }
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }

    /// Returns the length of the next character, if an identifier may contain it.
    private func identifierLength(isFirst: Bool) -> Int? {
        let first = byte(position)
        switch first {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "_"):
            return 1
        case UInt8(ascii: "0")...UInt8(ascii: "9"): return isFirst ? nil : 1
        case 0x80...: break
        default: return nil
        }
        let length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2
        let end = min(position + length, bytes.count)
        guard
            let scalar = String(decoding: bytes[position..<end], as: UTF8.self).unicodeScalars.first
        else { return nil }
        return Identifiers.allows(scalar, isFirst: isFirst) ? length : nil
    }

    private mutating func escapedKey() throws(PredicateError) -> FormatToken {
        let start = position
        position += 1
        if byte(position) == UInt8(ascii: "'") || byte(position) == UInt8(ascii: "\"") {
            let text = try string()
            return token(.key(text), from: start)
        }
        guard let word = identifier() else {
            throw failure("a word must follow #", from: start, expected: "#word")
        }
        return token(.key(word), from: start)
    }

    private mutating func variable() throws(PredicateError) -> FormatToken {
        let start = position
        position += 1
        if let name = identifier() { return token(.variable(name), from: start) }
        let digits = position
        while byte(position).isDigit { position += 1 }
        guard let index = Int(String(decoding: bytes[digits..<position], as: UTF8.self)) else {
            throw failure("a name or number must follow $", from: start, expected: "$name or $0")
        }
        return token(.position(index), from: start)
    }

    private mutating func argument() throws(PredicateError) -> FormatToken {
        let start = position
        position += 1
        while ["l", "h", "q", "L"].contains(Character(Unicode.Scalar(byte(position)))) {
            position += 1
        }
        let isPlain = position == start + 1
        let conversion: FormatToken.Conversion?
        switch byte(position) {
        case UInt8(ascii: "@") where isPlain: conversion = .value
        case UInt8(ascii: "K") where isPlain: conversion = .key
        case UInt8(ascii: "s") where isPlain: conversion = .text
        case UInt8(ascii: "c") where isPlain: conversion = .character
        case UInt8(ascii: "d"), UInt8(ascii: "i"), UInt8(ascii: "u"), UInt8(ascii: "x"),
            UInt8(ascii: "X"), UInt8(ascii: "o"), UInt8(ascii: "D"), UInt8(ascii: "U"):
            conversion = .integer
        case UInt8(ascii: "f"), UInt8(ascii: "e"), UInt8(ascii: "g"), UInt8(ascii: "E"),
            UInt8(ascii: "G"), UInt8(ascii: "F"):
            conversion = .double
        default: conversion = nil
        }
        position = min(position + 1, bytes.count)
        guard let conversion else {
            throw failure(
                "unknown placeholder", from: start,
                expected: "%@ for a value, %K for a key, %d or %f for a number")
        }
        return token(.argument(conversion), from: start)
    }

    private mutating func symbol() throws(PredicateError) -> FormatToken {
        let start = position
        let two = String(decoding: bytes[start..<min(start + 2, bytes.count)], as: UTF8.self)
        if Self.doubleSymbols.contains(two) {
            position += 2
            if byte(position) == UInt8(ascii: "="), ["==", "!=", "<=", ">="].contains(two) {
                position += 1
                throw failure(
                    "unknown operator", from: start, expected: "== != < <= > >=",
                    hint: two == "==" ? "write == for equality" : "did you mean \(two)?")
            }
            return token(.symbol(two), from: start)
        }
        let one = String(decoding: bytes[start..<start + 1], as: UTF8.self)
        guard Self.singleSymbols.contains(one) else {
            let lead = bytes[start]
            position += lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1
            position = min(position, bytes.count)
            let sign = String(decoding: bytes[start..<position], as: UTF8.self)
            throw failure(
                "this character is not part of the language", from: start,
                expected: "an operator, a field or a constant", hint: Self.hint(for: sign))
        }
        position += 1
        return token(.symbol(one), from: start)
    }

    /// Returns a hint for a sign that other programs, languages or keyboards write.
    private static func hint(for sign: String) -> String? {
        switch sign {
        case "“", "”", "„", "‘", "’", "«", "»": "write a text in straight quotes: \"text\""
        case "`": "write a field name without quotes"
        case ";": "a condition does not end with a semicolon"
        case "≠": "did you mean !=?"
        case "≤": "did you mean <=?"
        case "≥": "did you mean >=?"
        default: nil
        }
    }

    private static let doubleSymbols: Set<String> = [
        "==", "!=", "<>", "<=", "=<", ">=", "=>", "&&", "||", "**", ":=", "<<", ">>",
    ]
    private static let singleSymbols: Set<String> = [
        "=", "<", ">", "!", "+", "-", "*", "/", "(", ")", "[", "]", "{", "}", ",", ".", ":", "&",
        "|", "^", "~",
    ]
}
