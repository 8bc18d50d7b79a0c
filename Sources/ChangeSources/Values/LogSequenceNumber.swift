/// PostgreSQL's notation for a position in its log (LSN), such as `16/B374D848`.
package enum LogSequenceNumber {
    /// Parses a position as the number of bytes from the beginning of the log; `nil` if `text` is
    /// malformed.
    package static func read(_ text: some StringProtocol) -> UInt64? {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, let high = UInt32(parts[0], radix: 16),
            let low = UInt32(parts[1], radix: 16)
        else { return nil }
        return UInt64(high) << 32 | UInt64(low)
    }
}
