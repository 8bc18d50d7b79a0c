extension Database {
    /// Deletes the rows of a table that `selection` finds, and returns their number.
    ///
    /// `selection` is the part of a query after the table's name. `key` lists the columns of the
    /// primary key.
    ///
    /// When SQLite compares several columns with the result of a subquery, it uses the index for
    /// the first column only and would read all of a container for a few rows. So on SQLite each
    /// row is deleted by a statement of its own, which costs no round trip.
    func deleteRows(
        of table: String, by key: [String], _ selection: String, _ arguments: StatementArguments
    ) throws -> Int {
        let columns = key.joined(separator: ", ")
        let found = "SELECT \(columns) FROM \(table) \(selection)"
        guard dialect == .sqlite else {
            let delete = "DELETE FROM \(table) WHERE (\(columns)) IN (\(found))"
            return try cachedStatement(sql: delete).executeCounting(arguments: arguments)
        }
        let rows = try Row.fetchAll(try cachedStatement(sql: found), arguments: arguments)
        let condition = key.map { "\($0) = ?" }.joined(separator: " AND ")
        let delete = try cachedStatement(sql: "DELETE FROM \(table) WHERE \(condition)")
        for row in rows {
            let values = key.indices.map { row.columns.value(at: $0) }
            try delete.execute(arguments: StatementArguments(values: values))
        }
        return rows.count
    }
}
