import Storage

/// A connection, as the steps speak to it.
package struct Database {
    /// The engine's side of it.
    package let connection: any SQLConnection

    package init(_ connection: any SQLConnection) {
        self.connection = connection
    }

    /// How its engine says what engines say differently.
    package var dialect: Dialect { connection.dialect }

    /// Whether a transaction is open.
    package var isInsideTransaction: Bool { connection.isInsideTransaction }

    /// A statement that is prepared once for the connection.
    ///
    /// It must not be run again while its rows are read.
    package func cachedStatement(sql: String) throws -> Statement {
        Statement(prepared: try connection.prepare(sql, keeping: true))
    }

    /// A statement of its own.
    package func makeStatement(sql: String) throws -> Statement {
        Statement(prepared: try connection.prepare(sql, keeping: false))
    }

    /// Runs a statement that is rare.
    package func execute(sql: String, arguments: StatementArguments = []) throws {
        try makeStatement(sql: sql).execute(arguments: arguments)
    }

    /// Runs a statement that is rare; returns how many rows it inserted, changed or deleted.
    package func executeCounting(
        sql: String, arguments: StatementArguments = []
    ) throws -> Int {
        try makeStatement(sql: sql).executeCounting(arguments: arguments)
    }
}

/// A prepared statement.
package struct Statement {
    let prepared: any SQLStatement

    /// Runs it; it may be that a failure shows with the next statement only.
    package func execute(arguments: StatementArguments = []) throws {
        try prepared.execute(arguments.values)
    }

    /// Runs it; returns how many rows it inserted, changed or deleted.
    ///
    /// Where nobody needs the number, ``execute(arguments:)`` may spare a round trip.
    package func executeCounting(arguments: StatementArguments = []) throws -> Int {
        try prepared.executeCounting(arguments.values)
    }

    /// Inserts a row and returns the number that the database gave it, which the statement returns
    /// (`RETURNING`).
    func inserted(_ arguments: StatementArguments, in table: String) throws -> Int64 {
        guard let number = try Int64.fetchOne(self, arguments: arguments) else {
            throw StorageError.damaged(path: table, reason: "a row that was written has no number")
        }
        return number
    }
}
