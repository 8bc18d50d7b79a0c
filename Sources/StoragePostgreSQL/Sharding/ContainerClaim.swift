import PostgresLink
package import RelayModel
import Storage
import Synchronization

/// Ensures that a container is created in only one store of a service.
///
/// A process that creates one holds a lock of the database, looks into all stores, and only then
/// writes. It is an advisory lock of a session, which has the application name of the store owner's
/// sessions. If another process takes the store from one that hangs, it ends those sessions. This
/// releases the lock, and later writes of the process that hung are refused. If none takes the
/// store, the server ends a session that is idle for too long. When the process continues, a check
/// within the commit refuses its write.
package struct ContainerClaim: Sendable {
    /// How long a silent session keeps the lock.
    struct Patience: Sendable {
        /// The time between two queries of a live process.
        var beat = Duration.seconds(1)
        /// The time after which the server ends a silent session.
        var silence = Duration.seconds(10)

        /// The greatest age of the last answered query at which the commit is allowed.
        ///
        /// The remaining time is longer than a process that hangs between the check and the commit
        /// has: the server ends its transaction when it is silent for 3 s.
        var oldestWord: Duration { silence * 3 / 10 }
    }

    /// The state of the thread.
    private final class ThreadState: @unchecked Sendable {
        var connection: PostgresConnection?
    }

    /// A lock that is held; any thread may read its state.
    private final class Hold: Sendable {
        private struct State {
            /// The time of the last query that the server answered.
            var asked: Duration?
            var isOver = false
        }

        private let state = Mutex(State())
        private let wake: PostgresWake

        init(_ wake: PostgresWake) { self.wake = wake }

        var asked: Duration? { state.withLock { $0.asked } }
        var isOver: Bool { state.withLock { $0.isOver } }

        func note(_ asked: Duration?) { state.withLock { $0.asked = asked } }

        func end() {
            state.withLock { ($0.asked, $0.isOver) = (nil, true) }
            wake.signal()
        }

        func rest(for time: Duration) { wake.wait(for: time) }
    }

    private let session: PostgresSession
    private let schemas: [String]
    private let patience: Patience
    /// Limits how many callers wait for the lock, because each has a connection and the server has
    /// few.
    private let line = ReaderLine(turns: 2)

    /// The container exists in a store already.
    package struct Taken: Error {
        /// The schema of that store.
        package let schema: String
    }

    /// Creates claims for containers of the store at `place`, whose schema is one of `schemas`.
    package init(_ place: PostgresPlace, as claimant: StoreClaimant, schemas: [String]) {
        self.init(place, as: claimant, schemas: schemas, Patience())
    }

    init(
        _ place: PostgresPlace, as claimant: StoreClaimant, schemas: [String], _ patience: Patience
    ) {
        session = PostgresSession(place: place, name: claimant.sessionName)
        self.schemas = schemas
        self.patience = patience
    }

    /// Runs `body`, which creates the container, while no other process creates one.
    ///
    /// - Parameters:
    ///   - key: The container.
    ///   - body: Creates it. It must call the given check within the commit; the check throws if
    ///     another process may have the lock by now.
    /// - Returns: The result of `body`.
    /// - Throws: ``Taken`` if one of the stores has the container; ``StorageError`` if that cannot
    ///   be determined; and what `body` throws.
    package func claiming<Outcome: Sendable>(
        _ key: ContainerKey,
        _ body: @Sendable (_ check: @escaping @Sendable () throws -> Void) async throws -> Outcome
    ) async throws -> Outcome {
        try await line.turn(of: key) { try await claimInTurn(key, body) }
    }

    private func claimInTurn<Outcome: Sendable>(
        _ key: ContainerKey,
        _ body: @Sendable (_ check: @escaping @Sendable () throws -> Void) async throws -> Outcome
    ) async throws -> Outcome {
        guard let thread = PostgresThread(), let wake = PostgresWake() else {
            throw StorageError.unavailable("the process has no file descriptor left")
        }
        thread.start()
        let (state, hold) = (ThreadState(), Hold(wake))
        defer {
            // Closing the connection releases the lock.
            hold.end()
            thread.add { state.connection = nil }
            thread.end()
        }
        let holder = try await thread.run { [self] in
            do {
                let connection = try session.connect()
                state.connection = connection
                try connection.query(limits)
                try connection.query(
                    "SELECT pg_advisory_lock(hashtextextended('belfry containers', 0))")
                hold.note(session.watch())
                return try Self.holder(of: key, schemas, connection)
            } catch let error as PostgresError {
                throw error.storageError(of: session.place)
            } catch StorageError.inaccessible(_, let reason) {
                // This may be temporary, as a restart is, so the client is told to retry.
                throw StorageError.unavailable(reason)
            }
        }
        if let holder { throw Taken(schema: holder) }
        thread.add { [self] in
            guard let connection = state.connection else { return }
            beat(hold, connection)
        }
        return try await body { [self] in try check(hold) }
    }

    /// The server's limits: how long to wait for the lock, and how long the session may be silent.
    private var limits: String {
        "SET lock_timeout = '5s'; "
            + "SET idle_session_timeout = '\(patience.silence.components.seconds)s'"
    }

    /// Runs a query at intervals until the lock is released.
    private func beat(_ hold: Hold, _ connection: PostgresConnection) {
        while true {
            hold.rest(for: patience.beat)
            if hold.isOver { return }
            let asked = session.watch()
            do {
                try connection.query("SELECT 1", within: patience.oldestWord)
                hold.note(asked)
            } catch {
                return hold.note(nil)
            }
        }
    }

    private func check(_ hold: Hold) throws {
        guard let asked = hold.asked, session.watch() - asked < patience.oldestWord else {
            throw StorageError.unavailable(
                "another relay may have made the container by now, because the database did not "
                    + "answer: try again")
        }
    }

    /// Returns the schema of the store that has the container; `nil` if none has.
    private static func holder(
        of key: ContainerKey, _ schemas: [String], _ connection: PostgresConnection
    ) throws -> String? {
        let found = try ShardSchema.found(schemas, connection)
        let parts = try schemas.compactMap { schema -> String? in
            switch found[schema]?.obstacle {
            case .unreadable(let reason)?:
                // This shard may have the container.
                throw StorageError.unavailable("the shard \(schema) cannot be read: \(reason)")
            case .foreign?, .absent?: return nil
            case .otherVersion?, .owned?, .unowned?, nil: break
            }
            guard found[schema] != nil else { return nil }
            return """
                SELECT '\(schema)' FROM \(schema.quotedName).container
                WHERE name = $1 AND environment = $2
                """
        }
        guard !parts.isEmpty else { return nil }
        let rows = try connection.query(
            parts.joined(separator: " UNION ALL "),
            [key.container.rawValue, key.environment.rawValue])
        return rows.first?[0]
    }
}
