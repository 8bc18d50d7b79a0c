import CSQLite
import Foundation
import GRDB
import RelayModel

/// Opens the connections to a database file, and makes sure of the settings that promises rest on.
struct StoreConnections {
    let path: String
    let settings: StoreSettings

    /// One writer and a pool of readers; the writer is durable when this returns.
    ///
    /// GRDB lowers `synchronous` to NORMAL by itself when it opens a pool, and NORMAL loses
    /// acknowledged commits at a power cut. So FULL is set afterwards and read back.
    func openPool() throws -> DatabasePool {
        let pool = try DatabasePool(path: path, configuration: configuration())
        try pool.writeWithoutTransaction { db in
            try makeDurable(db)
            try db.execute(
                sql: """
                    PRAGMA wal_autocheckpoint = 0;
                    PRAGMA journal_size_limit = \(64 * 1024 * 1024);
                    PRAGMA cache_size = -16384;
                    PRAGMA analysis_limit = 400;
                    """)
            if settings.maximumPages > 0 {
                try db.execute(sql: "PRAGMA max_page_count = \(settings.maximumPages)")
            }
            try readBack(db)
        }
        return pool
    }

    /// Checks the file and brings its schema up to date over one connection of its own.
    ///
    /// It folds the write-ahead log of a crash into the file.
    func prepare(_ schema: StoreSchema) throws -> [String] {
        try createForOwnerOnly()
        try checkHeader()
        try checkLog()
        let queue = try openQueue()
        defer { try? queue.close() }
        return try queue.writeWithoutTransaction { db in
            _ = try StoreSchema.version(db, path: path)
            try checkPages(db)
            try db.execute(sql: "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0")
            try makeDurable(db)
            let applied = try schema.apply(to: db, path: path)
            try Self.fold(db)
            return applied
        }
    }

    /// Folds the write-ahead log into the file, and lets SQLite remove it when the file is closed.
    ///
    /// Not left to the closing of the connection, which keeps a failed sync to itself.
    ///
    /// - Throws: `DatabaseError` if it is unknown afterwards what is on the disk.
    static func fold(_ db: Database) throws {
        guard try LogTrimmer.checkpoint(.truncate, of: db) else { return }
        _ = belfry_sqlite_fold_at_close(db.sqliteConnection, 1)
    }

    /// SQLite would take the write-ahead log up to its first broken frame, and say nothing of what
    /// comes after it and was acknowledged.
    private func checkLog() throws {
        let frame = belfry_wal_broken_frame(path + "-wal")
        guard frame == 0 else {
            throw StorageError.damaged(
                path: path + "-wal",
                reason: "frame \(frame) is broken, and what was committed after it would be lost: "
                    + "restore a backup")
        }
    }

    /// The file holds secrets: a new one is for its owner alone, whatever the umask says, and the
    /// files beside it inherit that.
    private func createForOwnerOnly() throws {
        let files = FileManager.default
        guard !files.fileExists(atPath: path) else { return }
        let isCreated = files.createFile(
            atPath: path, contents: nil, attributes: [.posixPermissions: 0o600])
        guard isCreated else {
            throw StorageError.damaged(path: path, reason: "the file cannot be created")
        }
    }

    /// One connection, with the settings that every connection has.
    func openQueue() throws -> DatabaseQueue {
        try DatabaseQueue(path: path, configuration: configuration())
    }

    /// Reads a file without changing it.
    func inspect<Value>(_ read: (Database) throws -> Value) throws -> Value {
        try checkHeader()
        var configuration = configuration()
        configuration.readonly = true
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        defer { try? queue.close() }
        return try queue.read(read)
    }

    /// Reads a file without changing it, outside of any transaction.
    func inspectOutsideTransaction<Value>(_ read: (Database) throws -> Value) throws -> Value {
        try checkHeader()
        var configuration = configuration()
        configuration.readonly = true
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        defer { try? queue.close() }
        return try queue.writeWithoutTransaction(read)
    }

    private func configuration() -> Configuration {
        var configuration = Configuration()
        configuration.label = "belfry"
        configuration.busyMode = .timeout(settings.busyTimeout / .seconds(1))
        configuration.maximumReaderCount = settings.readers
        configuration.prepareDatabase { db in
            guard belfry_sqlite_defend(db.sqliteConnection) == 1 else {
                throw StorageError.unsafeSetting(name: "DEFENSIVE", wanted: "1", found: "0")
            }
            // Whoever closes last, for example after a failed write, must not write once more.
            guard belfry_sqlite_fold_at_close(db.sqliteConnection, 0) == 0 else {
                throw StorageError.unsafeSetting(
                    name: "NO_CKPT_ON_CLOSE", wanted: "1", found: "0")
            }
            try db.execute(sql: "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON")
        }
        return configuration
    }

    private func makeDurable(_ db: Database) throws {
        try db.execute(sql: "PRAGMA synchronous = FULL")
    }

    /// Refuses a writer whose settings are not those that promises rest on.
    func readBack(_ db: Database) throws {
        let wanted = [
            ("journal_mode", "wal"), ("synchronous", "2"), ("foreign_keys", "1"),
            ("trusted_schema", "0"),
        ]
        for (name, value) in wanted {
            let row = try Row.fetchOne(db, sql: "PRAGMA \(name)")
            let found = row?.databaseValues.first.map { "\($0)" } ?? "nothing"
            guard found.trimmingCharacters(in: ["\""]) == value else {
                throw StorageError.unsafeSetting(name: name, wanted: value, found: found)
            }
        }
    }

    /// GRDB would turn any SQLite file into WAL mode; a look at the header comes before.
    private func checkHeader() throws {
        guard let file = FileHandle(forReadingAtPath: path) else { return }
        defer { try? file.close() }
        let header = try file.read(upToCount: 100) ?? Data()
        if header.isEmpty { return }
        guard header.count == 100, header.starts(with: Array("SQLite format 3\0".utf8)) else {
            throw StorageError.damaged(path: path, reason: "not an SQLite database")
        }
    }

    private func checkPages(_ db: Database) throws {
        let size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? UInt64 ?? 0
        let isSmall = size <= settings.quickCheckBytes
        let tables = isSmall ? [nil] : ["store", "container", "shardHead", "progress", "retry"]
        for table in tables where try table.map({ try db.tableExists($0) }) ?? true {
            let sql = table.map { "PRAGMA quick_check('\($0)')" } ?? "PRAGMA quick_check(10)"
            let lines = try String.fetchAll(db, sql: sql)
            guard lines == ["ok"] else {
                throw StorageError.damaged(path: path, reason: lines.joined(separator: "; "))
            }
        }
    }
}
