/// The place where a text stops being JSON, and the reason.
public struct JSONSyntaxError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The offset, in UTF-8 bytes from the start of the text.
    public let utf8Offset: Int
    /// What was found there, or what JSON allows there.
    public let reason: String

    /// The error as one sentence.
    public var description: String { "not JSON at byte \(utf8Offset): \(reason)" }
}

extension JSONValue {
    /// Reads `text`, which must be exactly one JSON value (RFC 8259; duplicate names are refused).
    ///
    /// - Complexity: O(*n*) in the length of the text, for any text.
    /// - Throws: ``JSONSyntaxError`` at the first invalid byte.
    public init(parsing text: [UInt8]) throws(JSONSyntaxError) {
        var parser = JSONParser(
            bytes: text, maximumDepth: Limits.maximumJSONDepth, boundsMarks: true)
        self = try parser.document()
    }

    /// Reads JSON that the relay itself wrote, which may be nested deeper than incoming JSON.
    ///
    /// Everything that ``storedText(path:)`` returns can be read here.
    ///
    /// - Throws: ``JSONSyntaxError`` at the first invalid byte.
    public init(stored text: [UInt8]) throws(JSONSyntaxError) {
        var parser = JSONParser(
            bytes: text, maximumDepth: Limits.maximumStoredJSONDepth, boundsMarks: false)
        self = try parser.document()
    }

    /// Reads JSON that the relay itself wrote.
    ///
    /// - Throws: ``JSONSyntaxError`` at the first invalid byte.
    public init(stored text: String) throws(JSONSyntaxError) {
        try self.init(stored: Array(text.utf8))
    }

    /// Reads `text`, which must be exactly one JSON value.
    ///
    /// - Throws: ``JSONSyntaxError`` at the first invalid byte.
    public init(parsing text: String) throws(JSONSyntaxError) {
        try self.init(parsing: Array(text.utf8))
    }
}

/// A recursive-descent parser with bounded recursion.
private struct JSONParser {
    let bytes: [UInt8]
    let maximumDepth: Int
    /// Whether texts with endless runs of combining marks are refused.
    ///
    /// Stored texts were checked when they came in.
    let boundsMarks: Bool
    var index = 0

    mutating func document() throws(JSONSyntaxError) -> JSONValue {
        let value = try value(depth: 0)
        skipBlanks()
        guard index == bytes.count else { throw failure("more text after the value") }
        return value
    }

    private func failure(_ reason: String, at offset: Int? = nil) -> JSONSyntaxError {
        JSONSyntaxError(utf8Offset: offset ?? index, reason: reason)
    }

    private var current: UInt8? { index < bytes.count ? bytes[index] : nil }

    private mutating func skipBlanks() {
        while index < bytes.count {
            switch bytes[index] {
            case 0x20, 0x0A, 0x0D, 0x09: index += 1
            default: return
            }
        }
    }

    private mutating func value(depth: Int) throws(JSONSyntaxError) -> JSONValue {
        guard depth <= maximumDepth else {
            throw failure("nested deeper than \(maximumDepth) levels")
        }
        skipBlanks()
        switch current {
        case UInt8(ascii: "{"): return .object(try object(depth: depth))
        case UInt8(ascii: "["): return .array(try array(depth: depth))
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try literal("true", .bool(true))
        case UInt8(ascii: "f"): return try literal("false", .bool(false))
        case UInt8(ascii: "n"): return try literal("null", .null)
        case nil: throw failure("the text ends where a value is expected")
        case let byte? where isDigit(byte) || byte == UInt8(ascii: "-"): return try number()
        default: throw failure("a value is expected")
        }
    }

    private mutating func literal(
        _ word: StaticString, _ value: JSONValue
    ) throws(JSONSyntaxError) -> JSONValue {
        let end = index + word.utf8CodeUnitCount
        guard end <= bytes.count,
            (0..<word.utf8CodeUnitCount).allSatisfy({
                unsafe word.utf8Start[$0] == bytes[index + $0]
            })
        else { throw failure("\(word) is expected") }
        index = end
        return value
    }

