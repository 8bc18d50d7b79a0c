import PostgresLink

extension Catalogue {
    /// The transactions that have written to the outbox and have not ended.
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

    /// Who one of these transactions belongs to, in words.
    func outboxWriter(among writers: Set<String>) throws -> String {
        let rows = try connection.query(
            """
            SELECT pid FROM pg_locks
            WHERE virtualtransaction = ANY ($1::text[]) AND locktype = 'relation'
            AND relation = 'belfry.outbox'::regclass LIMIT 1
            """, ["{\(writers.sorted().map { "\"\($0)\"" }.joined(separator: ","))}"])
        // What was prepared for a second phase belongs to no process.
        return try rows.first?.text(0).map { try holder($0) } ?? "a prepared one"
    }

    /// The highest number that the outbox shows; `nil` if it is empty.
    func lastOutboxNumber() throws -> Int64? {
        try connection.query("SELECT max(number) FROM belfry.outbox")
            .first?.text(0).flatMap { Int64($0) }
    }
}
