import GRDB
package import RelayModel
package import Storage

extension UnreadableEntry {
    /// Names the entry in a row of the table `logEntry`.
    init(row: Row, reason: String) {
        self.init(
            position: LogPosition(stored: row["position"]),
            isChange: row["kind"] == LogEntryBody.Kind.change.rawValue, reason: reason)
    }
}

extension RelayStore {
    /// Sets a change aside that cannot be read, with the reason, so that those after it are
    /// followed; it fires nothing until somebody has mended and posted it again.
    ///
    /// It changes nothing if the change is set aside already, from before a crash.
    package func quarantine(_ entry: UnreadableEntry, at now: Timestamp) async throws {
        try await write { commit in
            try commit.db.execute(
                sql: """
                    INSERT INTO quarantine (position, container, reason, body, quarantinedAt)
                    SELECT position, container, ?, CAST(body AS TEXT), ?
                    FROM logEntry WHERE position = ?
                    ON CONFLICT DO NOTHING
                    """, arguments: [entry.reason, now.stored, entry.position.stored])
        }
    }
}