    private mutating func object(depth: Int) throws(JSONSyntaxError) -> JSONObject {
        index += 1
        var result = JSONObject()
        var names: Set<String> = []
        skipBlanks()
        if current == UInt8(ascii: "}") {
            index += 1
            return result
        }
        result.members.reserveCapacity(8)
        while true {
            skipBlanks()
            guard current == UInt8(ascii: "\"") else { throw failure("a member name is expected") }
            let start = index
            let name = try string()
            guard isNew(name, among: result, &names) else {
                throw failure("the name \"\(name)\" occurs twice in one object", at: start)
            }
            skipBlanks()
            guard current == UInt8(ascii: ":") else { throw failure("a colon is expected") }
            index += 1
            result.members.append((name, try value(depth: depth + 1)))
            skipBlanks()
            guard try continues(until: UInt8(ascii: "}"), "a comma or } is expected") else {
                return result
            }
        }
    }

    /// Small objects are scanned.
    ///
    /// Large ones use a set, so that a hostile body takes linear time. So do names that may not be
    /// composed: comparing two of them takes as long as composing both, and in a set each is
    /// composed once.
    private func isNew(
        _ name: String, among object: JSONObject, _ names: inout Set<String>
    ) -> Bool {
        if names.isEmpty {
            if object.members.count < 16, name.isSurelyComposed { return object[name] == nil }
            names = Set(object.members.map(\.name))
        }
        return names.insert(name).inserted
    }

    private mutating func array(depth: Int) throws(JSONSyntaxError) -> [JSONValue] {
        index += 1
        var result: [JSONValue] = []
        skipBlanks()
        if current == UInt8(ascii: "]") {
            index += 1
            return result
        }
        while true {
            result.append(try value(depth: depth + 1))
            skipBlanks()
            guard try continues(until: UInt8(ascii: "]"), "a comma or ] is expected") else {
                return result
            }
        }
    }

    private mutating func continues(
        until end: UInt8, _ expectation: String
    ) throws(JSONSyntaxError) -> Bool {
        switch current {
        case UInt8(ascii: ","):
            index += 1
            return true
        case end:
            index += 1
            return false
        default:
            throw failure(expectation)
        }
    }
}

// MARK: - Numbers and texts

extension JSONParser {
    private mutating func number() throws(JSONSyntaxError) -> JSONValue {
        let start = index
        let isNegative = current == UInt8(ascii: "-")
        if isNegative { index += 1 }
        var magnitude: UInt64 = 0
        var isExact = true
        guard let first = current, isDigit(first) else { throw failure("a digit is expected") }
        if first == UInt8(ascii: "0") {
            index += 1
        } else {
            while let digit = current, isDigit(digit) {
                let (product, overflowed) = magnitude.multipliedReportingOverflow(by: 10)
                let (sum, carried) = product.addingReportingOverflow(UInt64(digit - 0x30))
                isExact = isExact && !overflowed && !carried
                magnitude = sum
                index += 1
            }
        }
        guard try !fractionOrExponent() else { return try double(from: start) }
        if isExact, isNegative, magnitude <= UInt64(Int64.max) + 1 {
            return .integer(Int64(truncatingIfNeeded: 0 &- magnitude))
        }
        if isExact, !isNegative, let integer = Int64(exactly: magnitude) {
            return .integer(integer)
        }
        return try double(from: start)
    }

    /// Skips a fraction and an exponent, and returns whether there was either.
    private mutating func fractionOrExponent() throws(JSONSyntaxError) -> Bool {
        var found = false
        if current == UInt8(ascii: ".") {
            index += 1
            try digits()
            found = true
        }
        if current == UInt8(ascii: "e") || current == UInt8(ascii: "E") {
            index += 1
            if current == UInt8(ascii: "+") || current == UInt8(ascii: "-") { index += 1 }
            try digits()
            found = true
        }
        return found
    }

    private mutating func digits() throws(JSONSyntaxError) {
        guard let digit = current, isDigit(digit) else { throw failure("a digit is expected") }
        while let digit = current, isDigit(digit) { index += 1 }
    }

