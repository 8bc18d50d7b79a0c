package import RelayModel

/// The kind of a PostgreSQL type's values, which determines how their text is read.
package indirect enum PostgresKind: Sendable, Hashable {
    case boolean, integer, double, numeric, text, moment, json, bytes, uuid
    /// The separator is a comma for all types except boxes and users' types with another one
    /// (`typdelim`).
    case list(PostgresKind, separator: UInt8 = PostgresKind.comma)

    package static let comma = UInt8(ascii: ",")
}

extension PostgresKind {
    /// Returns the value of `text`.
    ///
    /// A text that does not fit the kind stays a text, and invalid UTF-8 becomes bytes.
    package func value(of text: ArraySlice<UInt8>) -> FieldValue {
        switch self {
        case .boolean:
            if text.elementsEqual("t".utf8) { return .bool(true) }
            if text.elementsEqual("f".utf8) { return .bool(false) }
        case .integer: if let number = Self.integer(text) { return .integer(number) }
        case .double:
            if let number = Double(Self.string(text)), number.isFinite { return .double(number) }
        case .numeric: if let number = Self.exact(text) { return number }
        case .moment:
            if let moment = Timestamp(iso8601: Self.string(text)) { return .timestamp(moment) }
        case .json:
            if let json = try? JSONValue(parsing: Array(text)) { return FieldValue(plain: json) }
        case .bytes: if let bytes = Self.hexadecimal(text) { return .bytes(bytes) }
        case .uuid: if let uuid = UUIDBytes(Self.string(text)) { return .uuid(uuid) }
        case .list(let element, let separator):
            var reader = ArrayText(text, of: element, separator: separator)
            if let list = reader.list() { return .list(list) }
        case .text: break
        }
        // Invalid UTF-8 comes only from a database in SQL_ASCII. As bytes, nothing of it is lost.
        return String(utf8: text).map { .string($0) } ?? .bytes(Array(text))
    }

    static func string(_ text: ArraySlice<UInt8>) -> String {
        String(decoding: text, as: UTF8.self)
    }

    private static func integer(_ text: ArraySlice<UInt8>) -> Int64? {
        let isNegative = text.first == UInt8(ascii: "-")
        let digits = isNegative ? text.dropFirst() : text
        guard !digits.isEmpty else { return nil }
        var value: Int64 = 0
        for byte in digits {
            guard 0x30...0x39 ~= byte else { return nil }
            let (tens, isOver) = value.multipliedReportingOverflow(by: 10)
            // Accumulated as a negative number, because the range has one more value below zero.
            let (sum, isOverToo) = tens.subtractingReportingOverflow(Int64(byte - 0x30))
            guard !isOver, !isOverToo else { return nil }
            value = sum
        }
        if isNegative { return value }
        return value == .min ? nil : -value
    }

    private static func hexadecimal(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        guard text.starts(with: "\\x".utf8) else { return nil }
        return Hexadecimal.decode(string(text.dropFirst(2)))
    }

    /// Returns the exact number: a 64-bit integer, or a double with all of its digits.
    ///
    /// The result is `nil` if digits would be lost, and for NaN and infinity.
    private static func exact(_ text: ArraySlice<UInt8>) -> FieldValue? {
        if let whole = integer(text) { return .integer(whole) }
        guard let written = DecimalDigits(text) else { return nil }
        if written.exponent >= 0, let whole = written.whole { return .integer(whole) }
        guard let number = Double(string(text)), number.isFinite else { return nil }
        // A number of up to 15 digits survives the conversion to a double and back, unless it is so
        // close to zero that doubles have fewer digits there, or none.
        if written.digits.count <= 15, number.isNormal { return .double(number) }
        let read = DecimalDigits(Array(number.description.utf8)[...])
        return read == written ? .double(number) : nil
    }
}

/// A decimal number in a unique form: digits without zeros at either end, and the exponent of the
/// last one.
struct DecimalDigits: Hashable {
    private(set) var isNegative = false
    private(set) var digits: [UInt8] = []
    private(set) var exponent = 0

