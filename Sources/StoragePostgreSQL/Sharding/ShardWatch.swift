import PostgresLink
package import Storage

/// Looks at all shards of a service: who owns each, and which containers lie there.
///
/// libpq waits, so all of it happens on a thread of its own, one call after the other.
package final class ShardWatch: Sendable {
    /// What belongs to the thread.
    private final class ThreadState: @unchecked Sendable {
        let reader: ShardReader

        init(_ reader: ShardReader) { self.reader = reader }
    }

    private let thread: PostgresThread
    private let state: ThreadState

    /// How many connections it has.
    package static let connectionCount = 1

    /// Begins to watch the shards in `schemas` of the database at `place`; nothing is asked yet.
    ///
    /// - Throws: ``StorageError/inaccessible(path:reason:)`` if the process has no descriptor left.
    package init(_ place: PostgresPlace, schemas: [String]) throws(StorageError) {
        guard let thread = PostgresThread() else {
            throw .inaccessible(path: "\(place)", reason: "the process has no descriptor left")
        }
        self.thread = thread
        state = ThreadState(
            ShardReader(PostgresSession(place: place, name: "belfry shards"), schemas))
        thread.start()
    }

    deinit { thread.end() }

    /// What is to be seen now of each shard; one that is locked for a moment is left out.
    ///
    /// - Throws: ``StorageError`` if the server cannot be asked.
    package func look() async throws -> [ShardSight] {
        try await thread.run { [state] in try state.reader.look() }
    }
}
