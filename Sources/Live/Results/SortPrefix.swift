import RelayModel

/// Eight bytes that sort as the beginning of a value does (an abbreviated key).
///
/// Of two values with different prefixes, the one with the smaller prefix comes first in
/// ``RecordOrder``. Equal prefixes say nothing about the order.
struct SortPrefix: Sendable, Hashable, Comparable {
    private let bits: UInt64

    /// A prefix that decides nothing.
    static let none = SortPrefix(bits: 0)

    /// Creates the prefix of a value; its top three bits are the kind of the value.
    init(_ value: FieldValue) {
        let (kind, rest): (UInt64, UInt64) =
            switch value {
            case .null: (0, 0)
            case .bool(let flag): (1, Self.bits(of: flag ? 1.0 : 0.0))
            // Rounding to a double never reverses the order of two integers.
            case .integer(let number): (1, Self.bits(of: Double(number)))
            case .double(let number): (1, Self.bits(of: number))
            case .timestamp(let moment): (2, Self.bits(of: moment.seconds))
            case .string(let text): (3, Self.bits(of: text.utf8))
            case .bytes(let bytes), .objectID(let bytes): (4, Self.bits(of: bytes))
            case .uuid(let uuid): (4, uuid.high)
            case .reference(let reference):
                (5, Self.bits(of: reference.recordID.recordName.rawValue.utf8))
            case .location: (6, 0)
            case .list, .set, .map: (7, 0)
            }
        bits = kind << 61 | rest >> 3
    }

    private init(bits: UInt64) {
        self.bits = bits
    }

    static func < (left: SortPrefix, right: SortPrefix) -> Bool { left.bits < right.bits }

    /// Returns the bits of a double, transformed so that they sort as numbers.
    ///
    /// The bits of negative numbers are inverted, because they grow as the number falls. NaN comes
    /// first, and both zeros are equal.
    private static func bits(of number: Double) -> UInt64 {
        guard !number.isNaN else { return 0 }
        let bits = (number == 0 ? 0 : number).bitPattern
        return bits >> 63 == 1 ? ~bits : bits | 1 << 63
    }

    private static func bits(of number: Int64) -> UInt64 {
        UInt64(bitPattern: number) ^ 1 << 63
    }

    /// Returns the first eight bytes; a shorter text comes before the texts that it begins.
    private static func bits(of bytes: some Sequence<UInt8>) -> UInt64 {
        var (bits, count): (UInt64, UInt64) = (0, 0)
        for byte in bytes.prefix(8) {
            bits = bits << 8 | UInt64(byte)
            count += 8
        }
        return count == 64 ? bits : bits << (64 - count)
    }
}
