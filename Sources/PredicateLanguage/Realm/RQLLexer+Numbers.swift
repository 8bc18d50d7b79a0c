import RelayModel

/// Numbers, dates and constants that begin with a letter.
extension RQLLexer {
    /// Returns the number or date that begins here, or `nil` if there is none.
    ///
    /// A sign is part of a number.
    mutating func number() throws(PredicateError) -> RQLToken.Kind? {
        if let date = try date() { return .constant(.timestamp(date), isNatural: false) }
        let start = index
        var cursor = start
        if byte(at: cursor) == UInt8(ascii: "+") || byte(at: cursor) == UInt8(ascii: "-") {
            cursor += 1
        }
        let digits = cursor
        cursor = endOfDigits(from: digits)
        if cursor == digits + 1, let hexadecimal = hexadecimal(start: start, digits: digits) {
            return hexadecimal
        }
        var isFractional = false
        if byte(at: cursor) == UInt8(ascii: ".") {
            let fraction = endOfDigits(from: cursor + 1)
            guard cursor > digits || fraction > cursor + 1 else { return nil }
            isFractional = true
            cursor = fraction
        }
        guard cursor > digits else { return nil }
        if let end = endOfExponent(from: cursor) {
            isFractional = true
            cursor = end
        }
        return isFractional
            ? fractional(start: start, end: cursor)
            : try integer(start: start, digits: digits, end: cursor)
    }

    private mutating func fractional(start: Int, end: Int) -> RQLToken.Kind? {
        var literal = string(start, end)
        if literal.hasSuffix(".") { literal += "0" }
        index = end
        if byte(at: end).map({ $0 | 0x20 }) == UInt8(ascii: "f") {
            index += 1
            return Float(literal).map { .constant(.double(Double($0)), isNatural: false) }
        }
        return Double(literal).map { .constant(.double($0), isNatural: false) }
    }

    /// Reads an integer.
    ///
    /// A leading zero means octal. An integer of more than 64 bits becomes the nearest double.
    private mutating func integer(
        start: Int, digits: Int, end: Int
    ) throws(PredicateError) -> RQLToken.Kind {
        let isOctal = bytes[digits] == UInt8(ascii: "0") && end > digits + 1
        if isOctal, bytes[digits..<end].contains(where: { $0 > UInt8(ascii: "7") }) {
            throw failure(
                from: start, to: end, expected: "octal digits after a leading zero",
                hint: "write the number without the leading zero")
        }
        index = end
        let literal = string(start, end)
        let isNatural = start == digits
        if let value = Int64(literal, radix: isOctal ? 8 : 10) {
            return .constant(.integer(value), isNatural: isNatural)
        }
        return .constant(.double(Double(literal) ?? .infinity), isNatural: false)
    }

    private mutating func hexadecimal(start: Int, digits: Int) -> RQLToken.Kind? {
        guard bytes[digits] == UInt8(ascii: "0"),
            byte(at: digits + 1).map({ $0 | 0x20 }) == UInt8(ascii: "x")
        else { return nil }
        var cursor = digits + 2
        while let byte = byte(at: cursor), Self.isHexDigit(byte) { cursor += 1 }
        guard cursor > digits + 2 else { return nil }
        let sign = start < digits ? string(start, digits) : ""
        guard let value = Int64(sign + string(digits + 2, cursor), radix: 16) else { return nil }
        index = cursor
        return .constant(.integer(value), isNatural: false)
    }

    private func endOfDigits(from start: Int) -> Int {
        var cursor = start
        while let byte = byte(at: cursor), byte.isDigit { cursor += 1 }
        return cursor
    }

    private func endOfExponent(from start: Int) -> Int? {
        guard byte(at: start).map({ $0 | 0x20 }) == UInt8(ascii: "e") else { return nil }
        var digits = start + 1
        if byte(at: digits) == UInt8(ascii: "+") || byte(at: digits) == UInt8(ascii: "-") {
            digits += 1
        }
        let end = endOfDigits(from: digits)
        return end > digits ? end : nil
    }

    // MARK: Dates

    /// Reads a date in UTC such as `2017-12-01@12:07:53:505`.
    ///
    /// The separator is `@` or `T`, and the nanoseconds are optional.
    private mutating func date() throws(PredicateError) -> Timestamp? {
        var cursor = index
        var parts: [Int] = []
        for separator in ["-", "-", "T@", ":", ":", ""] {
            let end = endOfDigits(from: cursor)
            guard end > cursor, end - cursor <= 9, let part = Int(string(cursor, end)) else {
                return nil
            }
            parts.append(part)
            cursor = end
            if separator.isEmpty { break }
            guard let byte = byte(at: cursor), separator.utf8.contains(byte) else { return nil }
            cursor += 1
        }
        if byte(at: cursor) == UInt8(ascii: ":") {
            let end = endOfDigits(from: cursor + 1)
            if end > cursor + 1, end - cursor <= 10, let part = Int(string(cursor + 1, end)) {
                parts.append(part)
                cursor = end
            }
        }
        let start = index
        index = cursor
        guard let date = Self.timestamp(parts) else {
            throw PredicateError(
                .check, "this is not a calendar date from 1900 on",
                at: SourceSpan(offset: start, length: cursor - start),
                found: string(start, cursor),
                expected: "year-month-day@hour:minute:second, from 1900 on")
        }
        return date
    }

