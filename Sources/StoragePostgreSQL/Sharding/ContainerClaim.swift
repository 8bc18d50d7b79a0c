import PostgresLink
package import RelayModel
import Storage
import Synchronization

/// Sees to it that a container is made in one store of a service alone.
///
/// Who makes one has a lock of the database meanwhile, looks in all stores, and only then writes.
/// The lock is a session's, and the session has the name of those of the store's owner: whoever
/// takes the store from a process that hangs ends its sessions, and so gives the lock back, and
/// what that process writes afterwards is refused. Where nobody takes the store, the server ends a
/// session that says nothing, and what its process writes once it wakes is refused by a check.
package struct ContainerClaim: Sendable {
    /// How long a session that says nothing keeps the lock.
    struct Patience: Sendable {
        /// How often a process that lives says something.
        var beat = Duration.seconds(1)
        /// After how long the server ends a session that says nothing.
        var silence = Duration.seconds(10)

        /// How old the last word may be when the commit is checked.
        ///
        /// What is left then is more than a process has that hangs between the check and the
        /// commit: each time that it says nothing for 3 s, its transaction ends.
        var oldestWord: Duration { silence * 3 / 10 }
    }

    /// What belongs to the thread.
    private final class ThreadState: @unchecked Sendable {
        var connection: PostgresConnection?
    }

    /// A lock that is kept, for whoever asks on any thread.
    private final class Hold: Sendable {
        private struct State {
            /// When the server was last asked something that it answered.
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
    /// Each that waits for the lock has a connection, of which the server has not many.
    private let line = ReaderLine(turns: 2)

    /// A container that should be made lies in a store already.
    package struct Taken: Error {
        /// The schema of that store.
        package let schema: String
    }

    /// For containers of the store at `place`, which is one of those in `schemas`.
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

    /// Runs `body`, which makes the container, while nobody else makes one.
    ///
    /// - Parameters:
    ///   - key: The container.
    ///   - body: Makes it; it asks the check that it gets within the commit, which throws if
    ///     somebody else may have the lock by now.
    /// - Returns: What `body` does.
    /// - Throws: ``Taken`` if one of the stores has it; ``StorageError`` if that cannot be known,
    ///   and what `body` throws.
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
            throw StorageError.unavailable("the process has no descriptor left")
        }
        thread.start()
        let (state, hold) = (ThreadState(), Hold(wake))
        defer {
            // Closing the connection gives the lock back.
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
                // It may pass, as a restart does: whoever asks is told to come again.
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

    /// How long somebody waits for others that make a container, and may say nothing.
    private var limits: String {
        "SET lock_timeout = '5s'; "
            + "SET idle_session_timeout = '\(patience.silence.components.seconds)s'"
    }

    /// Says something now and then, until the lock is given back.
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
                "somebody else may make the container by now, because the database was not heard "
                    + "of: try again")
        }
    }

    /// The schema of the store that has the container; `nil` if none has.
    private static func holder(
        of key: ContainerKey, _ schemas: [String], _ connection: PostgresConnection
    ) throws -> String? {
        let found = try ShardSchema.found(schemas, connection)
        let parts = try schemas.compactMap { schema -> String? in
            switch found[schema]?.obstacle {
            case .unreadable(let reason)?:
                // It may have the container.
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
