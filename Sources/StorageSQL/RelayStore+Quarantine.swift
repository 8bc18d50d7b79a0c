package import RelayModel
package import Storage

extension RelayStore {
    /// Sets a change aside that cannot be read, with the reason, so that those after it are
    /// followed; it fires nothing until somebody has mended and posted it again.
    ///
    /// It changes nothing if the change is set aside already, from before a crash.
    package func quarantine(_ entry: UnreadableEntry, at now: Timestamp) async throws {
        try await write { commit in
            _ = try commit.quarantine(entry.position, because: entry.reason, at: now)
        }
    }
}

extension OpenCommit {
    /// Sets the change at `position` aside.
    ///
    /// - Returns: Whether it was not before, for example before a crash.
    func quarantine(
        _ position: LogPosition, because reason: String, at now: Timestamp
    ) throws -> Bool {
        return try db.executeCounting(
            sql: """
                INSERT INTO quarantine (position, container, reason, body, quarantinedAt)
                SELECT position, container, ?, CAST(body AS TEXT), ?
                FROM logEntry WHERE position = ?
                ON CONFLICT DO NOTHING
                """, arguments: [reason, now.stored, position.stored]) > 0
    }
}
