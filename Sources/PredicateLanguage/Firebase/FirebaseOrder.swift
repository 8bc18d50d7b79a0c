public import RelayModel

/// A value in Firebase's total order: nil, false, true, numbers, texts by UTF-16 units, and last
/// objects, which are all equal to each other.
public struct FirebaseValue: Sendable, Comparable {
    /// The value.
    public let value: FieldValue

    /// Creates an element of the order from a value.
    public init(_ value: FieldValue) {
        self.value = value
    }

    /// Returns whether neither value precedes the other.
    public static func == (left: FirebaseValue, right: FirebaseValue) -> Bool {
        !(left < right) && !(right < left)
    }

    /// Returns whether `left` precedes `right`.
    public static func < (left: FirebaseValue, right: FirebaseValue) -> Bool {
        switch (left.value, right.value) {
        case (.string(let one), .string(let other)):
            return one.utf16.lexicographicallyPrecedes(other.utf16)
        default:
            if left.rank != right.rank { return left.rank < right.rank }
            guard left.rank == Rank.number else { return false }
            return StrictOrder.precedes(left.number, right.number)
        }
    }

    /// The classes of values, in order.
    enum Rank: Int, Comparable {
        case nothing
        case no
        case yes
        case number
        case text
        case object

        static func < (left: Rank, right: Rank) -> Bool { left.rawValue < right.rawValue }
    }

    var rank: Rank {
        switch value {
        case .null: .nothing
        case .bool(let flag): flag ? .yes : .no
        case .integer, .double, .timestamp: .number
        case .string: .text
        default: .object
        }
    }

    /// The value as a number.
    ///
    /// A date counts as its milliseconds since 1970, as Firebase's clients write it.
    private var number: FieldValue {
        if case .timestamp(let moment) = value { .integer(moment.milliseconds) } else { value }
    }
}

/// A key in Firebase's order: keys that read as 32-bit integers come first, by value, and then all
/// others by UTF-16 units.
public struct FirebaseKey: Sendable, Hashable, Comparable {
    /// The key.
    public let text: String

    /// Creates an element of the order from a key.
    public init(_ text: String) {
        self.text = text
    }

    /// Returns whether the keys are the same text.
    public static func == (left: FirebaseKey, right: FirebaseKey) -> Bool {
        left.text.utf16.elementsEqual(right.text.utf16)
    }

    /// Hashes the UTF-16 units of the text.
    public func hash(into hasher: inout Hasher) {
        for unit in text.utf16 { hasher.combine(unit) }
    }

    /// Returns whether `left` precedes `right`.
    ///
    /// Of two equal numbers the shorter text comes first.
    public static func < (left: FirebaseKey, right: FirebaseKey) -> Bool {
        switch (left.number, right.number) {
        case (let one?, let other?):
            one == other ? left.text.utf8.count < right.text.utf8.count : one < other
        case (_?, nil): true
        case (nil, _?): false
        case (nil, nil): left.text.utf16.lexicographicallyPrecedes(right.text.utf16)
        }
    }

    /// The integer that the key reads as: an optional `-`, any number of zeros, and up to ten
    /// digits.
    private var number: Int32? {
        var digits = text.utf8[...]
        let isNegative = digits.first == UInt8(ascii: "-")
        if isNegative { digits = digits.dropFirst() }
        guard !digits.isEmpty, digits.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        let significant = digits.drop { $0 == 0x30 }
        guard significant.count <= 10 else { return nil }
        let magnitude = significant.reduce(Int64(0)) { $0 * 10 + Int64($1 - 0x30) }
        return Int32(exactly: isNegative ? -magnitude : magnitude)
    }
}

/// A child of a node, as Firebase's queries see it.
public struct FirebaseChild: Sendable, Hashable {
    /// The key of the child.
    public var key: String
    /// The value of the child.
    ///
    /// An object is a dictionary.
    public var value: FieldValue
    /// The priority of the child, or nil.
    public var priority: FieldValue

    /// Creates a child.
    ///
    /// A child without a priority comes before those that have one.
    public init(key: String, value: FieldValue, priority: FieldValue = .null) {
        self.key = key
        self.value = value
        self.priority = priority
    }

    /// The child as the fields of a record: the members of an object, and `$key`, `$value` and
    /// `$priority`, which cannot be names of an object's members.
    public var fields: RecordFields {
        var fields: RecordFields = [:]
        if case .map(let members) = value { fields = members }
        fields["$key"] = .string(key)
        fields["$value"] = value
        fields["$priority"] = priority
        return fields
    }
}
