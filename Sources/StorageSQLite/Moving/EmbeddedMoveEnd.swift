import CSQLite
package import FoundationEssentials
import Migrations
package import Storage
package import StorageSQL

/// A SQLite file as one end of a move.
package final class EmbeddedMoveEnd: MoveEnd {
    /// The end's role; only a target's file is created if it does not exist.
    package enum Role: Sendable {
        case source, target
    }

    package let place: String
    private let lock: StoreLock
    private let connection: EmbeddedConnection
    private var isOpen = true

    /// Opens and locks the file at `path`, whose schema must be at the newest version.
    ///
    /// It blocks while the file's pages are checked, as at a start.
    ///
    /// - Throws: ``StorageError`` if another process has locked the file, or the file is missing,
    ///   damaged or of another version.
    package init(_ path: String, as role: Role) throws {
        let path = try StorePlace.resolve(path)
        let isThere = FileManager.default.fileExists(atPath: path)
        guard isThere || role == .target else { throw StorageError.missing(path: path) }
        place = path
        lock = try StoreLock(databasePath: path)
        do {
            var settings = StoreSettings()
            settings.creation = role == .target ? .whenMissing : .never
            // The file is moved as it is, so it is not rewritten to get page checksums.
            settings.sealedBytes = 0
            var connections = StoreConnections(path: path, settings: settings, lock: lock)
            connections.admitsMoved = true
            if LogTrimmer.size(of: path) > 0 { try Self.checkVersion(connections) }
            _ = try connections.prepare(StoreSchema(migrations: Migration.released))
            connection = try connections.openConnection()
            try connections.makeDurable(connection)
            guard belfry_sqlite_fire_triggers(connection.pointer, 0) == 0 else {
                throw StorageError.unsafeSetting(name: "ENABLE_TRIGGER", wanted: "0", found: "1")
            }
        } catch {
            lock.release()
            throw StorageError.opening(path, failed: error)
        }
    }

    /// Refuses a file of another version: a move does not migrate, so a refused move changes
    /// nothing.
    private static func checkVersion(_ connections: StoreConnections) throws {
        let path = connections.path
        let version = try connections.inspect { try StoreSchema.version($0, path: path) }
        guard version <= StoreSchema.newestVersion else {
            throw StorageError.newerSchema(
                found: "version \(version)", known: "versions up to \(StoreSchema.newestVersion)")
        }
        guard version == StoreSchema.newestVersion || version == 0 else {
            throw StorageError.inaccessible(
                path: path,
                reason: "its schema has version \(version), and this Belfry needs version "
                    + "\(StoreSchema.newestVersion): run belfry migrate first")
        }
    }

    package func read<Value>(_ body: (StorageSQL.Database) throws -> Value) throws -> Value {
        try transact(.deferred, body)
    }

    package func write<Value>(_ body: (StorageSQL.Database) throws -> Value) throws -> Value {
        try transact(.immediate) { db in
            let value = try body(db)
            CrashPoint.commit.reach()
            return value
        }
    }

    private func transact<Value>(
        _ kind: EmbeddedConnection.TransactionKind, _ body: (StorageSQL.Database) throws -> Value
    ) throws -> Value {
        do {
            return try connection.inTransaction(kind) { try body(connection.database) }
        } catch {
            throw StorageError.translate(error, path: place)
        }
    }

    package func lockOut(_ db: StorageSQL.Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE storeMove (
                    id INTEGER PRIMARY KEY CHECK (id = 1),
                    direction TEXT NOT NULL CHECK (direction IN ('here', 'away')),
                    identity BLOB NOT NULL CHECK (length(identity) = 16),
                    place TEXT NOT NULL,
                    tableName TEXT NOT NULL,
                    lastKey TEXT,
                    rowCount INTEGER NOT NULL CHECK (rowCount >= 0)
                ) STRICT
                """)
        try db.execute(sql: "PRAGMA application_id = \(StoreSchema.movedID)")
    }

    package func letIn(_ db: StorageSQL.Database) throws {
        try db.execute(sql: "DROP TABLE storeMove")
        try db.execute(sql: "PRAGMA application_id = \(StoreSchema.applicationID)")
    }

    package func releaseIdentity() throws {
        // The order matters: a file that says it has a witness is refused without one.
        try write { db in try db.execute(sql: "UPDATE store SET isWitnessed = 0") }
        let witness = place + StoreWitness.ending
        if FileManager.default.fileExists(atPath: witness) {
            try FileManager.default.removeItem(atPath: witness)
        }
    }

    package func setIdentity(_ identity: Data, _ db: StorageSQL.Database) throws {
        try db.execute(sql: "UPDATE store SET identity = ?", arguments: [identity])
        try db.execute(sql: "UPDATE shardHead SET commits = 0")
    }

    package func check() throws -> StoreReport { try StoreReport.check(path: place) }

    package func end() async { close() }

    /// Closes the file after a checkpoint, so that the file alone holds everything.
    private func close() {
        guard isOpen else { return }
        isOpen = false
        try? StoreConnections.fold(connection, after: nil)
        connection.close()
        lock.release()
    }
}
