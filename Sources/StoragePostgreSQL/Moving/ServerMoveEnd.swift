package import FoundationEssentials
import Migrations
import PostgresLink
package import Storage
package import StorageSQL

/// A schema of a server as one end of a move.
///
/// It owns the store as a relay does, by a lease that a thread renews. Each transaction checks that
/// it still owns it.
package final class ServerMoveEnd: MoveEnd {
    /// The end's role; only a target's schema is created if it does not exist.
    package enum Role: Sendable {
        case source, target
    }

    package let place: String
    private let target: PostgresPlace
    private let connection: ServerConnection
    private let lease: LeaseRenewer
    private let epoch: Int64
    /// The application name of the move's sessions on the server.
    private let owner: String
    private let ending: AsyncStream<Never>

    /// How long an answer may take: tables of any size are counted and read.
    private static let patience = Duration.seconds(3600)

    private init(
        _ session: PostgresSession, _ plain: PostgresConnection, epoch: Int64
    ) throws {
        target = session.place
        place = "\(session.place)"
        (self.epoch, owner) = (epoch, session.name)
        let worker = try session.connect()
        try worker.query("SET statement_timeout = 0")
        connection = ServerConnection(try PostgresPipeline(worker, patience: Self.patience))
        let lease = LeaseRenewer(session, plain, epoch: epoch) {}
        guard let lease else {
            throw StorageError.inaccessible(
                path: place, reason: "the process has no file descriptor left")
        }
        self.lease = lease
        let (ending, end) = AsyncStream.makeStream(of: Never.self)
        self.ending = ending
        lease.start { end.finish() }
    }

    /// Takes ownership of the store at `place`, whose schema must be at the newest version.
    ///
    /// A move that was killed keeps the store until its lease ends; this call waits for that.
    ///
    /// - Parameters:
    ///   - place: The place of the store.
    ///   - role: Whether a schema is created if there is none.
    ///   - claimant: The process that moves the store.
    ///   - pause: Waits for a second.
    /// - Returns: The end, which owns the store.
    /// - Throws: ``StorageError`` if the server cannot be reached or used, a relay has the store,
    ///   there is no store, or it is of another version.
    package static func open(
        _ place: PostgresPlace, as role: Role, _ claimant: StoreClaimant,
        pause: () async throws -> Void
    ) async throws -> ServerMoveEnd {
        let session = PostgresSession(place: place, name: claimant.sessionName)
        do {
            let connection = try session.connect()
            try prepare(place, role, connection)
            var waits = Ownership.lease.components.seconds + 1
            while true {
                switch try Ownership.claim(claimant, connection) {
                case .owned(let epoch):
                    return try ServerMoveEnd(session, connection, epoch: epoch)
                case .owner(let holder):
                    guard waits > 0, try isMove(connection) else {
                        throw StorageError.locked(path: "\(place)", holder: "the relay \(holder)")
                    }
                    waits -= 1
                    try await pause()
                }
            }
        } catch let error as PostgresError {
            throw error.opening(place)
        }
    }

    private static func prepare(
        _ place: PostgresPlace, _ role: Role, _ connection: PostgresConnection
    ) throws {
        let schema = PostgresSchema(place: place, migrations: Migration.releasedOnPostgreSQL)
        guard let version = try schema.found(connection) else {
            guard role == .target else { throw place.missing }
            _ = try schema.apply(connection, makesSchema: true)
            return
        }
        guard version == schema.version else {
            if try role == .target && isNew(connection) {
                _ = try schema.apply(connection, makesSchema: false)
                return
            }
            throw StorageError.inaccessible(
                path: "\(place)",
                reason: "its schema has version \(version), and this Belfry needs version "
                    + "\(schema.version): run belfry migrate first")
        }
    }

    /// Returns whether the store was never owned, as after a move that was killed while it created
    /// the schema.
    private static func isNew(_ connection: PostgresConnection) throws -> Bool {
        let rows = try connection.query("SELECT epoch FROM ownership WHERE shard = 0")
        return rows.first?[0] == "0"
    }

    private static func isMove(_ connection: PostgresConnection) throws -> Bool {
        let rows = try connection.query("SELECT owner FROM ownership WHERE shard = 0")
        return rows.first?[0]?.hasPrefix(StoreClaimant.movePrefix) == true
    }

    package func read<Value>(_ body: (Database) throws -> Value) throws -> Value {
        try translating {
            try connection.begin(" READ ONLY")
            let value = try body(Database(connection))
            _ = try connection.commit()
            return value
        }
    }

    package func write<Value>(_ body: (Database) throws -> Value) throws -> Value {
        try translating {
            try connection.begin()
            try connection.pipeline.queue(
                "SELECT shard FROM shard WHERE shard = 0 FOR NO KEY UPDATE")
            let rows = try connection.pipeline.fetch(
                "SELECT epoch FROM ownership WHERE shard = 0 AND owner = $1", [.text(owner)])
            guard rows.count == 1, rows[0, 0] == .integer(epoch) else {
                throw StorageError.locked(path: place, holder: "another process")
            }
            let value = try body(Database(connection))
            try connection.settle()
            CrashPoint.commit.reach()
            let warnings = connection.pipeline.connection.warnings
            guard try connection.commit() == "COMMIT",
                connection.pipeline.connection.warnings == warnings
            else {
                throw StorageError.inaccessible(
                    path: place, reason: "a commit was not waited for: see the server's log")
            }
            CrashPoint.committed.reach()
            return value
        }
    }

    private func translating<Value>(_ body: () throws -> Value) throws -> Value {
        do {
            return try body()
        } catch let error as PostgresError {
            connection.rollBack()
            throw [.refused, .barred].contains(error.verdict)
                ? error.opening(target) : error.storageError(of: target)
        } catch {
            connection.rollBack()
            throw error
        }
    }

    /// Disables the tables' triggers; the table of the mark always exists, and every relay checks
    /// it.
    package func lockOut(_ db: Database) throws { try setTriggers("DISABLE", db) }

    package func letIn(_ db: Database) throws { try setTriggers("ENABLE", db) }

    /// Enables or disables all triggers except those of foreign keys.
    private func setTriggers(_ verb: String, _ db: Database) throws {
        let tables = try String.fetchAll(
            db,
            sql: """
                SELECT DISTINCT entity.relname::text FROM pg_catalog.pg_trigger
                JOIN pg_catalog.pg_class AS entity ON entity.oid = tgrelid
                WHERE NOT tgisinternal AND relnamespace = current_schema()::regnamespace
                ORDER BY 1
                """)
        for table in tables {
            try db.execute(sql: "ALTER TABLE \(table.quotedName) \(verb) TRIGGER USER")
        }
    }

    /// Does nothing: there is no witness beside a schema.
    package func releaseIdentity() {}

    package func setIdentity(_ identity: Data, _ db: Database) throws {
        try db.execute(sql: "UPDATE store SET identity = ?", arguments: [identity])
    }

    package func check() throws -> StoreReport { try RelayStore.check(target) }

    package func end() async {
        lease.end()
        for await _ in ending {}
    }
}
