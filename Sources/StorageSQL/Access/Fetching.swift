extension Statement {
    /// Returns a cursor for callers that read all rows, or the only one.
    func rows(_ arguments: StatementArguments) throws -> RowCursor {
        RowCursor(try prepared.query(arguments.values))
    }

    /// Returns a cursor for callers that may stop before the last row.
    func walk(_ arguments: StatementArguments) throws -> RowCursor {
        RowCursor(try prepared.walk(arguments.values))
    }
}

extension Row {
    /// Returns a cursor over the rows of a statement, for callers that may stop before the last
    /// row.
    package static func fetchCursor(
        _ statement: Statement, arguments: StatementArguments = []
    ) throws -> RowCursor {
        try statement.walk(arguments)
    }

    /// Returns all rows of a statement.
    package static func fetchAll(
        _ statement: Statement, arguments: StatementArguments = []
    ) throws -> [Row] {
        let cursor = try statement.rows(arguments)
        var rows: [Row] = []
        while let row = try cursor.next() { rows.append(row.copy()) }
        return rows
    }

    /// Returns the first row of a statement.
    package static func fetchOne(
        _ statement: Statement, arguments: StatementArguments = []
    ) throws -> Row? {
        try statement.rows(arguments).next()?.copy()
    }

    /// Returns the first row of a statement for each of several sets of arguments, with hardly more
    /// waiting than for one set.
    package static func fetchFirsts(
        _ statement: Statement, arguments: [StatementArguments]
    ) throws -> [Row?] {
        var found = [Row?](repeating: nil, count: arguments.count)
        try statement.prepared.queryEach(arguments.map(\.values)) { number, rows in
            found[number] = try RowCursor(rows).next()?.copy()
        }
        return found
    }

    /// Returns all rows of a statement for each of several sets of arguments, each of which finds
    /// few rows.
    ///
    /// See ``fetchFirsts(_:arguments:)``.
    package static func fetchAlls(
        _ statement: Statement, arguments: [StatementArguments]
    ) throws -> [[Row]] {
        var found = [[Row]](repeating: [], count: arguments.count)
        try statement.prepared.queryEach(arguments.map(\.values)) { number, rows in
            let cursor = RowCursor(rows)
            while let row = try cursor.next() { found[number].append(row.copy()) }
        }
        return found
    }

    package static func fetchCursor(
        _ db: Database, sql: String, arguments: StatementArguments = []
    ) throws -> RowCursor {
        try fetchCursor(db.makeStatement(sql: sql), arguments: arguments)
    }

    package static func fetchAll(
        _ db: Database, sql: String, arguments: StatementArguments = []
    ) throws -> [Row] {
        try fetchAll(db.makeStatement(sql: sql), arguments: arguments)
    }

    package static func fetchOne(
        _ db: Database, sql: String, arguments: StatementArguments = []
    ) throws -> Row? {
        try fetchOne(db.makeStatement(sql: sql), arguments: arguments)
    }
}

/// The values of the first column of a result.
package struct ValueCursor<Value: ColumnValue> {
    let rows: RowCursor

    /// Returns the next value, or `nil` if there are no more.
    package func next() throws -> Value? {
        guard let row = try rows.next() else { return nil }
        return row[0] as Value
    }
}

extension ColumnValue {
    /// Returns a cursor over the values in the first column, for callers that may stop early.
    package static func fetchCursor(
        _ statement: Statement, arguments: StatementArguments = []
    ) throws -> ValueCursor<Self> {
        ValueCursor(rows: try statement.walk(arguments))
    }

    /// Returns the values in the first column.
    package static func fetchAll(
        _ statement: Statement, arguments: StatementArguments = []
    ) throws -> [Self] {
        let cursor = ValueCursor<Self>(rows: try statement.rows(arguments))
        var values: [Self] = []
        while let value = try cursor.next() { values.append(value) }
        return values
    }

    /// Returns the value in the first column of the first row, or `nil` if there is no row or the
    /// value is NULL.
    package static func fetchOne(
        _ statement: Statement, arguments: StatementArguments = []
    ) throws -> Self? {
        try statement.rows(arguments).next().flatMap { $0[0] as Self? }
    }

    package static func fetchAll(
        _ db: Database, sql: String, arguments: StatementArguments = []
    ) throws -> [Self] {
        try fetchAll(db.makeStatement(sql: sql), arguments: arguments)
    }

    package static func fetchOne(
        _ db: Database, sql: String, arguments: StatementArguments = []
    ) throws -> Self? {
        try fetchOne(db.makeStatement(sql: sql), arguments: arguments)
    }
}
