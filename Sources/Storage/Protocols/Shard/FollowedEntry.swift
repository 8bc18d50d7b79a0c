package import RelayModel

/// An entry of the log as the follower wants it: a change that comes from the file is not read
/// before something asks for it.
package struct FollowedEntry: Sendable {
    /// Its place.
    package let position: LogPosition
    /// When it was appended.
    package let appendedAt: Timestamp
    /// The container and environment it belongs to.
    package let container: ContainerKey
    /// What it says.
    package let body: FollowedBody
    /// Whether the request that appended the entry before it appended it too.
    package let continuesRequest: Bool

    package init(
        position: LogPosition, appendedAt: Timestamp, container: ContainerKey, body: FollowedBody,
        continuesRequest: Bool = false
    ) {
        self.position = position
        self.appendedAt = appendedAt
        self.container = container
        self.body = body
        self.continuesRequest = continuesRequest
    }

    /// An entry that has been read.
    package init(_ entry: LogEntry) {
        self.init(
            position: entry.position, appendedAt: entry.appendedAt, container: entry.container,
            body: FollowedBody(entry.body), continuesRequest: entry.continuesRequest)
    }
}

/// What an entry says to the follower.
package enum FollowedBody: Sendable {
    /// A record changed.
    case change(LoggedChange, isStale: Bool)
    /// A subscription or device was edited.
    case edit(LogEntryBody)

    init(_ body: LogEntryBody) {
        self =
            if case .change(let change, _, let isStale) = body {
                .change(.read(change), isStale: isStale)
            } else {
                .edit(body)
            }
    }
}

/// A change in the log: as a value where it was just appended, as text where it comes from the
/// file.
package enum LoggedChange: Sendable, Hashable {
    /// As it was appended.
    case read(RecordChange)
    /// The JSON text of ``RelayModel/RecordChange/storedForm``.
    case stored(String)

    /// The change.
    ///
    /// - Throws: ``StorageError/damaged(path:reason:)`` if the text is not one that Belfry writes.
    package func change() throws -> RecordChange {
        switch self {
        case .read(let change): return change
        case .stored(let text):
            do {
                return try RecordChange(storedForm: try JSONValue(stored: text))
            } catch {
                throw StorageError.damaged(path: "the log", reason: "a change: \(error)")
            }
        }
    }
}
