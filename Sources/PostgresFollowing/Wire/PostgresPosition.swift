/// A place in PostgreSQL's log (LSN), in bytes from its beginning.
package struct PostgresPosition: Sendable, Hashable, Comparable, CustomStringConvertible {
    package let rawValue: UInt64

    package init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// Reads PostgreSQL's own form, as `16/B374D848`.
    package init?(_ text: some StringProtocol) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, let high = UInt32(parts[0], radix: 16),
            let low = UInt32(parts[1], radix: 16)
        else { return nil }
        rawValue = UInt64(high) << 32 | UInt64(low)
    }

    /// Before everything; a slot that is followed from here begins where it was confirmed.
    package static let zero = PostgresPosition(rawValue: 0)

    package var description: String {
        let high = String(rawValue >> 32, radix: 16, uppercase: true)
        return high + "/" + String(rawValue & 0xFFFF_FFFF, radix: 16, uppercase: true)
    }

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
