/// How PostgreSQL writes a place in its log (LSN): `16/B374D848`.
package enum LogSequenceNumber {
    /// The bytes from the beginning of the log, or `nil` if `text` is no such place.
    package static func read(_ text: some StringProtocol) -> UInt64? {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, let high = UInt32(parts[0], radix: 16),
            let low = UInt32(parts[1], radix: 16)
        else { return nil }
        return UInt64(high) << 32 | UInt64(low)
    }
}
