import Storage

/// A connection as the shared steps use it.
package struct Database {
    /// The engine's connection.
    package let connection: any SQLConnection

    package init(_ connection: any SQLConnection) {
        self.connection = connection
    }

    /// The engine's dialect.
    package var dialect: Dialect { connection.dialect }

    /// Whether a transaction is open.
    package var isInsideTransaction: Bool { connection.isInsideTransaction }

    /// Returns a statement that is prepared once for the connection.
    ///
    /// It must not be run again while its rows are being read.
    package func cachedStatement(sql: String) throws -> Statement {
        Statement(prepared: try connection.prepare(sql, keeping: true))
    }

    /// Returns a newly prepared statement that is not cached.
    package func makeStatement(sql: String) throws -> Statement {
        Statement(prepared: try connection.prepare(sql, keeping: false))
    }

    /// Runs a rare statement without caching it.
    package func execute(sql: String, arguments: StatementArguments = []) throws {
        try makeStatement(sql: sql).execute(arguments: arguments)
    }

    /// Runs a rare statement without caching it, and returns the number of inserted, changed or
    /// deleted rows.
    package func executeCounting(
        sql: String, arguments: StatementArguments = []
    ) throws -> Int {
        try makeStatement(sql: sql).executeCounting(arguments: arguments)
    }
}

/// A prepared statement.
package struct Statement {
    let prepared: any SQLStatement

    /// Runs the statement.
    ///
    /// A failure may be reported only by the next statement.
    package func execute(arguments: StatementArguments = []) throws {
        try prepared.execute(arguments.values)
    }

    /// Inserts a row, possibly together with rows of later calls, before the next other statement.
    ///
    /// All parameters of the statement are the values of the row. If it has ON CONFLICT, the first
    /// `keyColumns` values distinguish rows.
    package func insert(_ row: StatementArguments, keyColumns: Int = 0) throws {
        try prepared.insert(row.values, keyColumns: keyColumns)
    }

    /// Runs the statement and returns the number of inserted, changed or deleted rows.
    ///
    /// If the number is not needed, ``execute(arguments:)`` may save a round trip.
    package func executeCounting(arguments: StatementArguments = []) throws -> Int {
        try prepared.executeCounting(arguments.values)
    }

    /// Inserts a row and returns the number that the database assigned to it.
    ///
    /// The statement must return it (`RETURNING`).
    func inserted(_ arguments: StatementArguments, in table: String) throws -> Int64 {
        guard let number = try Int64.fetchOne(self, arguments: arguments) else {
            throw StorageError.damaged(path: table, reason: "a row that was written has no number")
        }
        return number
    }
}