    init?(_ text: ArraySlice<UInt8>) {
        var rest = text
        if rest.first == UInt8(ascii: "-") {
            isNegative = true
            rest = rest.dropFirst()
        }
        var isFraction = false
        while let byte = rest.popFirst() {
            switch byte {
            case 0x30...0x39:
                digits.append(byte)
                if isFraction { exponent -= 1 }
            case UInt8(ascii: ".") where !isFraction: isFraction = true
            case UInt8(ascii: "e"):
                guard let power = Int(String(decoding: rest, as: UTF8.self)),
                    (-400...400).contains(power)
                else { return nil }
                exponent += power
                rest = []
            default: return nil
            }
        }
        guard !digits.isEmpty else { return nil }
        while digits.last == 0x30 {
            digits.removeLast()
            exponent += 1
        }
        digits = Array(digits.drop { $0 == 0x30 })
        if digits.isEmpty { (isNegative, exponent) = (false, 0) }
    }

    /// The number as a 64-bit integer, if it is one.
    var whole: Int64? {
        guard (0...18).contains(exponent), digits.count + exponent <= 19 else { return nil }
        let text = String(decoding: digits, as: UTF8.self) + String(repeating: "0", count: exponent)
        return Int64((isNegative ? "-" : "") + (text.isEmpty ? "0" : text))
    }
}

/// PostgreSQL's text of an array, such as `{1,NULL,"a,b"}` or `[0:1]={…}`.
package struct ArrayText {
    private let bytes: ArraySlice<UInt8>
    private var index: Int
    private let element: PostgresKind
    private let separator: UInt8

    package init(
        _ bytes: ArraySlice<UInt8>, of element: PostgresKind, separator: UInt8 = PostgresKind.comma
    ) {
        self.bytes = bytes
        self.element = element
        self.separator = separator
        index = bytes.startIndex
        if bytes.first == UInt8(ascii: "["), let sign = bytes.firstIndex(of: UInt8(ascii: "=")) {
            index = sign + 1
        }
    }

    /// Returns the elements, or `nil` if the text is not an array.
    package mutating func list() -> [FieldValue]? {
        guard let list = nested(depth: 0), index == bytes.endIndex else { return nil }
        return list
    }

    private mutating func take() -> UInt8? {
        guard index < bytes.endIndex else { return nil }
        defer { index += 1 }
        return bytes[index]
    }

    /// Parses an array or sub-array.
    ///
    /// PostgreSQL allows at most six dimensions.
    private mutating func nested(depth: Int) -> [FieldValue]? {
        guard depth < 6, take() == UInt8(ascii: "{") else { return nil }
        var values: [FieldValue] = []
        if index < bytes.endIndex, bytes[index] == UInt8(ascii: "}") {
            index += 1
            return []
        }
        while true {
            guard index < bytes.endIndex else { return nil }
            if bytes[index] == UInt8(ascii: "{") {
                guard let inner = nested(depth: depth + 1) else { return nil }
                values.append(.list(inner))
            } else {
                guard let value = scalar() else { return nil }
                values.append(value)
            }
            switch take() {
            case separator?: continue
            case UInt8(ascii: "}")?: return values
            default: return nil
            }
        }
    }

    private mutating func scalar() -> FieldValue? {
        var text: [UInt8] = []
        var hasEscapes = false
        let isQuoted = bytes[index] == UInt8(ascii: "\"")
        if isQuoted { index += 1 }
        while index < bytes.endIndex {
            let byte = bytes[index]
            if isQuoted ? byte == UInt8(ascii: "\"") : byte == separator || byte == 0x7D { break }
            if byte == UInt8(ascii: "\\") {
                hasEscapes = true
                index += 1
            }
            guard let taken = take() else { return nil }
            text.append(taken)
        }
        // Without its backslashes, a text may contain a run of combining marks that was not visible
        // as one before.
        if hasEscapes, PostgresKind.string(text[...]).hasEndlessMarks { return nil }
        if isQuoted {
            guard take() != nil else { return nil }
        } else if text.elementsEqual("NULL".utf8) {
            return .null
        }
        return element.value(of: text[...])
    }
}
