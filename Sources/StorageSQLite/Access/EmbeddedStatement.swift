import Foundation
import GRDB
import GRDBSQLite
import StorageSQL

/// A prepared statement of SQLite.
final class EmbeddedStatement: SQLStatement {
    private let statement: GRDB.Statement
    private let db: GRDB.Database

    init(_ statement: GRDB.Statement, _ db: GRDB.Database) {
        self.statement = statement
        self.db = db
        // What is bound below GRDB is not to be compared with arguments that it does not have.
        statement.setUncheckedArguments([])
    }

    func execute(_ arguments: [SQLValue]) throws {
        try bind(arguments)
        try statement.execute()
    }

    func executeCounting(_ arguments: [SQLValue]) throws -> Int {
        try execute(arguments)
        return db.changesCount
    }

    func query(_ arguments: [SQLValue]) throws -> any SQLRows {
        try bind(arguments)
        return EmbeddedRows(try GRDB.Row.fetchCursor(statement), of: statement)
    }

    private func bind(_ arguments: [SQLValue]) throws {
        let pointer = statement.sqliteStatement
        // It repeats how the last execution ended, which was said already.
        _ = sqlite3_reset(pointer)
        guard arguments.count == Int(sqlite3_bind_parameter_count(pointer)) else {
            throw DatabaseError(
                resultCode: .SQLITE_MISUSE, message: "wrong number of arguments",
                sql: statement.sql)
        }
        for (index, value) in zip(Int32(1)..., arguments) {
            let code = Self.bind(value, to: pointer, at: index)
            guard code == SQLITE_OK else {
                throw DatabaseError(resultCode: ResultCode(rawValue: code), sql: statement.sql)
            }
        }
    }

    private static func bind(
        _ value: SQLValue, to pointer: SQLiteStatement, at index: Int32
    ) -> Int32 {
        // SQLite copies what it is told may go.
        let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        switch value {
        case .integer(let number): return sqlite3_bind_int64(pointer, index, number)
        case .real(let number): return sqlite3_bind_double(pointer, index, number)
        case .null: return sqlite3_bind_null(pointer, index)
        case .text(var text):
            // Without an address the value would be NULL.
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

/// The rows of a statement that is being stepped through; they end with it.
final class EmbeddedRows: SQLRows {
    let names: ColumnNames
    private let cursor: GRDB.RowCursor
    private let pointer: SQLiteStatement

    init(_ cursor: GRDB.RowCursor, of statement: GRDB.Statement) {
        self.cursor = cursor
        pointer = statement.sqliteStatement
        names = ColumnNames(statement.columnNames)
    }

    func next() throws -> Bool {
        try cursor.next() != nil
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
