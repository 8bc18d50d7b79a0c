import RelayModel

/// Dates as ISO 8601 text with an offset, as Minapp writes them.
enum InternetDate {
    /// Reads a date such as `2018-09-01T18:31:02.631000+08:00`.
    ///
    /// The fraction is optional, and `Z` means UTC.
    ///
    /// Returns `nil` for any other text, including a date without a time or an offset.
    static func read(_ text: String) -> Timestamp? {
        Timestamp(iso8601: text, with: [.seconds, .offset])
    }
}
