extension Database {
    /// Deletes the rows of a table that `selection`, what follows its name in a question, finds;
    /// `key` are the columns of its primary key.
    ///
    /// It returns how many they are.
    ///
    /// Of several columns that are compared together with what a question finds, SQLite looks the
    /// rows up by the first alone, and reads all of a container for a few of them: there each goes
    /// by itself, which waits for nobody.
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
