package import RelayModel
package import Storage

extension RelayStore {
    /// Sets an unreadable change aside, with the reason, so that later changes are followed.
    ///
    /// It fires nothing until it is repaired and posted again.
    ///
    /// If the change was set aside before a crash, nothing changes.
    package func quarantine(_ entry: UnreadableEntry, at now: Timestamp) async throws {
        try await write { commit in
            _ = try commit.quarantine(entry.position, because: entry.reason, at: now)
        }
    }
}

extension OpenCommit {
    /// Sets the change at `position` aside.
    ///
    /// - Returns: Whether this call did it; `false` if it was done before, for example before a
    ///   crash.
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
