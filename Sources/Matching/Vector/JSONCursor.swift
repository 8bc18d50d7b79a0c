import RelayModel

/// A position in a JSON text that is read once from left to right, without creating values.
///
/// The texts come from the log, so the relay wrote them. If a text does not fit nevertheless, the
/// cursor reports that, and the caller reads it with the parser, which can say what is wrong.
struct JSONCursor {
    let base: UnsafePointer<UInt8>
    let count: Int
    var index = 0

    /// The place of a string's content.
    struct Text {
        let start: Int
        let length: Int
        /// Whether the content has no escapes and only ASCII.
        let isPlain: Bool
        let hasEscapes: Bool
    }

    init(_ bytes: UnsafeBufferPointer<UInt8>) {
        base = bytes.baseAddress.unsafelyUnwrapped
        count = bytes.count
    }

    /// The byte at the position; 0 at the end.
    @inline(__always)
    var current: UInt8 { index < count ? base[index] : 0 }

    /// Skips `byte` if it is next, and returns whether it was.
    @inline(__always)
    mutating func take(_ byte: UInt8) -> Bool {
        guard current == byte else { return false }
        index += 1
        return true
    }

    /// Skips an ASCII text if it is next, and returns whether it was.
    @inline(__always)
    mutating func take(_ text: StaticString) -> Bool {
        let length = text.utf8CodeUnitCount
        guard count - index >= length else { return false }
        for offset in 0..<length where base[index + offset] != text.utf8Start[offset] {
            return false
        }
        index += length
        return true
    }

    @inline(__always)
    private func eight(at place: Int) -> UInt64 {
        UInt64(littleEndian: UnsafeRawPointer(base + place).loadUnaligned(as: UInt64.self))
    }

    /// Returns up to eight bytes from `start` on; missing bytes are 0.
    @inline(__always)
    func head(_ start: Int, _ length: Int) -> UInt64 {
        if start + 8 <= count {
            let word = eight(at: start)
            return length >= 8 ? word : word & (1 << UInt64(8 * length) - 1)
        }
        var word: UInt64 = 0
        for offset in 0..<min(length, 8) {
            word |= UInt64(base[start + offset]) << UInt64(8 * offset)
        }
        return word
    }

    // MARK: Strings

    private static let ones: UInt64 = 0x0101_0101_0101_0101
    private static let highs: UInt64 = 0x8080_8080_8080_8080

    /// Skips a string, eight bytes at a time, and returns its place; `nil` if there is no string or
    /// it has no end.
    @inline(__always)
    mutating func string() -> Text? {
        guard take(UInt8(ascii: "\"")) else { return nil }
        let start = index
        var seen: UInt64 = 0
        var hasEscapes = false
        while true {
            skipPlain(&seen)
            guard index < count else { return nil }
            let byte = base[index]
            if byte == UInt8(ascii: "\"") { break }
            if byte == UInt8(ascii: "\\") {
                hasEscapes = true
                index += 1
            }
            seen |= UInt64(byte)
            index += 1
        }
        let length = index - start
        index += 1
        return Text(
            start: start, length: length, isPlain: !hasEscapes && seen & Self.highs == 0,
            hasEscapes: hasEscapes)
    }

    /// Skips bytes that are neither quotes nor backslashes, as long as eight bytes are left.
    @inline(__always)
    private mutating func skipPlain(_ seen: inout UInt64) {
        while index + 8 <= count {
            let word = eight(at: index)
            let quote = word ^ (Self.ones &* UInt64(UInt8(ascii: "\"")))
            let slash = word ^ (Self.ones &* UInt64(UInt8(ascii: "\\")))
            // The lowest set bit marks the first byte that became 0.
            let hit =
                ((quote &- Self.ones) & ~quote | (slash &- Self.ones) & ~slash) & Self.highs
            if hit == 0 {
                seen |= word
                index += 8
                continue
            }
            let plain = hit.trailingZeroBitCount & ~7
            seen |= word & (1 << UInt64(plain) - 1)
            index += plain / 8
            return
        }
    }

    // MARK: Values

    /// Skips a value, and returns whether it is complete.
    mutating func skipValue() -> Bool {
        var depth = 0
        repeat {
            switch current {
            case UInt8(ascii: "\""):
                if string() == nil { return false }
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth += 1
                index += 1
                continue
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                depth -= 1
                index += 1
            case UInt8(ascii: ","), UInt8(ascii: ":"):
                if depth == 0 { return false }
                index += 1
                continue
            default:
                if !skipWord() { return false }
            }
        } while depth > 0
        return depth == 0
    }

    /// Skips a number or a literal.
    private mutating func skipWord() -> Bool {
        let start = index
        while index < count {
            switch base[index] {
            case UInt8(ascii: ","), UInt8(ascii: "}"), UInt8(ascii: "]"): return index > start
            default: index += 1
            }
        }
        return index > start
    }

    /// A number whose value is known exactly.
    enum Number {
        case integer(Int64)
        case double(Double)
    }

    /// Skips a number and returns its value; `nil` if the value needs more than one rounding.
    ///
    /// In that case the position does not change.
    @inline(__always)
    mutating func number() -> Number? {
        let start = index
        let isNegative = take(UInt8(ascii: "-"))
        var mantissa: UInt64 = 0
        let first = index
        digits(&mantissa)
        let whole = index - first
        var fraction = 0
        if current == UInt8(ascii: ".") {
            index += 1
            let begin = index
            digits(&mantissa)
            fraction = index - begin
        }
        let byte = current
        // Eighteen digits and a sign fit 64 bits.
        guard whole > 0, whole + fraction <= 18, byte != UInt8(ascii: "e"),
            byte != UInt8(ascii: "E")
        else {
            index = start
            return nil
        }
        if fraction == 0 {
            let integer = Int64(mantissa)
            return .integer(isNegative ? -integer : integer)
        }
        guard let double = Double(mantissa: mantissa, exponent: -fraction) else {
            index = start
            return nil
        }
        return .double(isNegative ? -double : double)
    }

    @inline(__always)
    private mutating func digits(_ mantissa: inout UInt64) {
        while index < count {
            let digit = base[index] &- 0x30
            if digit > 9 { return }
            mantissa = mantissa &* 10 &+ UInt64(digit)
            index += 1
        }
    }
}
