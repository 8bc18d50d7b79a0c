import CSQLite
import StorageSQL

/// A connection to a SQLite file, which also implements the shared `SQLConnection`.
///
/// Only one thread may use it at a time. ``EmbeddedPool`` ensures this, or the code that opened it
/// alone.
final class EmbeddedConnection: SQLConnection {
    /// The kind of lock that a transaction takes when it begins.
    enum TransactionKind: String {
        /// Takes its lock at the first read or write.
        case deferred = "BEGIN DEFERRED"
        /// Takes the write lock at once.
        case immediate = "BEGIN IMMEDIATE"
    }

    /// The connection's handle for SQLite's C functions.
    let pointer: OpaquePointer
    private var kept: [String: EmbeddedStatement] = [:]
    private var isClosed = false
    /// Whether a transaction was begun and not ended by the caller.
    ///
    /// SQLite may have rolled it back by itself.
    private var hasBegun = false
    /// The current use of the connection, if another thread may cancel it.
    var turn: ReaderTurn?

    /// Opens the file at `path`, which is created if it does not exist, unless `isReadOnly` is set.
    ///
    /// With `isAlone` it reads the file without its write-ahead log and without locks.
    ///
    /// A statement that is blocked by another connection is retried for `patience`.
    ///
    /// - Throws: ``EmbeddedError``. A file that is not a SQLite file is found only when it is read.
    init(
        path: String, isReadOnly: Bool = false, isAlone: Bool = false, patience: Duration
    ) throws {
        // A connection has only one user at a time, so it needs no mutex of its own.
        let flags =
            SQLITE_OPEN_NOMUTEX
            | (isReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
            | (isAlone ? SQLITE_OPEN_URI : 0)
        let name = isAlone ? Self.immutable(path) : path
        var opened: OpaquePointer?
        let code = sqlite3_open_v2(name, &opened, flags, nil)
        guard code == SQLITE_OK, let opened else {
            defer { sqlite3_close_v2(opened) }
            let told = opened.map { String(cString: sqlite3_errmsg($0)) }
            throw EmbeddedError(opened.map { sqlite3_extended_errcode($0) } ?? code, told)
        }
        pointer = opened
        sqlite3_extended_result_codes(pointer, 1)
        sqlite3_busy_timeout(pointer, Int32(clamping: Int64(patience / .milliseconds(1))))
        do {
            guard belfry_sqlite_refuse_quoted_texts(pointer) == SQLITE_OK else { throw failure() }
            try execute(sql: "PRAGMA foreign_keys = ON")
        } catch {
            close()
            throw error
        }
    }

    deinit { close() }

    /// Returns the URI by which SQLite takes a file as one that nobody changes.
    private static func immutable(_ path: String) -> String {
        let name = path.utf8.map { byte in
            let hex = String(byte, radix: 16)
            return byte == UInt8(ascii: "/") ? "/" : "%" + (hex.utf8.count == 1 ? "0" + hex : hex)
        }
        return "file:" + name.joined() + "?immutable=1"
    }

    /// Closes the connection.
    ///
    /// Statements that are still being read keep the file open until they are released.
    func close() {
        guard !isClosed else { return }
        isClosed = true
        kept = [:]
        sqlite3_close_v2(pointer)
    }

    var dialect: Dialect { .sqlite }

    var isInsideTransaction: Bool { !isClosed && sqlite3_get_autocommit(pointer) == 0 }

    /// The connection as the `Database` that the shared SQL code takes.
    var database: StorageSQL.Database { StorageSQL.Database(self) }

    /// The number of rows that the last statement inserted, changed or deleted.
    var changesCount: Int { Int(sqlite3_changes(pointer)) }

    /// The number of rows that were inserted, changed or deleted since the connection was opened.
    var totalChangesCount: Int { Int(sqlite3_total_changes(pointer)) }

    func prepare(_ sql: String, keeping: Bool) throws -> any SQLStatement {
        guard keeping else { return try EmbeddedStatement(sql, keeping: false, on: self) }
        if let statement = kept[sql] { return statement }
        let statement = try EmbeddedStatement(sql, keeping: true, on: self)
        kept[sql] = statement
        return statement
    }

    /// Does nothing: no statement is deferred.
    func settle() {}

    /// Runs the statements of `sql` one after the other and stops at the first that fails.
    func execute(sql: String) throws {
        try check(sql)
        try sql.withCString { text in
            var rest: UnsafePointer<CChar>? = text
            while let start = rest, start.pointee != 0 {
                var prepared: OpaquePointer?
                let code = sqlite3_prepare_v3(pointer, start, -1, 0, &prepared, &rest)
                defer { sqlite3_finalize(prepared) }
                guard code == SQLITE_OK else { throw failure(sql) }
                // A comment or white space yields no statement.
                guard let prepared else { continue }
                var state = sqlite3_step(prepared)
                while state == SQLITE_ROW { state = sqlite3_step(prepared) }
                guard state == SQLITE_DONE else { throw failure(sql) }
            }
        }
    }

    /// Checks that a statement may run now.
    ///
    /// - Throws: ``EmbeddedError`` if the connection is closed, or if SQLite rolled its transaction
    ///   back: the statement would then be committed on its own. `CancellationError` if the current
    ///   use was cancelled.
    func check(_ sql: String) throws {
        if turn?.isCancelled == true { throw CancellationError() }
        if isClosed { throw EmbeddedError(SQLITE_MISUSE, "the connection is closed") }
        if hasBegun, sqlite3_get_autocommit(pointer) != 0 {
            throw EmbeddedError(SQLITE_ABORT, "the transaction was undone", sql: sql)
        }
    }

    /// Returns SQLite's error of the last call.
    func failure(_ sql: String? = nil) -> EmbeddedError {
        EmbeddedError(
            sqlite3_extended_errcode(pointer), String(cString: sqlite3_errmsg(pointer)), sql: sql)
    }
}

extension EmbeddedConnection {
    /// Begins a transaction.
    func begin(_ kind: TransactionKind) throws {
        try execute(sql: kind.rawValue)
        hasBegun = true
    }

