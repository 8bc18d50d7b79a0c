import RelayModel

/// A moment as ISO 8601 text with an offset, as Minapp writes dates.
enum InternetDate {
    /// Reads `2018-09-01T18:31:02.631000+08:00`; the fraction may be left out, `Z` is UTC.
    ///
    /// Returns `nil` for everything else, a date without time or offset included.
    static func read(_ text: String) -> Timestamp? {
        Timestamp(iso8601: text, with: [.seconds, .offset])
    }
}
