import PostgresLink

extension Catalogue {
    /// Returns the transactions that have written to the outbox and are still open.
    func outboxWriters() throws -> Set<String> {
        let rows = try connection.query(
            """
            SELECT virtualtransaction FROM pg_locks WHERE locktype = 'relation'
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
            AND relation = 'belfry.outbox'::regclass AND mode = 'RowExclusiveLock'
            AND pid IS DISTINCT FROM pg_backend_pid() AND granted
            """)
        return Set(rows.compactMap { $0.text(0) })
    }

    /// Describes the owner of one of these transactions.
    func outboxWriter(among writers: Set<String>) throws -> String {
        let rows = try connection.query(
            """
            SELECT pid FROM pg_locks
            WHERE virtualtransaction = ANY ($1::text[]) AND locktype = 'relation'
            AND relation = 'belfry.outbox'::regclass LIMIT 1
            """, ["{\(writers.sorted().map { "\"\($0)\"" }.joined(separator: ","))}"])
        // A transaction that was prepared for two-phase commit has no process.
        return try rows.first?.text(0).map { try holder($0) } ?? "a prepared transaction"
    }

    /// Returns the highest number in the outbox; `nil` if it is empty.
    func lastOutboxNumber() throws -> Int64? {
        try connection.query("SELECT max(number) FROM belfry.outbox")
            .first?.text(0).flatMap { Int64($0) }
    }
}
