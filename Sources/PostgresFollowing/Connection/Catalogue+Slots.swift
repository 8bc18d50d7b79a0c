import PostgresLink

extension Catalogue {
    /// A replication slot, and what the server keeps for it.
    struct Slot {
        let plugin: String?
        let database: String?
        let isActive: Bool
        /// Whether it sends transactions when they are prepared, and not when they are committed.
        let tellsPrepared: Bool
        let keeping: String?
        let confirmed: PostgresPosition?
        let retainedBytes: UInt64?
        let behindBytes: UInt64?
        /// Whether the slot could be synchronised to standbys but is not marked for failover.
        let lacksFailover: Bool

        /// Returns a warning if the server keeps too much for the slot, or is about to drop what it
        /// needs; otherwise `nil`.
        func warning(over limit: UInt64) -> String? {
            if keeping == "unreserved" {
                return "The server is about to remove log that the slot still needs: raise "
                    + "max_slot_wal_keep_size, and find out why the relay is behind."
            }
            guard let retainedBytes, retainedBytes > limit else { return nil }
            return "The server keeps \(retainedBytes / 1_048_576) MB of its log for the slot: find "
                + "out why the relay is behind, or end transactions that are open for long."
        }
    }

    /// Reads a slot; the query has no parameters, so that it also runs on a replication connection.
    func slot(_ name: String) throws -> Slot? {
        // Slots survive a failover only since version 17, and none can be marked on a standby.
        let lacksFailover =
            connection.serverVersion < 170_000
            ? "false" : "NOT failover AND NOT pg_is_in_recovery()"
        let rows = try connection.query(
            """
            SELECT plugin, database, active, wal_status, confirmed_flush_lsn,
                greatest(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), 0)::bigint,
                greatest(pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn), 0)::bigint,
                two_phase, \(lacksFailover)
            FROM pg_replication_slots WHERE slot_name = \(name.quotedText)
            """)
        return rows.first.map { row in
            Slot(
                plugin: row.text(0), database: row.text(1), isActive: row.text(2) == "t",
                tellsPrepared: row.text(7) == "t", keeping: row.text(3),
                confirmed: row.text(4).flatMap { PostgresPosition($0) },
                retainedBytes: row.text(5).flatMap { UInt64($0) },
                behindBytes: row.text(6).flatMap { UInt64($0) },
                lacksFailover: row.text(8) == "t")
        }
    }

    /// Returns whether the server has space for one more slot.
    func hasRoomForSlot() throws -> Bool {
        try connection.query(
            """
            SELECT count(*) < current_setting('max_replication_slots')::int
            FROM pg_replication_slots
            """
        ).first?.first == "t"
    }

    /// Creates a permanent slot that begins where `temporary` does.
    func copySlot(_ temporary: String, to name: String) throws {
        try connection.query(
            "SELECT pg_copy_logical_replication_slot($1, $2, false)", [temporary, name])
    }
}
