import CSQLite
import FoundationEssentials
import Glibc
import RelayModel
import Storage
import StorageSQL

/// Opens the connections to a database file, and enforces the settings that its guarantees need.
struct StoreConnections {
    let path: String
    let settings: StoreSettings
    /// The lock of the file; a writer has it.
    var lock: StoreLock?
    /// Receives the committed frames before they are dropped from the write-ahead log.
    var spool: LogSpool?
    /// Whether a file may be opened that is being moved or was moved.
    var admitsMoved = false
    /// The suffix of a restored store that is about to replace another one.
    static let restoredEnding = ".restored"

    init(
        path: String, settings: StoreSettings, lock: StoreLock? = nil, spool: LogSpool? = nil
    ) {
        self.spool = spool
        self.path = path
        self.settings = settings
        self.lock = lock
    }

    /// Opens one durable writer and creates a pool of readers.
    ///
    /// With `synchronous` at NORMAL, a power cut would lose acknowledged commits. So it is set to
    /// FULL, and read back.
    func openPool() throws -> EmbeddedPool {
        let db = try openConnection()
        try db.execute(sql: "PRAGMA journal_mode = WAL")
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
        return EmbeddedPool(
            path: path, writer: db,
            maximumReaders: settings.readers + settings.scanningReaders
        ) { [self] in
            try openConnection(isReadOnly: true)
        }
    }

    /// Checks the file and brings its schema up to date, over one connection of its own.
    ///
    /// It also checkpoints the write-ahead log that a crash left.
    ///
    /// - Returns: The names of the migrations that were applied.
    func prepare(_ schema: StoreSchema) throws -> [String] {
        let known = try StoreWitness.record(of: path)
        try checkPresence(known)
        try createForOwnerOnly()
        try lock?.lockFile()
        try checkHeader()
        try checkLog(known)
        if let lock { spool?.resume(after: lock.before) }
        let db = try openConnection()
        defer { db.close() }
        _ = try StoreSchema.version(db, path: path)
        if !admitsMoved, try Self.isMoved(db) { throw movedRefusal() }
        // Up to here nothing was written, and no log of another file was folded into this one.
        if let problem = try problem(of: db, known) { throw problem }
        try checkPages(db)
        try db.execute(sql: "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0")
        try makeDurable(db)
        let applied = try schema.apply(to: db, path: path)
        try seal(db)
        try Self.fold(db, after: spool)
        // Noted before the log is removed: the next log has a new salt, and the process may die
        // before it notes that one.
        do {
            if let known { try StoreWitness(of: path).noteFolding(after: known) }
        } catch {
            // After a failed write, the file and its log are not touched any more.
            _ = belfry_sqlite_fold_at_close(db.pointer, 0)
            throw error
        }
        return applied
    }

    /// Checkpoints the write-ahead log, and lets SQLite remove it when the file is closed.
    ///
    /// This is not left to the closing of the connection, which does not report a failed sync.
    ///
    /// - Throws: `EmbeddedError` if the state of the disk is unknown afterwards.
    static func fold(_ db: EmbeddedConnection, after spool: LogSpool?) throws {
        spool?.copyWhole()
        guard try LogTrimmer.checkpoint(.truncate, of: db) else { return }
        _ = belfry_sqlite_fold_at_close(db.pointer, 1)
    }

    /// Refuses a write-ahead log that belongs to another file or has a broken frame.
    ///
    /// SQLite would silently read the log up to the first broken frame, and lose the acknowledged
    /// commits after it.
    private func checkLog(_ known: WitnessRecord?) throws {
        if let known, let salt = StoreWitness.salt(ofLogOf: path),
            !StoreWitness.isOwn(salt, after: known)
        {
            throw StorageError.lost(
                path: path,
                reason: "the write-ahead log beside it, \(path)-wal, or its witness, "
                    + "\(path)\(StoreWitness.ending), belongs to another file, so acknowledged "
                    + "changes may be missing: put back the original; or make a store from a "
                    + "backup with belfry restore, which moves the remaining files aside")
        }
        let frame = belfry_wal_broken_frame(path + "-wal")
        guard frame == 0 else {
            throw StorageError.damaged(
                path: path + "-wal",
                reason: "frame \(frame) is broken, and what was committed after it would be lost: "
                    + "restore a backup")
        }
    }

