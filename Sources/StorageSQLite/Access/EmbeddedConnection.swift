import CSQLite
import StorageSQL

/// A connection to a SQLite file, also as the shared steps speak to it.
///
/// One thread uses it at a time; ``EmbeddedPool`` sees to that, or whoever opened it alone.
final class EmbeddedConnection: SQLConnection {
    /// How a transaction begins.
    enum TransactionKind: String {
        /// With what it reads or writes first.
        case deferred = "BEGIN DEFERRED"
        /// As the one that writes.
        case immediate = "BEGIN IMMEDIATE"
    }

    /// The connection, as SQLite's functions take it.
    let pointer: OpaquePointer
    private var kept: [String: EmbeddedStatement] = [:]
    private var isClosed = false
    /// Whether a transaction was begun that nobody ended; SQLite may have undone it by itself.
    private var hasBegun = false
    /// Whoever uses it now, if that may be ended by others.
    var turn: ReaderTurn?

    /// Opens the file at `path`, which is made where there is none, unless it `isReadOnly`.
    ///
    /// A statement that another connection is in the way of is tried again for `patience`.
    ///
    /// - Throws: ``EmbeddedError``; a file that is none of SQLite's shows when it is read.
    init(path: String, isReadOnly: Bool = false, patience: Duration) throws {
        // Whoever uses a connection does so alone: it needs no lock of its own.
        let flags =
            SQLITE_OPEN_NOMUTEX
            | (isReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
        var opened: OpaquePointer?
        let code = sqlite3_open_v2(path, &opened, flags, nil)
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

    /// Closes it; statements that are still read keep the file open until they are gone.
    func close() {
        guard !isClosed else { return }
        isClosed = true
        kept = [:]
        sqlite3_close_v2(pointer)
    }

    var dialect: Dialect { .sqlite }

    var isInsideTransaction: Bool { !isClosed && sqlite3_get_autocommit(pointer) == 0 }

    /// The connection for the shared steps, and for what reads and writes as they do.
    var database: StorageSQL.Database { StorageSQL.Database(self) }

    /// The rows that the last statement inserted, changed or deleted.
    var changesCount: Int { Int(sqlite3_changes(pointer)) }

    /// The rows that were inserted, changed or deleted since the connection was opened.
    var totalChangesCount: Int { Int(sqlite3_total_changes(pointer)) }

    func prepare(_ sql: String, keeping: Bool) throws -> any SQLStatement {
        guard keeping else { return try EmbeddedStatement(sql, keeping: false, on: self) }
        if let statement = kept[sql] { return statement }
        let statement = try EmbeddedStatement(sql, keeping: true, on: self)
        kept[sql] = statement
        return statement
    }

    /// Nothing is kept to be run later.
    func settle() {}

    /// Runs statements, one after the other, up to the first that fails.
    func execute(sql: String) throws {
        try check(sql)
        try sql.withCString { text in
            var rest: UnsafePointer<CChar>? = text
            while let start = rest, start.pointee != 0 {
                var prepared: OpaquePointer?
                let code = sqlite3_prepare_v3(pointer, start, -1, 0, &prepared, &rest)
                defer { sqlite3_finalize(prepared) }
                guard code == SQLITE_OK else { throw failure(sql) }
                // A comment, or space, is no statement.
                guard let prepared else { continue }
                var state = sqlite3_step(prepared)
                while state == SQLITE_ROW { state = sqlite3_step(prepared) }
                guard state == SQLITE_DONE else { throw failure(sql) }
            }
        }
    }

    /// Whether a statement may run now.
    ///
    /// - Throws: ``EmbeddedError``, if the connection is closed, or its transaction was undone:
    ///   what came after would be written by itself. `CancellationError`, if its user was ended.
    func check(_ sql: String) throws {
        if turn?.isCancelled == true { throw CancellationError() }
        if isClosed { throw EmbeddedError(SQLITE_MISUSE, "the connection is closed") }
        if hasBegun, sqlite3_get_autocommit(pointer) != 0 {
            throw EmbeddedError(SQLITE_ABORT, "the transaction was undone", sql: sql)
        }
    }

    /// Why the last call failed.
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

    /// Commits it; after a failure it is still open, unless SQLite has undone it.
    func commit() throws {
        try execute(sql: "COMMIT")
        hasBegun = false
    }

    /// Undoes it, if SQLite has not done so by itself.
    func rollBack() throws {
        hasBegun = false
        // Also for whoever may do nothing more.
        guard isInsideTransaction else { return }
        guard sqlite3_exec(pointer, "ROLLBACK", nil, nil, nil) == SQLITE_OK else {
            throw failure()
        }
    }

    /// Runs `body` in a transaction, which is committed, or undone if it throws.
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

    /// What a checkpoint of the write-ahead log does beyond copying it into the file.
    enum CheckpointKind {
        /// It takes what nobody is in the way of.
        case passive
        /// It waits for others, and empties the log.
        case truncate
    }

    /// Copies the write-ahead log into the file.
    ///
    /// - Throws: ``EmbeddedError``, also if somebody was in the way.
    func checkpoint(_ kind: CheckpointKind) throws {
        let mode = kind == .passive ? SQLITE_CHECKPOINT_PASSIVE : SQLITE_CHECKPOINT_TRUNCATE
        guard sqlite3_wal_checkpoint_v2(pointer, nil, mode, nil, nil) == SQLITE_OK else {
            throw failure()
        }
    }

    /// Whether a table is there.
    func hasTable(_ name: String) throws -> Bool {
        try Int.fetchOne(
            database, sql: "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?",
            arguments: [name]) != nil
    }

    /// Whether a table has a column.
    func hasColumn(_ name: String, in table: String) throws -> Bool {
        try Int.fetchOne(
            database, sql: "SELECT 1 FROM pragma_table_info(?) WHERE name = ?",
            arguments: [table, name]) != nil
    }
}
