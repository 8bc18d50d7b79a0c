import Storage

/// A table as both engines have it.
package struct TableLayout: Sendable, Hashable {
    /// A column.
    package struct Column: Sendable, Hashable {
        /// The name, in lower case.
        package let name: String
        package let kind: SQLKind
    }

    /// The name, in lower case.
    package let name: String
    /// The columns, sorted by name.
    package let columns: [Column]
    /// The indexes of the primary key's columns in ``columns``.
    package let key: [Int]

    /// The names of all columns, as SQL.
    var names: String { columns.map { "\"\($0.name)\"" }.joined(separator: ", ") }
    /// The names of the primary key's columns, as SQL.
    var keyNames: String { key.map { "\"\(columns[$0].name)\"" }.joined(separator: ", ") }

    /// Returns the tables of a store by name.
    package static func all(in db: Database) throws -> [String: TableLayout] {
        let rows = try Row.fetchAll(db, sql: db.dialect == .sqlite ? embedded : served)
        var parts: [String: [(column: Column, place: Int64?)]] = [:]
        for row in rows {
            let table = (row[0] as String).lowercased()
            let name = (row[1] as String).lowercased()
            guard let kind = kind(of: row[2]) else {
                if MovedTables.local.contains(table) { continue }
                throw StorageError.damaged(
                    path: table, reason: "the column \(name) is of the type \(row[2] as String)")
            }
            parts[table, default: []].append((Column(name: name, kind: kind), row[3]))
        }
        return Dictionary(
            uniqueKeysWithValues: parts.map { name, parts in
                let sorted = parts.sorted { $0.column.name < $1.column.name }
                let key = sorted.indices.filter { sorted[$0].place != nil }
                    .sorted { sorted[$0].place ?? 0 < sorted[$1].place ?? 0 }
                return (name, TableLayout(name: name, columns: sorted.map(\.column), key: key))
            })
    }

    private static func kind(of type: String) -> SQLKind? {
        switch type {
        case "INTEGER", "bigint": .integer
        case "TEXT", "text": .text
        case "BLOB", "bytea": .bytes
        default: nil
        }
    }

    private static let embedded = """
        SELECT entity.name, part.name, part.type, nullif(part.pk, 0)
        FROM sqlite_schema AS entity JOIN pragma_table_info(entity.name) AS part
        WHERE entity.type = 'table' AND entity.name NOT LIKE 'sqlite_%'
        """

    private static let served = """
        SELECT entity.relname, part.attname, format_type(part.atttypid, NULL),
            (SELECT place FROM unnest(primaryKey.conkey) WITH ORDINALITY AS line (number, place)
                WHERE line.number = part.attnum)
        FROM pg_catalog.pg_class AS entity
        JOIN pg_catalog.pg_attribute AS part
            ON part.attrelid = entity.oid AND part.attnum > 0 AND NOT part.attisdropped
        LEFT JOIN pg_catalog.pg_constraint AS primaryKey
            ON primaryKey.conrelid = entity.oid AND primaryKey.contype = 'p'
        WHERE entity.relkind = 'r' AND entity.relnamespace = current_schema()::regnamespace
        """
}

extension TableLayout {
    /// Returns the tables whose rows are moved, in order, as both stores have them.
    ///
    /// - Throws: ``StorageError/foreignSchema(path:reason:)`` if they differ, or if a table is in
    ///   none of the lists of `MovedTables`.
    static func agreed(_ source: any MoveEnd, _ target: any MoveEnd) throws -> [TableLayout] {
        let (from, to) = (try source.read(all), try target.read(all))
        for (end, tables) in [(source, from), (target, to)] {
            let known = MovedTables.local.union(MovedTables.special).union(MovedTables.order)
            let others = Set(tables.keys).subtracting(known).sorted()
            guard others.isEmpty else {
                throw StorageError.foreignSchema(
                    path: end.place,
                    reason: "belfry move does not know the tables \(others): "
                        + StorageError.othersSchema)
            }
        }
        return try MovedTables.order.map { name in
            guard let table = from[name], table == to[name], !table.key.isEmpty else {
                throw StorageError.foreignSchema(
                    path: target.place,
                    reason: "the table \(name) differs from the one at \(source.place): "
                        + StorageError.othersSchema)
            }
            return table
        }
    }
}
