package import RelayModel

/// An entry of the log that exists but cannot be read, because its body is not what Belfry writes.
///
/// A damaged page is another case: then nothing in the file can be trusted, and the store stops.
package struct UnreadableEntry: Error, Sendable, Hashable {
    /// The position of the entry.
    package let position: LogPosition
    /// Whether the entry is a change.
    ///
    /// Otherwise it is an edit, whose content the registry has too.
    package let isChange: Bool
    /// What about the entry cannot be read.
    package let reason: String

    /// Creates a description of an unreadable entry.
    package init(position: LogPosition, isChange: Bool, reason: String) {
        self.position = position
        self.isChange = isChange
        self.reason = reason
    }
}
