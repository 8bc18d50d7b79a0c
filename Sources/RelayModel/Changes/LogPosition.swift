/// A position in a shard's log.
///
/// The first entry has position 1; 0 is the position before every entry.
public struct LogPosition: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The number of the entry, without gaps within its shard.
    public let rawValue: UInt64

    /// The position before the first entry.
    public static let start = LogPosition(0)

    /// Creates the position of the entry with this number.
    public init(_ rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// The position after this one.
    public var next: LogPosition { LogPosition(rawValue + 1) }

    /// The number in decimal.
    public var description: String { String(rawValue) }

    /// Compares by entry number.
    public static func < (left: LogPosition, right: LogPosition) -> Bool {
        left.rawValue < right.rawValue
    }
}
