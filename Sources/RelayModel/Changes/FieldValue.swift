/// The value of one field of a record, whichever database it came from.
///
/// Booleans are numbers to a predicate (`TRUE == 1`), as in NSPredicate. They are a case of their
/// own here so that a record can be shown as it was posted.
///
/// ```swift
/// let fields: RecordFields = [
///     "title": .string("Lilies"), "sizes": .list([.integer(1)]),
/// ]
/// #expect(fields["title"]?.kind == "a text")
/// #expect(fields["sizes"]?.kind == "a list")
/// ```
public enum FieldValue: Sendable, Hashable {
    /// No value; to a predicate, a field that is absent means the same.
    case null
    /// A truth value.
    case bool(Bool)
    /// An exact integer.
    case integer(Int64)
    /// A floating-point number.
    case double(Double)
    /// A text.
    case string(String)
    /// A point in time.
    case timestamp(Timestamp)
    /// Bytes.
    case bytes([UInt8])
    /// A reference to another record; it is indirect because it would triple the size of all
    /// values.
    indirect case reference(RecordReference)
    /// A place on the Earth.
    case location(Location)
    /// A universally unique identifier, 16 bytes (RQL's `uuid(…)`).
    case uuid(UUIDBytes)
    /// A MongoDB object ID, 12 bytes (RQL's `oid(…)`).
    case objectID([UInt8])
    /// An ordered list.
    case list([FieldValue])
    /// An unordered collection; it never equals a list.
    case set(Set<FieldValue>)
    /// Named members: an embedded object or dictionary.
    case map([String: FieldValue])

    /// Whether this is ``null``.
    public var isNull: Bool {
        if case .null = self { true } else { false }
    }

    /// The word for this value's kind, as error messages use it.
    public var kind: String {
        switch self {
        case .null: "nil"
        case .bool: "a boolean"
        case .integer, .double: "a number"
        case .string: "a text"
        case .timestamp: "a date"
        case .bytes: "data"
        case .reference: "a reference"
        case .location: "a location"
        case .uuid: "a UUID"
        case .objectID: "an object ID"
        case .list: "a list"
        case .set: "a set"
        case .map: "a dictionary"
        }
    }
}

/// The fields of a record at one moment, by name.
public typealias RecordFields = [String: FieldValue]

/// A reference to another record, compared by name and zone.
public struct RecordReference: Sendable, Hashable {
    /// The record that this value refers to.
    public let recordID: RecordID

    /// Creates a reference to `recordID`.
    public init(_ recordID: RecordID) {
        self.recordID = recordID
    }
}

/// A place on the Earth (WGS 84).
///
/// Only the coordinates take part in predicates.
public struct Location: Sendable, Hashable {
    /// Degrees north, -90 to 90.
    public let latitude: Double
    /// Degrees east, -180 to 180.
    public let longitude: Double

    /// Creates a place, or returns `nil` if a coordinate is out of range.
    public init?(latitude: Double, longitude: Double) {
        guard (-90.0...90.0).contains(latitude), (-180.0...180.0).contains(longitude) else {
            return nil
        }
        self.latitude = latitude
        self.longitude = longitude
    }
}

/// The 16 bytes of a universally unique identifier, ordered as text.
public struct UUIDBytes: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The first eight bytes, big-endian.
    public let high: UInt64
    /// The last eight bytes, big-endian.
    public let low: UInt64

    /// Creates an identifier from its two halves.
    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Reads the canonical form, 8-4-4-4-12 hexadecimal digits in either case, or returns `nil`.
    public init?(_ text: some StringProtocol) {
        var halves: (UInt64, UInt64) = (0, 0)
        var digits = 0
        for (index, byte) in text.utf8.enumerated() {
            if index == 8 || index == 13 || index == 18 || index == 23 {
                guard byte == UInt8(ascii: "-") else { return nil }
                continue
            }
            guard digits < 32, let digit = Hexadecimal.value(of: byte) else { return nil }
            if digits < 16 {
                halves.0 = halves.0 << 4 | UInt64(digit)
            } else {
                halves.1 = halves.1 << 4 | UInt64(digit)
            }
            digits += 1
        }
        guard digits == 32 else { return nil }
        self.init(high: halves.0, low: halves.1)
    }

    /// The canonical form in lower case, as `apns-id` wants it.
    public var description: String {
        var text = [UInt8](repeating: UInt8(ascii: "-"), count: 36)
        var place = 0
        for nibble in 0..<32 {
            if nibble == 8 || nibble == 12 || nibble == 16 || nibble == 20 { place += 1 }
            let half = nibble < 16 ? high : low
            let digit = UInt8(truncatingIfNeeded: half >> UInt64((15 - nibble % 16) * 4)) & 15
            text[place] = digit < 10 ? 0x30 + digit : 0x57 + digit
            place += 1
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The 16 bytes in order.
    public var bytes: [UInt8] {
        (0..<16).map {
            UInt8(truncatingIfNeeded: ($0 < 8 ? high : low) >> UInt64((7 - $0 % 8) * 8))
        }
    }

    /// Creates an identifier from 16 bytes in order, or returns `nil` if there are not 16.
    public init?(bytes: some Collection<UInt8>) {
        guard bytes.count == 16 else { return nil }
        var halves: (UInt64, UInt64) = (0, 0)
        for (index, byte) in bytes.enumerated() {
            if index < 8 {
                halves.0 = halves.0 << 8 | UInt64(byte)
            } else {
                halves.1 = halves.1 << 8 | UInt64(byte)
            }
        }
        self.init(high: halves.0, low: halves.1)
    }

    /// Compares by bytes.
    public static func < (left: UUIDBytes, right: UUIDBytes) -> Bool {
        (left.high, left.low) < (right.high, right.low)
    }
}
