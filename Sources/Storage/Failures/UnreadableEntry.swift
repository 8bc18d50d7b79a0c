package import RelayModel

/// An entry of the log that is there and cannot be read: its body is not what Belfry writes.
///
/// A damaged page is not this: then nothing of the file can be believed, and the store stops.
package struct UnreadableEntry: Error, Sendable, Hashable {
    /// Its place.
    package let position: LogPosition
    /// Whether it is a change; otherwise an edit, of which the registry knows as much.
    package let isChange: Bool
    /// What about it cannot be read.
    package let reason: String

    /// Names an entry that cannot be read.
    package init(position: LogPosition, isChange: Bool, reason: String) {
        self.position = position
        self.isChange = isChange
        self.reason = reason
    }
}