    /// Refuses to replace a store that was here before, and creates one only if the settings ask
    /// for it.
    private func checkPresence(_ known: WitnessRecord?) throws {
        guard LogTrimmer.size(of: path) == 0 else { return }
        guard FileIdentity(path: path + Self.restoredEnding) == nil else {
            throw StorageError.lost(
                path: path,
                reason: "it is missing or empty, because a restore was interrupted: run belfry "
                    + "restore again, with --replace, or remove \(path)\(Self.restoredEnding) to "
                    + "do without it; what was here before is \(path)-replaced")
        }
        if let known {
            throw StorageError.lost(
                path: path,
                reason: "it is missing or empty, but \(known.commits) commits were acknowledged in "
                    + "it, with the log up to \(known.head): bring it back, make a store from a "
                    + "backup with belfry restore, or remove \(path)\(StoreWitness.ending) to "
                    + "begin with an empty store")
        }
        guard FileIdentity(path: path + StoreWitness.ending) == nil else {
            throw StorageError.lost(
                path: path,
                reason: "it is missing or empty, and its witness is empty too: check the disk and "
                    + "bring the file back, or remove \(path)\(StoreWitness.ending) to begin with "
                    + "an empty store")
        }
        guard LogTrimmer.size(of: path + "-wal") == 0 else {
            throw StorageError.lost(
                path: path,
                reason: "it is missing or empty, but its write-ahead log, \(path)-wal, exists: the "
                    + "two belong together; remove the log to begin with an empty store")
        }
        guard settings.creation == .whenMissing else {
            lock?.withdraw()
            throw StorageError.missing(path: path)
        }
    }

    /// Rewrites the file with page checksums, if it has none and is small enough to be rewritten at
    /// a start.
    private func seal(_ db: EmbeddedConnection) throws {
        let size = UInt64(LogTrimmer.size(of: path))
        guard belfry_sqlite_is_sealed(db.pointer) == 0,
            size <= settings.sealedBytes
        else { return }
        do {
            try db.execute(sql: "VACUUM")
        } catch let error as EmbeddedError where StorageError.verdict(on: error) != .fatal {
            // Without enough disk space the file stays as it was.
        }
    }

    /// Creates the file with mode 0600 whatever the umask is, because it holds secrets.
    ///
    /// The files beside it inherit the mode.
    private func createForOwnerOnly() throws(StorageError) {
        let created = Glibc.open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard created >= 0 else {
            if errno == EEXIST { return }
            throw .failed(path, "it cannot be created", errno)
        }
        fchmod(created, 0o600)
        close(created)
    }

    /// Opens one connection with the settings that every connection has.
    func openConnection(
        isReadOnly: Bool = false, isAlone: Bool = false
    ) throws -> EmbeddedConnection {
        guard Self.isGuarded else {
            throw StorageError.unsafeSetting(name: "vfs", wanted: "belfry", found: "unix")
        }
        let db = try EmbeddedConnection(
            path: path, isReadOnly: isReadOnly, isAlone: isAlone,
            patience: settings.busyTimeout)
        do {
            try harden(db)
            return db
        } catch {
            db.close()
            throw error
        }
    }

    /// Reads a file without changing it.
    ///
    /// It does not read the header itself. The file may be open in this process, and closing
    /// another descriptor of it would release SQLite's POSIX locks.
    func inspect<Value>(_ read: (EmbeddedConnection) throws -> Value) throws -> Value {
        try inspectOutsideTransaction { db in try db.inTransaction(.deferred) { try read(db) } }
    }

