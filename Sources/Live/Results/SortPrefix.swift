import RelayModel

/// Eight bytes that sort as values do, as far as they reach (an abbreviated key).
///
/// Of two values the one with the smaller prefix comes first in ``RecordOrder``; of equal prefixes
/// nothing is known.
struct SortPrefix: Sendable, Hashable, Comparable {
    private let bits: UInt64

    /// Says nothing.
    static let none = SortPrefix(bits: 0)

    /// The beginning of a value: three bits say of which kind it is.
    init(_ value: FieldValue) {
        let (kind, rest): (UInt64, UInt64) =
            switch value {
            case .null: (0, 0)
            case .bool(let flag): (1, Self.bits(of: flag ? 1.0 : 0.0))
            // The nearest double of a larger integer is never smaller.
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

    /// The bits of a double, turned so that they sort as numbers.
    ///
    /// Negative ones fall as their bits rise. What is no number comes first; both zeros are one.
    private static func bits(of number: Double) -> UInt64 {
        guard !number.isNaN else { return 0 }
        let bits = (number == 0 ? 0 : number).bitPattern
        return bits >> 63 == 1 ? ~bits : bits | 1 << 63
    }

    private static func bits(of number: Int64) -> UInt64 {
        UInt64(bitPattern: number) ^ 1 << 63
    }

    /// The first eight bytes; shorter ones come before what they begin.
    private static func bits(of bytes: some Sequence<UInt8>) -> UInt64 {
        var (bits, count): (UInt64, UInt64) = (0, 0)
        for byte in bytes.prefix(8) {
            bits = bits << 8 | UInt64(byte)
            count += 8
        }
        return count == 64 ? bits : bits << (64 - count)
    }
}
