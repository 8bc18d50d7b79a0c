import PostgresLink
package import Storage

/// Watches all shards of a service: who owns each, and which containers it has.
///
/// libpq blocks, so everything happens on a thread of its own, one call after the other.
package final class ShardWatch: Sendable {
    /// The state of the thread.
    private final class ThreadState: @unchecked Sendable {
        let reader: ShardReader

        init(_ reader: ShardReader) { self.reader = reader }
    }

    private let thread: PostgresThread
    private let state: ThreadState

    /// The number of connections that it uses.
    package static let connectionCount = 1

    /// Creates a watch of the shards in `schemas` of the database at `place`; nothing is queried
    /// yet.
    ///
    /// - Throws: ``StorageError/inaccessible(path:reason:)`` if the process has no file descriptor
    ///   left.
    package init(_ place: PostgresPlace, schemas: [String]) throws(StorageError) {
        guard let thread = PostgresThread() else {
            throw .inaccessible(path: "\(place)", reason: "the process has no file descriptor left")
        }
        self.thread = thread
        state = ThreadState(
            ShardReader(PostgresSession(place: place, name: "belfry shards"), schemas))
        thread.start()
    }

    deinit { thread.end() }

    /// Returns the present state of each shard; a shard that is locked at the moment is left out.
    ///
    /// - Throws: ``StorageError`` if the server cannot be queried.
    package func look() async throws -> [ShardSight] {
        try await thread.run { [state] in try state.reader.look() }
    }
}