    /// Commits the transaction; after a failure it is still open, unless SQLite has rolled it back.
    func commit() throws {
        try execute(sql: "COMMIT")
        hasBegun = false
    }

    /// Rolls the transaction back, if SQLite has not done so by itself.
    func rollBack() throws {
        hasBegun = false
        // This must also work after a cancellation, so `check(_:)` is not called.
        guard isInsideTransaction else { return }
        guard sqlite3_exec(pointer, "ROLLBACK", nil, nil, nil) == SQLITE_OK else {
            throw failure()
        }
    }

    /// Runs `body` in a transaction, which is committed, or rolled back if `body` throws.
    func inTransaction<Value>(_ kind: TransactionKind, _ body: () throws -> Value) throws -> Value {
        try begin(kind)
        do {
            let value = try body()
            try commit()
            return value
        } catch {
            try? rollBack()
            throw error
        }
    }

    /// What a checkpoint of the write-ahead log does besides copying it into the file.
    enum CheckpointKind {
        /// Copies only the frames that no other connection still needs.
        case passive
        /// Waits for other connections, and truncates the log.
        case truncate
    }

    /// Copies the write-ahead log into the file.
    ///
    /// - Throws: ``EmbeddedError``, also if another connection was in the way.
    func checkpoint(_ kind: CheckpointKind) throws {
        let mode = kind == .passive ? SQLITE_CHECKPOINT_PASSIVE : SQLITE_CHECKPOINT_TRUNCATE
        guard sqlite3_wal_checkpoint_v2(pointer, nil, mode, nil, nil) == SQLITE_OK else {
            throw failure()
        }
    }

    /// Returns whether a table exists.
    func hasTable(_ name: String) throws -> Bool {
        try Int.fetchOne(
            database, sql: "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?",
            arguments: [name]) != nil
    }

    /// Returns whether a table has a column.
    func hasColumn(_ name: String, in table: String) throws -> Bool {
        try Int.fetchOne(
            database, sql: "SELECT 1 FROM pragma_table_info(?) WHERE name = ?",
            arguments: [table, name]) != nil
    }
}
