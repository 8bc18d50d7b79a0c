extension Statement {
    /// The rows, for whoever reads all of them, or the only one.
    func rows(_ arguments: StatementArguments) throws -> RowCursor {
        RowCursor(try prepared.query(arguments.values))
    }

    /// The rows, for whoever may stop before the last.
    func walk(_ arguments: StatementArguments) throws -> RowCursor {
        RowCursor(try prepared.walk(arguments.values))
    }
}

extension Row {
    /// The rows that a statement finds, one after the other, as far as they are read.
    package static func fetchCursor(
        _ statement: Statement, arguments: StatementArguments = []
    ) throws -> RowCursor {
        try statement.walk(arguments)
    }

    /// All rows that a statement finds.
    package static func fetchAll(
        _ statement: Statement, arguments: StatementArguments = []
    ) throws -> [Row] {
        let cursor = try statement.rows(arguments)
        var rows: [Row] = []
        while let row = try cursor.next() { rows.append(row.copy()) }
        return rows
    }

    /// The first row that a statement finds.
    package static func fetchOne(
        _ statement: Statement, arguments: StatementArguments = []
    ) throws -> Row? {
        try statement.rows(arguments).next()?.copy()
    }

    /// The first row that a statement finds with each of several sets of arguments, which costs as
    /// good as no waiting more than one does.
    package static func fetchFirsts(
        _ statement: Statement, arguments: [StatementArguments]
    ) throws -> [Row?] {
        var found = [Row?](repeating: nil, count: arguments.count)
        try statement.prepared.queryEach(arguments.map(\.values)) { number, rows in
            found[number] = try RowCursor(rows).next()?.copy()
        }
        return found
    }

    /// All rows that a statement finds with each of several sets of arguments, of which each finds
    /// few; as ``fetchFirsts(_:arguments:)``.
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

    /// The next value; `nil` if there are no more.
    package func next() throws -> Value? {
        guard let row = try rows.next() else { return nil }
        return row[0] as Value
    }
}

extension ColumnValue {
    /// The values in the first column, one after the other, as far as they are read.
    package static func fetchCursor(
        _ statement: Statement, arguments: StatementArguments = []
    ) throws -> ValueCursor<Self> {
        ValueCursor(rows: try statement.walk(arguments))
    }

    /// The values in the first column.
    package static func fetchAll(
        _ statement: Statement, arguments: StatementArguments = []
    ) throws -> [Self] {
        let cursor = ValueCursor<Self>(rows: try statement.rows(arguments))
        var values: [Self] = []
        while let value = try cursor.next() { values.append(value) }
        return values
    }

    /// The value in the first column of the first row; `nil` if there is no row, or NULL in it.
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
