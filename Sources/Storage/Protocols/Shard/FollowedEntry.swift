package import RelayModel

/// An entry of the log as the follower reads it.
///
/// A change that comes from the store is not decoded until it is needed.
package struct FollowedEntry: Sendable {
    /// The position of the entry.
    package let position: LogPosition
    /// When it was appended.
    package let appendedAt: Timestamp
    /// The container and environment of the entry.
    package let container: ContainerKey
    /// The content of the entry.
    package let body: FollowedBody
    /// Whether the entry before it was appended by the same request.
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

    /// Creates the entry from one that is already decoded.
    package init(_ entry: LogEntry) {
        self.init(
            position: entry.position, appendedAt: entry.appendedAt, container: entry.container,
            body: FollowedBody(entry.body), continuesRequest: entry.continuesRequest)
    }
}

/// The content of an entry for the follower.
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

/// A change in the log: a value if it was just appended, or text if it comes from the store.
package enum LoggedChange: Sendable, Hashable {
    /// As it was appended.
    case read(RecordChange)
    /// The JSON text of ``RelayModel/RecordChange/storedForm``.
    case stored(String)

    /// Returns the change, decoding it if necessary.
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
    /// The approximate memory of a change that waits to be worked, in bytes; 0 for an edit.
    ///
    /// - Complexity: O(*n*) in the number of values, if the change is decoded.
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
    /// The approximate memory of a value, in bytes.
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
