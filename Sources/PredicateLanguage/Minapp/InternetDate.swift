import RelayModel

/// Dates as ISO 8601 text with an offset, as Minapp writes them.
enum InternetDate {
    /// Reads a date such as `2018-09-01T18:31:02.631000+08:00`.
    ///
    /// The fraction is optional, and `Z` means UTC.
    ///
    /// Returns `nil` for any other text, including a date without a time or an offset.
    static func read(_ text: String) -> Timestamp? {
        // Most texts are no dates, and a condition may ask for those of a long list.
        guard (shortest...longest).contains(text.utf8.count),
            text.utf8.first.map({ 0x30...0x39 ~= $0 }) == true
        else { return nil }
        return Timestamp(iso8601: text, with: [.seconds, .offset])
    }

    /// The bytes of `2018-09-01T18:31:02Z`.
    private static let shortest = 20
    /// The bytes of `2018-09-01T18:31:02.631000000+08:00`.
    private static let longest = 35
}
