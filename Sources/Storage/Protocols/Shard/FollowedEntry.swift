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

extension FollowedEntry {
    /// What a change takes in memory while it waits to be worked, in bytes, about; 0 of another
    /// entry.
    ///
    /// - Complexity: O(*n*) in the number of values, of a change that was read.
    package var memoryBytes: Int {
        guard case .change(let logged, _) = body else { return 0 }
        switch logged {
        case .stored(let text): return text.utf8.count
        case .read(let change):
            return [change.before, change.after, change.kept?.image].reduce(256) { bytes, image in
                (image?.fields ?? [:]).reduce(bytes) {
                    $0 + $1.key.utf8.count + $1.value.memoryBytes
                }
            }
        }
    }
}

extension FieldValue {
    /// What a value takes in memory, in bytes, about.
    ///
    /// - Complexity: O(*n*) in the number of values within.
    package var memoryBytes: Int {
        switch self {
        case .string(let text): 16 + text.utf8.count
        case .bytes(let bytes): 32 + bytes.count
        case .list(let values): values.reduce(32) { $0 + $1.memoryBytes }
        case .set(let values): values.reduce(32) { $0 + $1.memoryBytes }
        case .map(let members):
            members.reduce(32) { $0 + $1.key.utf8.count + $1.value.memoryBytes }
        default: 16
        }
    }
}
