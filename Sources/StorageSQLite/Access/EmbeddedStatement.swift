import CSQLite
import FoundationEssentials
import StorageSQL

/// A prepared statement of SQLite.
final class EmbeddedStatement: SQLStatement {
    let pointer: OpaquePointer
    let sql: String
    /// Unowned, because the connection keeps prepared statements and a reference would be a cycle.
    private unowned let connection: EmbeddedConnection
    /// The names of the columns, once they were read.
    private var names: ColumnNames?
    /// The number of executions; with it the rows of an old run do not reset a later one.
    var runs = 0

    /// Prepares one statement; `keeping` says that it will be run often.
    ///
    /// - Throws: ``EmbeddedError``, also if `sql` contains no statement or several.
    init(_ sql: String, keeping: Bool, on connection: EmbeddedConnection) throws {
        try connection.check(sql)
        var prepared: OpaquePointer?
        let flags = UInt32(keeping ? SQLITE_PREPARE_PERSISTENT : 0)
        let (code, isAlone) = sql.withCString { text -> (Int32, Bool) in
            var rest: UnsafePointer<CChar>?
            let code = sqlite3_prepare_v3(connection.pointer, text, -1, flags, &prepared, &rest)
            let left = rest.map { String(cString: $0) } ?? ""
            return (code, left.allSatisfy { $0.isWhitespace || $0 == ";" })
        }
        guard code == SQLITE_OK else { throw connection.failure(sql) }
        // SQLite silently ignores what follows the first statement.
        guard isAlone else {
            sqlite3_finalize(prepared)
            throw EmbeddedError(SQLITE_MISUSE, "there are several statements", sql: sql)
        }
        guard let prepared else {
            throw EmbeddedError(SQLITE_MISUSE, "there is no statement", sql: sql)
        }
        pointer = prepared
        self.sql = sql
        self.connection = connection
    }

    deinit { sqlite3_finalize(pointer) }

    func execute(_ arguments: [SQLValue]) throws {
        try begin(arguments)
        defer { sqlite3_reset(pointer) }
        while try step() {}
    }

    func executeCounting(_ arguments: [SQLValue]) throws -> Int {
        try execute(arguments)
        return connection.changesCount
    }

    func query(_ arguments: [SQLValue]) throws -> any SQLRows {
        try begin(arguments)
        return EmbeddedRows(of: self)
    }

    /// Advances to the next row; returns `false` if there is none.
    func step() throws -> Bool {
        switch sqlite3_step(pointer) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        default: throw connection.failure(sql)
        }
    }

    /// Returns the columns' names, which may change after a change of the schema.
    func columnNames() -> ColumnNames {
        let count = Int(sqlite3_column_count(pointer))
        if let names, names.names.count == count { return names }
        let found = ColumnNames(
            (0..<count).map { index in
                sqlite3_column_name(pointer, Int32(index)).map { String(cString: $0) } ?? ""
            })
        names = found
        return found
    }

    private func begin(_ arguments: [SQLValue]) throws {
        try connection.check(sql)
        // The result repeats the error of the last execution, which was reported already.
        sqlite3_reset(pointer)
        runs += 1
        guard arguments.count == Int(sqlite3_bind_parameter_count(pointer)) else {
            throw EmbeddedError(SQLITE_MISUSE, "wrong number of arguments", sql: sql)
        }
        for (index, value) in zip(Int32(1)..., arguments) {
            let code = Self.bind(value, to: pointer, at: index)
            guard code == SQLITE_OK else { throw EmbeddedError(code, sql: sql) }
        }
    }

    private static func bind(
        _ value: SQLValue, to pointer: OpaquePointer, at index: Int32
    ) -> Int32 {
        // SQLITE_TRANSIENT: SQLite makes its own copy of the value.
        let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        switch value {
        case .integer(let number): return sqlite3_bind_int64(pointer, index, number)
        case .real(let number): return sqlite3_bind_double(pointer, index, number)
        case .null: return sqlite3_bind_null(pointer, index)
        case .text(var text):
            // With a null address SQLite would bind NULL instead of an empty text.
            if text.isEmpty { return sqlite3_bind_text(pointer, index, "", 0, transient) }
            return text.withUTF8 { bytes in
                bytes.withMemoryRebound(to: CChar.self) { characters in
                    sqlite3_bind_text64(
                        pointer, index, characters.baseAddress, UInt64(characters.count),
                        transient, UInt8(SQLITE_UTF8))
                }
            }
        case .bytes(let data):
            return data.withUnsafeBytes { bytes in
                guard let address = bytes.baseAddress else {
                    return sqlite3_bind_zeroblob(pointer, index, 0)
                }
                return sqlite3_bind_blob64(
                    pointer, index, address, UInt64(bytes.count), transient)
            }
        }
    }
}

/// The rows of a statement that is being executed; they are valid until its next execution.
final class EmbeddedRows: SQLRows {
    let names: ColumnNames
    private let statement: EmbeddedStatement
    private let pointer: OpaquePointer
    private let run: Int
    private var isDone = false

    init(of statement: EmbeddedStatement) {
        self.statement = statement
        run = statement.runs
        pointer = statement.pointer
        names = statement.columnNames()
    }

    /// An execution that is not at its end keeps a read snapshot open, so it is reset here.
    deinit { if !isDone, statement.runs == run { sqlite3_reset(pointer) } }

    func next() throws -> Bool {
        guard !isDone else { return false }
        if try statement.step() { return true }
        isDone = true
        sqlite3_reset(pointer)
        return false
    }

    func isNull(at index: Int) -> Bool {
        sqlite3_column_type(pointer, Int32(index)) == SQLITE_NULL
    }

    func integer(at index: Int) -> Int64 {
        sqlite3_column_int64(pointer, Int32(index))
    }

    func real(at index: Int) -> Double {
        sqlite3_column_double(pointer, Int32(index))
    }

    func text(at index: Int) -> String {
        guard let address = sqlite3_column_text(pointer, Int32(index)) else { return "" }
        let bytes = UnsafeBufferPointer(start: address, count: size(at: index))
        return String(decoding: bytes, as: UTF8.self)
    }

    func bytes(at index: Int) -> Data {
        guard let address = sqlite3_column_blob(pointer, Int32(index)) else { return Data() }
        return Data(bytes: address, count: size(at: index))
    }

    func size(at index: Int) -> Int {
        Int(sqlite3_column_bytes(pointer, Int32(index)))
    }

    func value(at index: Int) -> SQLValue {
        switch sqlite3_column_type(pointer, Int32(index)) {
        case SQLITE_INTEGER: .integer(integer(at: index))
        case SQLITE_FLOAT: .real(real(at: index))
        case SQLITE_TEXT: .text(text(at: index))
        case SQLITE_BLOB: .bytes(bytes(at: index))
        default: .null(.text)
        }
    }
}
