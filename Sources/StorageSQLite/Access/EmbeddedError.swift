import CSQLite
import StorageSQL

/// An error that SQLite returned.
struct EmbeddedError: Error, Hashable, SQLFailure {
    /// SQLite's extended result code; its low byte is the primary code.
    let extendedCode: Int32
    /// SQLite's description of the error.
    let message: String
    /// The SQL text that failed, if it is known.
    let sql: String?

    /// Creates an error; without a message it gets SQLite's text for the code.
    init(_ extendedCode: Int32, _ message: String? = nil, sql: String? = nil) {
        self.extendedCode = extendedCode
        self.message = message ?? String(cString: sqlite3_errstr(extendedCode))
        self.sql = sql
    }

    /// The primary result code.
    var code: Int32 { extendedCode & 0xFF }
}

extension EmbeddedError: CustomStringConvertible {
    var description: String {
        "SQLite error \(code): \(message)" + (sql.map { " - while executing `\($0)`" } ?? "")
    }
}
