import FoundationEssentials
import Storage
import StorageSQL

/// Measures bare inserts into SQLite on this disk, with which intake is compared.
package enum BareInserts {
    /// Returns how many rows per second SQLite inserts into a table with the log's columns.
    ///
    /// Each row has a body of `bytes` bytes. Each durable transaction has `perCommit` rows. The
    /// measurement takes about `seconds`.
    ///
    /// - Throws: ``StorageError``, or an error of SQLite.
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
