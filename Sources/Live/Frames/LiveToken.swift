package import RelayModel

/// A resume token: the position in the log up to which a client knows all entries.
///
/// It is opaque to clients, is no credential, and is the same for all clients at one position.
package struct LiveToken: Sendable, Hashable {
    /// The store's identity, as it appears in tokens.
    package let store: String
    /// The position up to which the client has been told all entries.
    package let position: LogPosition
    /// The mark of the entry at the position; `nil` if it was not known.
    package let mark: UInt32?

    /// Creates the token of a position.
    package init(store: String, position: LogPosition, mark: UInt32? = nil) {
        self.store = store
        self.position = position
        self.mark = mark
    }

    /// Returns the mark of an entry, which tells it from the one that another history of the store
    /// has at its position: the lower half of the milliseconds at which it was appended.
    package static func mark(of appendedAt: Timestamp) -> UInt32 {
        UInt32(truncatingIfNeeded: appendedAt.milliseconds)
    }

    /// Parses the output of ``text``; `nil` if the text is not a token.
    package init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard (3...4).contains(parts.count), parts[0] == "1", !parts[1].isEmpty,
            parts[1].utf8.count <= 64, let position = UInt64(parts[2], radix: 36)
        else { return nil }
        let mark = parts.count == 4 ? UInt32(parts[3], radix: 36) : nil
        guard parts.count == 3 || mark != nil else { return nil }
        self.init(store: String(parts[1]), position: LogPosition(position), mark: mark)
    }

    /// The text that clients keep.
    package var text: String {
        let place = "1-\(store)-\(String(position.rawValue, radix: 36))"
        return mark.map { "\(place)-\(String($0, radix: 36))" } ?? place
    }
}
