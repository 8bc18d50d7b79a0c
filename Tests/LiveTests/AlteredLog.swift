import RelayModel
import Storage
import StorageSQL

/// A store's log, altered for those who follow it.
protocol AlteredLog: ShardLog {
    var store: RelayStore { get }
}

extension AlteredLog {
    func entries(after position: LogPosition, limit: Int) async throws -> [LogEntry] {
        try await store.entries(after: position, limit: limit)
    }

    func quarantine(_ entry: UnreadableEntry, at now: Timestamp) async throws {
        try await store.quarantine(entry, at: now)
    }

    func head() async throws -> LogPosition { try await store.head() }

    func waitForGrowth(beyond position: LogPosition) async throws {
        try await store.waitForGrowth(beyond: position)
    }
}
