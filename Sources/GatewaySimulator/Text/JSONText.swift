/// Reads a JSON text without building a tree, to check it and to break it into lines.
///
/// Foundation's parser loses the order of members and the digits of numbers, and a push must be
/// printed as it was sent.
struct JSONText {
    /// Where a text is not JSON.
    struct Fault: Error, Equatable {
        /// The offset of the first byte that does not fit.
        var offset: Int
        /// What was expected there.
        var expected: String
    }

    /// The maximum nesting depth, limited because the parser recurses.
    static let maximumDepth = 128

    private let bytes: [UInt8]
    private var offset = 0
    private var lines: [UInt8] = []

    private init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Returns the text of an object with one member a line; `nil` if it is not a JSON object.
    static func pretty(_ bytes: [UInt8]) -> String? {
        var reader = JSONText(bytes)
        guard (try? reader.readObjectText()) != nil else { return nil }
        return String(decoding: reader.lines, as: UTF8.self)
    }

    /// Returns why `bytes` are not a JSON object, or `nil` if they are one.
    static func fault(in bytes: [UInt8]) -> Fault? {
        var reader = JSONText(bytes)
        do throws(Fault) {
            try reader.readObjectText()
            return nil
        } catch {
            return error
        }
    }

    /// Returns `text` as a JSON string, including its quotes.
    static func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case _ where scalar.value < 0x20:
                let hex = String(scalar.value, radix: 16)
                quoted += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}

extension JSONText {
    private mutating func readObjectText() throws(Fault) {
        guard String(validating: bytes, as: UTF8.self) != nil else {
            throw Fault(offset: 0, expected: "UTF-8")
        }
        skipSpace()
        guard peek() == UInt8(ascii: "{") else { throw fault("an object") }
        try readValue(depth: 0)
        skipSpace()
        guard offset == bytes.count else { throw fault("the end") }
    }

    private mutating func readValue(depth: Int) throws(Fault) {
        guard depth < Self.maximumDepth else { throw fault("shallower nesting") }
        switch peek() {
        case UInt8(ascii: "{"): try readMembers(depth: depth, closing: "}")
        case UInt8(ascii: "["): try readMembers(depth: depth, closing: "]")
        case UInt8(ascii: "\""): try readString()
        case UInt8(ascii: "t"): try readWord("true")
        case UInt8(ascii: "f"): try readWord("false")
        case UInt8(ascii: "n"): try readWord("null")
        default: try readNumber()
        }
    }

    /// Reads an object or an array, which `closing` tells apart.
    private mutating func readMembers(depth: Int, closing: Unicode.Scalar) throws(Fault) {
        take()
        skipSpace()
        if peek() == UInt8(ascii: closing) { return take() }
        while true {
            newLine(depth: depth + 1)
            if closing == "}" { try readName() }
            try readValue(depth: depth + 1)
            skipSpace()
            guard peek() == UInt8(ascii: ",") else { break }
            take()
            skipSpace()
        }
        guard peek() == UInt8(ascii: closing) else { throw fault("',' or '\(closing)'") }
        newLine(depth: depth)
        take()
    }

    private mutating func readName() throws(Fault) {
        guard peek() == UInt8(ascii: "\"") else { throw fault("a member's name") }
        try readString()
        skipSpace()
        guard peek() == UInt8(ascii: ":") else { throw fault("':'") }
        take()
        lines.append(UInt8(ascii: " "))
        skipSpace()
    }

    private mutating func readString() throws(Fault) {
        take()
        while let byte = peek() {
            switch byte {
            case UInt8(ascii: "\""): return take()
            case UInt8(ascii: "\\"):
                take()
                try readEscape()
            case 0..<0x20: throw fault("an escape instead of a control character")
            default: take()
            }
        }
        throw fault("'\"'")
    }

    private mutating func readEscape() throws(Fault) {
        guard let byte = peek(), "\"\\/bfnrtu".utf8.contains(byte) else {
            throw fault("an escape")
        }
        take()
        guard byte == UInt8(ascii: "u") else { return }
        for _ in 0..<4 {
            guard let digit = peek(), Character(Unicode.Scalar(digit)).isHexDigit else {
                throw fault("a hexadecimal digit")
            }
            take()
        }
    }

    private mutating func readNumber() throws(Fault) {
        if peek() == UInt8(ascii: "-") { take() }
        if peek() == UInt8(ascii: "0") { take() } else { try readDigits("a value") }
        if peek() == UInt8(ascii: ".") {
            take()
            try readDigits("a digit")
        }
        guard peek() == UInt8(ascii: "e") || peek() == UInt8(ascii: "E") else { return }
        take()
        if peek() == UInt8(ascii: "+") || peek() == UInt8(ascii: "-") { take() }
        try readDigits("a digit")
    }

    private mutating func readDigits(_ expected: String) throws(Fault) {
        guard let first = peek(), isDigit(first) else { throw fault(expected) }
        while let byte = peek(), isDigit(byte) { take() }
    }

    private mutating func readWord(_ word: String) throws(Fault) {
        for byte in word.utf8 {
            guard peek() == byte else { throw fault("'\(word)'") }
            take()
        }
    }

    private func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }

    private func peek() -> UInt8? {
        offset < bytes.count ? bytes[offset] : nil
    }

    private mutating func take() {
        lines.append(bytes[offset])
        offset += 1
    }

    private mutating func skipSpace() {
        while let byte = peek(), " \n\r\t".utf8.contains(byte) { offset += 1 }
    }

    private mutating func newLine(depth: Int) {
        lines.append(UInt8(ascii: "\n"))
        lines.append(contentsOf: repeatElement(UInt8(ascii: " "), count: depth * 2))
    }

    private func fault(_ expected: String) -> Fault {
        Fault(offset: offset, expected: expected)
    }
}
