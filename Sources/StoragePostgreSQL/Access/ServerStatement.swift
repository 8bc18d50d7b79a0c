import PostgresLink
import StorageSQL

/// A statement of a connection to a server.
final class ServerStatement: SQLStatement {
    private let sql: String
    private let connection: ServerConnection
    private let isKept: Bool

    init(_ sql: String, _ connection: ServerConnection, keeping: Bool) {
        self.sql = sql
        self.connection = connection
        isKept = keeping
    }

    func execute(_ arguments: [SQLValue]) throws {
        try connection.pipeline.queue(sql, arguments.map(PostgresValue.init), keeping: isKept)
    }

    func insert(_ row: [SQLValue], keyColumns: Int) throws {
        try connection.pipeline.gather(sql, row.map(PostgresValue.init), keyColumns: keyColumns)
    }

    func executeCounting(_ arguments: [SQLValue]) throws -> Int {
        try fetch(arguments).changed
    }

    func query(_ arguments: [SQLValue]) throws -> any SQLRows {
        ServerRows(try fetch(arguments))
    }

    func queryEach(
        _ arguments: [[SQLValue]], _ take: (_ number: Int, _ rows: any SQLRows) throws -> Void
    ) throws {
        let answers = try connection.pipeline.fetchEach(
            sql, arguments.map { $0.map(PostgresValue.init) }, keeping: isKept)
        for (number, rows) in answers.enumerated() { try take(number, ServerRows(rows)) }
    }

    func walk(_ arguments: [SQLValue]) throws -> any SQLRows {
        let most = limit(arguments) ?? .max
        guard connection.isInsideTransaction, most > ServerCursor.firstRows else {
            return try query(arguments)
        }
        let cursor = try connection.cursor(sql, arguments.map(PostgresValue.init))
        return ServerRows(try cursor.fetch(), from: cursor)
    }

    /// Returns the statement's own limit of rows, if it has one after its last parenthesis;
    /// otherwise `nil`.
    private func limit(_ arguments: [SQLValue]) -> Int64? {
        let end = sql.lastIndex(of: ")").map { sql[$0...] } ?? sql[...]
        let words = end.split(whereSeparator: \.isWhitespace)
        guard let place = words.lastIndex(of: "LIMIT"), place + 1 < words.count else { return nil }
        let word = words[place + 1]
        guard word.first == "$" else { return Int64(word) }
        guard let number = Int(word.dropFirst()), arguments.indices.contains(number - 1),
            case .integer(let rows) = arguments[number - 1]
        else { return nil }
        return rows
    }

    private func fetch(_ arguments: [SQLValue]) throws -> PostgresRows {
        try connection.pipeline.fetch(
            sql, arguments.map(PostgresValue.init), keeping: isKept)
    }
}

extension PostgresValue {
    /// Creates a parameter of a shared statement.
    init(_ value: SQLValue) {
        self =
            switch value {
            case .integer(let number): .integer(number)
            case .real(let number): .real(number)
            case .text(let text): .text(text)
            case .bytes(let bytes): .bytes(bytes)
            case .null(let kind): .null(PostgresKind(kind))
            }
    }
}

extension PostgresKind {
    init(_ kind: SQLKind) {
        self =
            switch kind {
            case .integer: .integer
            case .real: .real
            case .text: .text
            case .bytes: .bytes
            }
    }
}
