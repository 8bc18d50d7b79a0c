import RelayModel

/// The kinds of value that rows distinguish.
enum ValueClass: UInt8, Codable {
    /// Null, or absent from a full image.
    case null
    /// An integer, a double or a boolean, which are one numeric kind in NSPredicate.
    case number
    case string
    case date
    case bytes
    case reference
    case location
    case uuid
    case objectID
    /// A boolean under rules that do not treat it as a number.
    case boolean
    /// A list, a set or a dictionary; its elements are slots of their own.
    case collection
    /// Absent from a partial image.
    case unknown
    /// A double that is not a number, or a collection inside a collection; it equals no constant.
    case notANumber

    /// Whether a value of this class can be a key on its own.
    var isScalar: Bool { rawValue <= ValueClass.boolean.rawValue }
}

/// One decoded value in 24 bytes: everything that rows compare, and the place of its bytes.
struct FieldSlot: BitwiseCopyable {
    /// The kind of the value.
    var kind: ValueClass
    /// Further properties of the value.
    var form: SlotForm = []
    /// The part of an ``OrderedNumber`` beyond ``order``.
    var tail: UInt16 = 0
    /// The number of bytes of the canonical form, or of elements of a collection.
    var length: UInt32 = 0
    /// For numbers and dates, an integer in the order of the values.
    ///
    /// For data in a view, the place and length of the text in which searches look.
    var order: Int64 = 0
    /// The start of the bytes or elements.
    var offset: UInt32 = 0

    /// Whether a list with this element is more than a list of scalars whose bytes are here.
    var isDeep: Bool { kind == .notANumber || form.contains(.altered) }

    /// Creates a slot without bytes.
    init(_ kind: ValueClass) {
        self.kind = kind
    }
}

/// A 64-bit integer or a double as an integer in the same order, without loss.
///
/// ``order`` is the order of the greatest double that is not above the number. ``tail`` is what an
/// integer beyond 2^53 adds to it; it is 0 for doubles and smaller integers.
struct OrderedNumber: Hashable {
    var order: Int64
    var tail: UInt16

    init(order: Int64, tail: UInt16 = 0) {
        self.order = order
        self.tail = tail
    }

    /// Creates the order of a double; returns `nil` for NaN.
    init?(_ number: Double) {
        if number.isNaN { return nil }
        order = Self.order(of: number)
        tail = 0
    }

    init(_ number: Int64) {
        let near = Double(number)
        if Int64(exactly: near) == number {
            order = Self.order(of: near)
            tail = 0
            return
        }
        let isAbove = Int64(exactly: near).map { $0 > number } ?? true
        let below = isAbove ? near.nextDown : near
        order = Self.order(of: below)
        tail = UInt16(number - Int64(below))
    }

    /// Returns the bits of a double, made monotone; -0 becomes 0.
    @inline(__always)
    static func order(of number: Double) -> Int64 {
        let bits = Int64(bitPattern: (number + 0).bitPattern)
        return bits ^ (bits >> 63 & Int64.max)
    }

    /// The inverse of ``order(of:)``.
    @inline(__always)
    static func number(of order: Int64) -> Double {
        Double(bitPattern: UInt64(bitPattern: order ^ (order >> 63 & Int64.max)))
    }

    /// The order from which doubles are always whole and integers may have a tail.
    static let largestPlain = order(of: 9_007_199_254_740_992)

    /// Whether bounds that are made of this number are exact without a tail.
    var isPlain: Bool { abs(order) < Self.largestPlain }
}

extension Timestamp {
    /// Nanoseconds since 1970, strictly inside 64 bits.
    ///
    /// The years 1678 to 2261 are exact; all moments before or after them have one value each.
    var order: Int64 {
        let (product, overflowed) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, carried) = product.addingReportingOverflow(Int64(nanoseconds))
        guard !overflowed, !carried else { return seconds < 0 ? Self.firstOrder : Self.lastOrder }
        return min(max(sum, Self.firstOrder), Self.lastOrder)
    }

    /// The order of every moment before the exact ones.
    static let firstOrder = Int64.min + 2
    /// The order of every moment after the exact ones.
    static let lastOrder = Int64.max - 2

    /// Whether ``order`` belongs to this moment alone.
    var isExact: Bool { (Self.firstOrder + 1..<Self.lastOrder).contains(order) }
}
