import Storage

/// The numbers that a database assigns to rows, and the end of the log.
///
/// At the target they continue from the source's values, also after deleted rows.
struct TableNumbers {
    let source: any MoveEnd
    let target: any MoveEnd

    /// Makes the target continue the source's numbers.
    func copy() throws {
        let head = try source.read(MoveHead.find)
        let numbers = try source.read(Self.all)
        try target.write { db in
            try MoveHead.set(head, db)
            for (place, number) in zip(MovedTables.numbered, numbers) where number > 0 {
                try Self.set(number, table: place.0, column: place.1, db)
            }
        }
    }

    /// Checks that the target continues the source's numbers.
    ///
    /// - Throws: ``StorageError/damaged(path:reason:)`` if the target would reuse a number that it
    ///   should remember.
    func compare() throws {
        let (from, to) = (try source.read(Self.all), try target.read(Self.all))
        let heads = (try source.read(MoveHead.find), try target.read(MoveHead.find))
        let areKept = try target.read { db in
            try MovedTables.numbered.map { table, _ in try Self.isKept(table, db) }
        }
        // For a table without `AUTOINCREMENT`, SQLite may reuse the number of a deleted row.
        let goOn = zip(areKept, zip(from, to)).allSatisfy { isKept, numbers in
            !isKept || numbers.0 <= numbers.1
        }
        guard goOn, heads.0 == heads.1 else {
            throw StorageError.damaged(
                path: target.place,
                reason: "its automatic numbers do not continue those of the source")
        }
    }

    /// Returns the highest number that each table ever had, as far as the engine remembers it.
    private static func all(_ db: Database) throws -> [Int64] {
        try MovedTables.numbered.map { table, column in
            let given = try Int64.fetchOne(
                db, sql: "SELECT coalesce(\(db.dialect.lastNumber(of: column, in: table)), 0)")
            let found = try Int64.fetchOne(
                db, sql: "SELECT coalesce(max(\(column)), 0) FROM \"\(table.lowercased())\"")
            return max(given ?? 0, found ?? 0)
        }
    }

    private static func set(
        _ number: Int64, table: String, column: String, _ db: Database
    ) throws {
        switch db.dialect {
        case .postgresql:
            try db.execute(
                sql: """
                    SELECT setval(
                        pg_get_serial_sequence('"\(table.lowercased())"', '\(column)')::regclass, ?)
                    """, arguments: [number])
        case .sqlite:
            guard try isKept(table, db) else { return }
            try db.execute(sql: "DELETE FROM sqlite_sequence WHERE name = ?", arguments: [table])
            try db.execute(
                sql: "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)",
                arguments: [table, number])
        }
    }

    /// Returns whether the engine remembers the highest number that a table ever had.
    ///
    /// For a table without `AUTOINCREMENT`, SQLite uses the number after the highest existing one.
    private static func isKept(_ table: String, _ db: Database) throws -> Bool {
        switch db.dialect {
        case .postgresql: return true
        case .sqlite:
            let count = try Int.fetchOne(
                db,
                sql: """
                    SELECT count(*) FROM sqlite_schema
                    WHERE name = ? AND sql LIKE '%AUTOINCREMENT%'
                    """, arguments: [table])
            return count == 1
        }
    }
}

/// The end of the log.
enum MoveHead {
    static func find(_ db: Database) throws -> Int64 {
        try Int64.fetchOne(db, sql: "SELECT position FROM shardHead WHERE shard = 0") ?? 0
    }

    static func set(_ position: Int64, _ db: Database) throws {
        let table = db.dialect == .sqlite ? "shardHead" : "shard"
        try db.execute(
            sql: "UPDATE \(table) SET position = ? WHERE shard = 0", arguments: [position])
    }
}
