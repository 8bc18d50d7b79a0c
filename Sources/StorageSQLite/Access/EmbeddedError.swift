import CSQLite
import StorageSQL

/// What SQLite answers where it does not do what it was asked.
struct EmbeddedError: Error, Hashable, SQLFailure {
    /// SQLite's code, of which the low byte is the primary one.
    let extendedCode: Int32
    /// What SQLite says of it.
    let message: String
    /// What was run.
    let sql: String?

    /// Without a message it is what SQLite says of the code itself.
    init(_ extendedCode: Int32, _ message: String? = nil, sql: String? = nil) {
        self.extendedCode = extendedCode
        self.message = message ?? String(cString: sqlite3_errstr(extendedCode))
        self.sql = sql
    }

    /// The code without what it says of the particular case.
    var code: Int32 { extendedCode & 0xFF }
}

extension EmbeddedError: CustomStringConvertible {
    var description: String {
        "SQLite error \(code): \(message)" + (sql.map { " - while executing `\($0)`" } ?? "")
    }
}
