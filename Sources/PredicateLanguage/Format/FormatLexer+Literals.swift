import RelayModel

extension FormatLexer {
    /// Reads a number: a decimal with an optional fraction and exponent, or an integer after `0x`,
    /// `0o` or `0b`.
    mutating func number() throws(PredicateError) -> FormatToken {
        let start = position
        let prefixed = try prefixedInteger()
        let token = if let prefixed { prefixed } else { try decimal() }
        if identifier() != nil {
            throw failure(
                "a number is directly followed by a word", from: start,
                expected: "a space after the number")
        }
        return token
    }

    private mutating func prefixedInteger() throws(PredicateError) -> FormatToken? {
        let start = position
        guard byte(start) == UInt8(ascii: "0") else { return nil }
        let radix: Int
        switch byte(start + 1) | 0x20 {
        case UInt8(ascii: "x"): radix = 16
        case UInt8(ascii: "o"): radix = 8
        case UInt8(ascii: "b"): radix = 2
        default: return nil
        }
        position += 2
        let digits = position
        while Character(Unicode.Scalar(byte(position))).isHexDigit { position += 1 }
        let text = String(decoding: bytes[digits..<position], as: UTF8.self)
        guard let value = UInt64(text, radix: radix) else {
            throw failure(
                "this is not a 64-bit integer", from: start,
                expected: "digits of the given base, at most 64 bits")
        }
        return token(.integer(value), from: start)
    }

    private mutating func decimal() throws(PredicateError) -> FormatToken {
        let start = position
        skipDigits()
        var isInteger = true
        if byte(position) == UInt8(ascii: "."), byte(position + 1).isDigit {
            isInteger = false
            position += 1
            skipDigits()
        }
        if byte(position) | 0x20 == UInt8(ascii: "e") {
            let sign = byte(position + 1)
            let hasSign = sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-")
            if byte(position + (hasSign ? 2 : 1)).isDigit {
                isInteger = false
                position += hasSign ? 2 : 1
                skipDigits()
            }
        }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        if isInteger {
            guard let value = UInt64(text) else {
                throw failure(
                    "the integer does not fit in 64 bits", from: start,
                    expected: "-9223372036854775808 to 9223372036854775807",
                    hint: "write \(text.prefix(40)).0 for a floating-point number")
            }
            return token(.integer(value), from: start)
        }
        guard let value = Double(text), value.isFinite else {
            throw failure(
                "the number is out of range", from: start,
                expected: "a number that a 64-bit double can hold")
        }
        return token(.double(value), from: start)
    }

    private mutating func skipDigits() {
        while byte(position).isDigit { position += 1 }
    }

    /// Reads a text between quotes, and decodes its escapes.
    mutating func string() throws(PredicateError) -> String {
        let start = position
        let quote = bytes[position]
        position += 1
        var content: [UInt8] = []
        while position < bytes.count, bytes[position] != quote {
            if bytes[position] == UInt8(ascii: "\\") {
                content.append(contentsOf: String(try escape()).utf8)
            } else {
                content.append(bytes[position])
                position += 1
            }
        }
        guard position < bytes.count else {
            let mark = Character(Unicode.Scalar(quote))
            throw failure(
                "the text has no closing quotation mark", from: start, expected: "\(mark)")
        }
        position += 1
        let text = String(decoding: content, as: UTF8.self)
        // Escape sequences, which are written in letters and digits, can produce combining marks.
        // The name of a type or a field is compared before the whole predicate is checked, so the
        // check must happen here.
        guard !text.hasEndlessMarks else {
            throw failure(
                "a text has too many combining marks in a row", from: start,
                expected: "at most \(Limits.maximumMarksInARow)")
        }
        return text
    }

    private mutating func escape() throws(PredicateError) -> Unicode.Scalar {
        let start = position
        let letter = byte(position + 1)
        position = min(position + 2, bytes.count)
        switch letter {
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "a"): return "\u{07}"
        case UInt8(ascii: "b"): return "\u{08}"
        case UInt8(ascii: "f"): return "\u{0C}"
        case UInt8(ascii: "v"): return "\u{0B}"
        case UInt8(ascii: "\\"), UInt8(ascii: "'"), UInt8(ascii: "\""), UInt8(ascii: "/"):
            return Unicode.Scalar(letter)
        case UInt8(ascii: "0")...UInt8(ascii: "7"):
            position -= 1
            return try code(from: start, radix: 8, digits: 1...3)
        case UInt8(ascii: "x"): return try code(from: start, radix: 16, digits: 1...2)
        case UInt8(ascii: "u"): return try utf16Code(from: start)
        case UInt8(ascii: "U"): return try code(from: start, radix: 16, digits: 8...8)
        case UInt8(ascii: "*"), UInt8(ascii: "?"):
            // `\*` and `\?` are escapes in LIKE patterns, so the backslash must stay in the text.
            position -= 1
            return "\\"
        default:
            throw failure(
                "unknown escape", from: start, expected: "\\\\ \\' \\\" \\n \\r \\t \\uHHHH …",
                hint: "write each backslash of a regular expression twice, or use %@")
        }
    }

    private mutating func code(
        from start: Int, radix: Int, digits: ClosedRange<Int>
    ) throws(PredicateError) -> Unicode.Scalar {
        let begin = position
        while position - begin < digits.upperBound,
            Int(String(Unicode.Scalar(byte(position))), radix: radix) != nil
        {
            position += 1
        }
        let text = String(decoding: bytes[begin..<position], as: UTF8.self)
        guard text.utf8.count >= digits.lowerBound, let value = UInt32(text, radix: radix),
            let scalar = Unicode.Scalar(value)
        else {
            throw failure(
                "the escape does not stand for a Unicode character", from: start,
                expected: "the code of a Unicode character")
        }
        return scalar
    }

    /// Reads the digits after `\u`, and a second `\uHHHH` if the first is half of a surrogate pair.
    private mutating func utf16Code(from start: Int) throws(PredicateError) -> Unicode.Scalar {
        guard let high = fourDigits() else {
            throw failure(
                "\\u needs four hexadecimal digits", from: start,
                expected: "four hexadecimal digits")
        }
        if let scalar = Unicode.Scalar(high) { return scalar }
        if byte(position) == UInt8(ascii: "\\"), byte(position + 1) == UInt8(ascii: "u") {
            position += 2
            if let low = fourDigits(), high < 0xDC00, (0xDC00...0xDFFF).contains(low),
                let scalar = Unicode.Scalar(0x10000 + (high - 0xD800) << 10 + (low - 0xDC00))
            {
                return scalar
            }
        }
        throw failure(
            "half of a surrogate pair", from: start, expected: "both halves, or one \\UHHHHHHHH")
    }

    private mutating func fourDigits() -> UInt32? {
        let end = position + 4
        guard end <= bytes.count else { return nil }
        let text = String(decoding: bytes[position..<end], as: UTF8.self)
        guard text.utf8.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }),
            let value = UInt32(text, radix: 16)
        else { return nil }
        position = end
        return value
    }
}
