import PostgresLink
import StorageSQL

/// A statement of a connection.
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
        guard connection.isInsideTransaction, !isBounded else { return try query(arguments) }
        let cursor = try connection.cursor(sql, arguments.map(PostgresValue.init))
        return ServerRows(try cursor.fetch(), from: cursor)
    }

    /// Whether the statement itself says how many rows it finds at the most: after all that stands
    /// in parentheses.
    private var isBounded: Bool {
        let end = sql.lastIndex(of: ")").map { sql[$0...] } ?? sql[...]
        return end.split(whereSeparator: \.isWhitespace).contains("LIMIT")
    }

    private func fetch(_ arguments: [SQLValue]) throws -> PostgresRows {
        try connection.pipeline.fetch(
            sql, arguments.map(PostgresValue.init), keeping: isKept)
    }
}

extension PostgresValue {
    /// A parameter of a shared statement.
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