    private static func timestamp(_ parts: [Int]) -> Timestamp? {
        let (year, month, day) = (parts[0], parts[1], parts[2])
        guard (1900...9999).contains(year), (1...12).contains(month), (1...31).contains(day),
            parts[3] < 24, parts[4] < 60, parts[5] < 61
        else { return nil }
        // Realm counts a day beyond the end of its month as a day of the next month.
        let date = CivilDate(year: Int64(year), month: Int64(month), day: Int64(day))
        let second = Int64(parts[3] * 3600 + parts[4] * 60 + parts[5])
        let nanoseconds = parts.count > 6 ? parts[6] : 0
        return Timestamp(
            seconds: date.daysSince1970 * 86_400 + second, nanoseconds: Int32(nanoseconds))
    }

    // MARK: Constants that begin with a letter

    /// Returns the constant that begins here, if it is longer than the name that begins here.
    mutating func specialConstant(
        longerThan nameEnd: Int
    ) throws(PredicateError) -> RQLToken.Kind? {
        if starts(with: "uuid("), let inner = parenthesised(5, count: 36) {
            return UUIDBytes(inner).map { .constant(.uuid($0), isNatural: false) }
        }
        if starts(with: "oid("), let inner = parenthesised(4, count: 24) {
            return Hexadecimal.decode(inner).map { .constant(.objectID($0), isNatural: false) }
        }
        if starts(with: "B64\"") { return try base64() }
        if starts(with: "T"), let moment = try moment() {
            return .constant(.timestamp(moment), isNatural: false)
        }
        if starts(with: "L"), let end = endOfTypedKey(nameEnd: nameEnd) {
            index = end
            return .objectKey
        }
        return nil
    }

    private mutating func parenthesised(_ prefix: Int, count: Int) -> String? {
        let start = index + prefix
        guard byte(at: start + count) == UInt8(ascii: ")") else { return nil }
        let inner = bytes[start..<start + count]
        guard inner.allSatisfy({ Self.isHexDigit($0) || $0 == UInt8(ascii: "-") }) else {
            return nil
        }
        let text = string(start, start + count)
        guard count == 36 ? UUIDBytes(text) != nil : Hexadecimal.decode(text) != nil else {
            return nil
        }
        index = start + count + 1
        return text
    }

    private mutating func base64() throws(PredicateError) -> RQLToken.Kind {
        let start = index
        guard let length = bytes[(start + 4)...].firstIndex(of: UInt8(ascii: "\"")) else {
            throw failure(
                from: start, to: bytes.count, expected: "the closing quote", hint: nil)
        }
        index = length + 1
        guard let decoded = Base64.decode(string(start + 4, length)) else {
            throw failure(from: start, to: index, expected: "Base64 text", hint: nil)
        }
        return .constant(.bytes(decoded), isNatural: false)
    }

    /// Reads a date such as `T1512130073:505`: seconds and nanoseconds since 1970, both with the
    /// same sign.
    private mutating func moment() throws(PredicateError) -> Timestamp? {
        guard let (seconds, middle) = signedInteger(from: index + 1),
            byte(at: middle) == UInt8(ascii: ":"),
            let (nanoseconds, end) = signedInteger(from: middle + 1)
        else { return nil }
        let start = index
        index = end
        guard let moment = Timestamp(seconds: seconds, signedNanoseconds: nanoseconds) else {
            throw failure(
                from: start, to: end,
                expected: "seconds and nanoseconds of the same sign, nanoseconds below 10^9",
                hint: nil)
        }
        return moment
    }

    private func signedInteger(from start: Int) -> (value: Int64, end: Int)? {
        var digits = start
        if byte(at: digits) == UInt8(ascii: "+") || byte(at: digits) == UInt8(ascii: "-") {
            digits += 1
        }
        let end = endOfDigits(from: digits)
        guard end > digits, let value = Int64(string(start, end)) else { return nil }
        return (value, end)
    }

    private func endOfTypedKey(nameEnd: Int) -> Int? {
        // Both parts have at most 64 bits.
        guard byte(at: nameEnd) == UInt8(ascii: ":"), (2...17).contains(nameEnd - index),
            bytes[(index + 1)..<nameEnd].allSatisfy(Self.isHexDigit)
        else { return nil }
        var end = nameEnd + 1
        while let byte = byte(at: end), Self.isHexDigit(byte) { end += 1 }
        return (2...17).contains(end - nameEnd) ? end : nil
    }
}