    private func double(from start: Int) throws(JSONSyntaxError) -> JSONValue {
        if let exact = Double(decimal: bytes[start..<index]) {
            return .number(exact)
        }
        guard let number = Double(String(decoding: bytes[start..<index], as: UTF8.self)),
            number.isFinite
        else {
            throw failure("the number does not fit a 64-bit double", at: start)
        }
        return .number(number)
    }

    private func isDigit(_ byte: UInt8) -> Bool {
        UInt8(ascii: "0") <= byte && byte <= UInt8(ascii: "9")
    }

    private mutating func string() throws(JSONSyntaxError) -> String {
        let start = index
        index += 1
        let scanned = unsafe bytes.withContiguousStorageIfAvailable { bytes in
            unsafe bytes.endOfPlainJSONText(from: index)
        }
        let end = scanned ?? bytes.count
        guard end < bytes.count else { throw failure("the text ends inside a string", at: start) }
        if bytes[end] == UInt8(ascii: "\"") {
            let text = try text(bytes[index..<end])
            index = end + 1
            return text
        }
        return try escapedString(from: start)
    }

    private func text(_ slice: ArraySlice<UInt8>) throws(JSONSyntaxError) -> String {
        guard let text = String(utf8: slice) else {
            throw failure("a string is not valid UTF-8")
        }
        guard !boundsMarks || !text.hasEndlessMarks else {
            throw failure(
                "a string has more than \(Limits.maximumMarksInARow) combining marks in a row")
        }
        return text
    }

    private mutating func escapedString(from start: Int) throws(JSONSyntaxError) -> String {
        var decoded: [UInt8] = []
        while let byte = current {
            switch byte {
            case UInt8(ascii: "\""):
                index += 1
                return try text(decoded[...])
            case UInt8(ascii: "\\"):
                try escape(into: &decoded)
            case ..<0x20:
                throw failure("a control character must be escaped")
            default:
                decoded.append(byte)
                index += 1
            }
        }
        throw failure("the text ends inside a string", at: start)
    }

    private mutating func escape(into decoded: inout [UInt8]) throws(JSONSyntaxError) {
        let start = index
        index += 1
        guard let letter = current else { throw failure("the text ends inside a string") }
        index += 1
        switch letter {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): decoded.append(letter)
        case UInt8(ascii: "b"): decoded.append(0x08)
        case UInt8(ascii: "f"): decoded.append(0x0C)
        case UInt8(ascii: "n"): decoded.append(0x0A)
        case UInt8(ascii: "r"): decoded.append(0x0D)
        case UInt8(ascii: "t"): decoded.append(0x09)
        case UInt8(ascii: "u"): decoded.append(contentsOf: try scalar(from: start).utf8)
        default: throw failure("unknown escape", at: start)
        }
    }

    private mutating func scalar(from start: Int) throws(JSONSyntaxError) -> Unicode.Scalar {
        let high = try hexadecimal()
        var code = UInt32(high)
        if 0xD800...0xDBFF ~= high {
            guard current == UInt8(ascii: "\\"), index + 1 < bytes.count,
                bytes[index + 1] == UInt8(ascii: "u")
            else { throw failure("half of a surrogate pair", at: start) }
            index += 2
            let low = try hexadecimal()
            guard 0xDC00...0xDFFF ~= low else {
                throw failure("half of a surrogate pair", at: start)
            }
            code = 0x10000 + (UInt32(high - 0xD800) << 10) + UInt32(low - 0xDC00)
        }
        guard let scalar = Unicode.Scalar(code) else {
            throw failure("half of a surrogate pair", at: start)
        }
        return scalar
    }

    private mutating func hexadecimal() throws(JSONSyntaxError) -> UInt16 {
        var value: UInt16 = 0
        for _ in 0..<4 {
            guard let digit = current.flatMap(Hexadecimal.value(of:)) else {
                throw failure("four hexadecimal digits are expected")
            }
            value = value << 4 | UInt16(digit)
            index += 1
        }
        return value
    }
}