    /// Reads a file without changing it, outside of any transaction.
    func inspectOutsideTransaction<Value>(
        _ read: (EmbeddedConnection) throws -> Value
    ) throws -> Value {
        let db = try openConnection(isReadOnly: true)
        defer { db.close() }
        return try read(db)
    }

    /// Whether the checksum layer (a VFS) is in place below every connection.
    private static let isGuarded = belfry_sqlite_guard_pages() == 1

    private func harden(_ db: EmbeddedConnection) throws {
        // This affects only files that are created or rewritten; others stay as they are.
        _ = belfry_sqlite_reserve_trailers(db.pointer)
        guard belfry_sqlite_defend(db.pointer, 1) == 1 else {
            throw StorageError.unsafeSetting(name: "DEFENSIVE", wanted: "1", found: "0")
        }
        // A connection that closes last, for example after a failed write, must not write again.
        guard belfry_sqlite_fold_at_close(db.pointer, 0) == 0 else {
            throw StorageError.unsafeSetting(name: "NO_CKPT_ON_CLOSE", wanted: "1", found: "0")
        }
        try db.execute(sql: "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON")
        // Finds out here, and not at the first read, that a file is not a SQLite file.
        try db.execute(sql: "SELECT 1 FROM sqlite_schema LIMIT 1")
    }

    func makeDurable(_ db: EmbeddedConnection) throws {
        try db.execute(sql: "PRAGMA synchronous = FULL")
    }

    /// Refuses a writer whose settings differ from those that the guarantees need.
    func readBack(_ db: EmbeddedConnection) throws {
        let wanted = [
            ("journal_mode", "wal"), ("synchronous", "2"), ("foreign_keys", "1"),
            ("trusted_schema", "0"),
        ]
        for (name, value) in wanted {
            let found = try String.fetchOne(db.database, sql: "PRAGMA \(name)") ?? "nothing"
            guard found == value else {
                throw StorageError.unsafeSetting(name: name, wanted: value, found: found)
            }
        }
    }

    /// Checks the header before SQLite turns an arbitrary SQLite file into WAL mode.
    private func checkHeader() throws {
        guard LogTrimmer.size(of: path) > 0 else { return }
        guard let header = try lock.map({ try $0.header(100) }) ?? unlockedHeader(),
            header.starts(with: Array("SQLite format 3\0".utf8))
        else {
            lock?.withdraw()
            throw StorageError.notSQLite(path)
        }
        // This comes before SQLite reads a log beside the file that belongs to the file it
        // replaced.
        let application = header[68..<72].reduce(Int32(0)) { $0 << 8 | Int32($1) }
        if application == StoreSchema.backupID {
            throw StorageError.inaccessible(
                path: path,
                reason: "it is a backup, and changes in it would get identities that others have: "
                    + "make a store from it with belfry restore")
        }
        if application == StoreSchema.movedID, !admitsMoved { throw movedRefusal() }
    }

    private func unlockedHeader() throws(StorageError) -> [UInt8]? {
        let file = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw .failed(path, "it cannot be opened", errno) }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 100)
        let read = pread(file, &bytes, bytes.count, 0)
        guard read >= 0 else { throw .failed(path, "it cannot be read", errno) }
        return read == bytes.count ? bytes : nil
    }

    private func checkPages(_ db: EmbeddedConnection) throws {
        let size = UInt64(LogTrimmer.size(of: path))
        let isSmall = size <= settings.quickCheckBytes
        let tables = isSmall ? [nil] : ["store", "container", "shardHead", "progress", "retry"]
        for table in tables where try table.map({ try db.hasTable($0) }) ?? true {
            let sql = table.map { "PRAGMA quick_check('\($0)')" } ?? "PRAGMA quick_check(10)"
            let lines = try String.fetchAll(db.database, sql: sql)
            if let error = StorageError.checking(path, found: lines) { throw error }
        }
    }
}
