import ChangeSources

/// A position in PostgreSQL's write-ahead log (LSN), in bytes from its beginning.
package struct PostgresPosition: Sendable, Hashable, Comparable, CustomStringConvertible {
    package let rawValue: UInt64

    package init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// Parses PostgreSQL's notation, such as `16/B374D848`.
    package init?(_ text: some StringProtocol) {
        guard let bytes = LogSequenceNumber.read(text) else { return nil }
        rawValue = bytes
    }

    /// The lowest position; a stream from here begins where the slot was confirmed.
    package static let zero = PostgresPosition(rawValue: 0)

    package var description: String {
        let high = String(rawValue >> 32, radix: 16, uppercase: true)
        return high + "/" + String(rawValue & 0xFFFF_FFFF, radix: 16, uppercase: true)
    }

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
