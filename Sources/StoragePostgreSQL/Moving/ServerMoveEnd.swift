package import FoundationEssentials
import Migrations
import PostgresLink
package import Storage
package import StorageSQL

/// A schema of a server as an end of a move.
///
/// It has the store as a relay has it, by a lease that a thread renews; each transaction sees
/// whether it has it still.
package final class ServerMoveEnd: MoveEnd {
    /// Whether a schema is made where there is none.
    package enum Role: Sendable {
        case source, target
    }

    package let place: String
    private let target: PostgresPlace
    private let connection: ServerConnection
    private let lease: LeaseRenewer
    private let epoch: Int64
    /// What the server calls the sessions of who moves it.
    private let owner: String
    private let ending: AsyncStream<Never>

    /// How long an answer may take: a table of any size is counted and read.
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
                path: place, reason: "the process has no descriptor left")
        }
        self.lease = lease
        let (ending, end) = AsyncStream.makeStream(of: Never.self)
        self.ending = ending
        lease.start { end.finish() }
    }

    /// Takes the store at `place`, which is at the newest version of the schema.
    ///
    /// A move that was killed keeps the store for as long as its lease lasts, which is waited for.
    ///
    /// - Parameters:
    ///   - place: Where it is.
    ///   - role: Whether a schema is made where there is none.
    ///   - claimant: Who moves it.
    ///   - pause: Waits for a second.
    /// - Returns: The store, for whoever asked alone.
    /// - Throws: ``StorageError`` if the server cannot be reached or used, a relay has the store,
    ///   there is none, or it is of another version.
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
                reason: "its schema has version \(version), and this Belfry takes version "
                    + "\(schema.version): run belfry migrate first")
        }
    }

    /// Whether nobody ever had the store: a move that was killed while it made the schema.
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
                throw StorageError.locked(path: place, holder: "another process by now")
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

    /// The table of the mark is always there, and every relay looks into it.
    package func lockOut(_ db: Database) throws { try setTriggers("DISABLE", db) }

    package func letIn(_ db: Database) throws { try setTriggers("ENABLE", db) }

    /// Those of references stay.
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

    /// Nothing lies beside a schema.
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
