import RelayModel

/// The kinds of value that a row tells apart.
enum ValueClass: UInt8, Codable {
    /// nil, or absent from a full image.
    case null
    /// An integer, a double or a truth value: one numeric kind (NSPredicate).
    case number
    case string
    case date
    case bytes
    case reference
    case location
    case uuid
    case objectID
    /// A truth value, where the rules do not take it for a number.
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

/// One decoded value, in 24 bytes: everything that rows compare, and where its bytes are.
struct FieldSlot: BitwiseCopyable {
    /// Its kind.
    var kind: ValueClass
    /// What else there is to know of it.
    var form: SlotForm = []
    /// What an ``OrderedNumber`` has beyond ``order``.
    var tail: UInt16 = 0
    /// Bytes of the canonical form, or elements of a collection.
    var length: UInt32 = 0
    /// Numbers and dates: an integer in the order of the values; of data in a view, where the text
    /// lies that is searched.
    var order: Int64 = 0
    /// Where the bytes or elements begin.
    var offset: UInt32 = 0

    /// Whether a list with it is more than scalars whose bytes are here.
    var isDeep: Bool { kind == .notANumber || form.contains(.altered) }

    /// A slot without bytes.
    init(_ kind: ValueClass) {
        self.kind = kind
    }
}

/// A 64-bit integer or double as an integer in the same order, exactly.
///
/// ``order`` is that of the greatest double that is not above the number, ``tail`` what an integer
/// beyond 2^53 has on top of it; doubles and smaller integers have none.
struct OrderedNumber: Hashable {
    var order: Int64
    var tail: UInt16

    init(order: Int64, tail: UInt16 = 0) {
        self.order = order
        self.tail = tail
    }

    /// Orders by value; `nil` for what is not a number.
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

    /// The bits of a double, made monotone; -0 is 0.
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

    /// Doubles of this size and more are whole, and integers beyond may have a tail.
    static let largestPlain = order(of: 9_007_199_254_740_992)

    /// Whether bounds made of this number stay exact without their tail.
    var isPlain: Bool { abs(order) < Self.largestPlain }
}

extension Timestamp {
    /// Nanoseconds since 1970, kept strictly inside 64 bits: the years 1678 to 2261 are exact, what
    /// lies beyond is one moment at each end.
    var order: Int64 {
        let (product, overflowed) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, carried) = product.addingReportingOverflow(Int64(nanoseconds))
        guard !overflowed, !carried else { return seconds < 0 ? Self.firstOrder : Self.lastOrder }
        return min(max(sum, Self.firstOrder), Self.lastOrder)
    }

    /// Stands for every moment before the exact ones.
    static let firstOrder = Int64.min + 2
    /// Stands for every moment after the exact ones.
    static let lastOrder = Int64.max - 2

    /// Whether ``order`` is this moment's alone.
    var isExact: Bool { (Self.firstOrder + 1..<Self.lastOrder).contains(order) }
}
