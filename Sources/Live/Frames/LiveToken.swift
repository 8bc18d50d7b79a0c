package import RelayModel

/// Where a client stands in the log: opaque, no credential, and the same for all who stand there.
package struct LiveToken: Sendable, Hashable {
    /// The mark of the store.
    package let store: String
    /// All entries up to here have been told.
    package let position: LogPosition

    /// Says where somebody stands.
    package init(store: String, position: LogPosition) {
        self.store = store
        self.position = position
    }

    /// Reads what ``text`` wrote; `nil` if it is something else.
    package init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0] == "1", !parts[1].isEmpty, parts[1].utf8.count <= 64,
            let position = UInt64(parts[2], radix: 36)
        else { return nil }
        self.init(store: String(parts[1]), position: LogPosition(position))
    }

    /// The token as clients keep it.
    package var text: String { "1-\(store)-\(String(position.rawValue, radix: 36))" }
}
