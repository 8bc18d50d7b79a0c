import FoundationEssentials
import Storage
import StorageSQL

/// What SQLite does on this disk with nothing around it, against which intake is measured.
package enum BareInserts {
    /// Rows per second of `bytes` bytes, `perCommit` in a durable transaction, into a table with
    /// the log's columns, for about `seconds`.
    ///
    /// - Throws: ``StorageError``, or what SQLite says.
    package static func rowsPerSecond(
        path: String, bytes: Int, perCommit: Int, seconds: Double
    ) throws -> Double {
        let db = try StoreConnections(path: path, settings: StoreSettings()).openConnection()
        defer { db.close() }
        let body = String(repeating: "x", count: bytes)
        try db.execute(
            sql: """
                PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
                PRAGMA wal_autocheckpoint = 4000;
                CREATE TABLE bare (position INTEGER PRIMARY KEY, container INTEGER,
                    appendedAt INTEGER, kind INTEGER, source TEXT, isStale INTEGER, body TEXT)
                """)
        let statement = try db.database.makeStatement(
            sql: "INSERT INTO bare VALUES (?, 1, 1, 1, 'bench', 0, ?)")
        let start = ContinuousClock.now
        var count: Int64 = 0
        while (ContinuousClock.now - start) / .seconds(1) < seconds {
            try db.begin(.immediate)
            for _ in 0..<perCommit {
                count += 1
                try statement.execute(arguments: [count, body])
            }
            try db.commit()
        }
        return Double(count) / ((ContinuousClock.now - start) / .seconds(1))
    }
}
