/// Decodes the fields of a message, and never reads beyond its end.
struct MessageScanner {
    private let bytes: [UInt8]
    private(set) var index: Int

    init(_ bytes: [UInt8], from index: Int = 0) {
        self.bytes = bytes
        self.index = index
    }

    var isAtEnd: Bool { index >= bytes.count }

    mutating func byte() throws(MalformedMessage) -> UInt8 {
        guard index < bytes.count else { throw MalformedMessage("ends too early") }
        defer { index += 1 }
        return bytes[index]
    }

    /// Reads an unsigned big-endian number of `size` bytes.
    private mutating func number(_ size: Int) throws(MalformedMessage) -> UInt64 {
        guard bytes.count - index >= size else { throw MalformedMessage("ends too early") }
        var value: UInt64 = 0
        for byte in bytes[index..<index + size] { value = value << 8 | UInt64(byte) }
        index += size
        return value
    }

    mutating func int16() throws(MalformedMessage) -> Int {
        Int(Int16(truncatingIfNeeded: try number(2)))
    }

    mutating func int32() throws(MalformedMessage) -> Int {
        Int(Int32(truncatingIfNeeded: try number(4)))
    }

    mutating func uint32() throws(MalformedMessage) -> UInt32 {
        UInt32(truncatingIfNeeded: try number(4))
    }

    mutating func int64() throws(MalformedMessage) -> Int64 {
        Int64(bitPattern: try number(8))
    }

    mutating func position() throws(MalformedMessage) -> PostgresPosition {
        PostgresPosition(rawValue: try number(8))
    }

    /// Reads a text that ends with a zero byte.
    mutating func text() throws(MalformedMessage) -> String {
        guard let end = bytes[index...].firstIndex(of: 0) else {
            throw MalformedMessage("has a text that does not end")
        }
        defer { index = end + 1 }
        return String(decoding: bytes[index..<end], as: UTF8.self)
    }

    /// Reads the next `count` bytes.
    mutating func slice(_ count: Int) throws(MalformedMessage) -> ArraySlice<UInt8> {
        guard count >= 0, bytes.count - index >= count else {
            throw MalformedMessage("ends too early")
        }
        defer { index += count }
        return bytes[index..<index + count]
    }
}

/// A message of the server that does not follow the protocol.
package struct MalformedMessage: Error, Sendable, Hashable, CustomStringConvertible {
    package let description: String

    init(_ what: String) {
        description = "a message of the server \(what)"
    }
}
