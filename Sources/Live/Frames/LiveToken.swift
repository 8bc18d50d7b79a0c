package import RelayModel

/// A resume token: the position in the log up to which a client knows all entries.
///
/// It is opaque to clients, is no credential, and is the same for all clients at one position.
package struct LiveToken: Sendable, Hashable {
    /// The store's identity, as it appears in tokens.
    package let store: String
    /// The position up to which the client has been told all entries.
    package let position: LogPosition

    /// Creates the token of a position.
    package init(store: String, position: LogPosition) {
        self.store = store
        self.position = position
    }

    /// Parses the output of ``text``; `nil` if the text is not a token.
    package init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0] == "1", !parts[1].isEmpty, parts[1].utf8.count <= 64,
            let position = UInt64(parts[2], radix: 36)
        else { return nil }
        self.init(store: String(parts[1]), position: LogPosition(position))
    }

    /// The text that clients keep.
    package var text: String { "1-\(store)-\(String(position.rawValue, radix: 36))" }
}
