package import RelayModel
import Storage

extension RelayStore {
    /// Deletes subscriptions that expired before `moment`, as their owners would, and returns their
    /// number, at most `limit`.
    ///
    /// They no longer fire in any case. Deleting them frees their share of the quota.
    package func endExpired(
        before moment: Timestamp, at now: Timestamp, limit: Int
    ) async throws -> Int {
        let some = try await read { db in
            try Int64.fetchOne(
                db,
                sql: """
                    SELECT min(expiresAt) FROM subscription WHERE ended IS NULL AND expiresAt < ?
                    """, arguments: [moment.stored])
        }
        guard some != nil else { return 0 }
        return try await write(changes: limit) { commit in
            // The writer looks for them again, so that one that was renewed meanwhile stays.
            let rows = try Row.fetchAll(
                commit.db,
                sql: """
                    \(VersionTable.subscription.select())
                    WHERE expiresAt < ? AND ended IS NULL ORDER BY expiresAt LIMIT ?
                    """, arguments: [moment.stored, max(0, limit)])
            for row in rows {
                let stored = StoredRow(row: row, table: "subscription")
                let owner = SubscriptionOwner(
                    container: try stored.containerKey(), database: try stored.choice("database"),
                    user: try stored.identifier("ownerName"))
                let step = SubscriptionStep(
                    owner: owner, container: try commit.container(owner.container),
                    user: row["owner"], now: now)
                _ = try step.run(
                    [.delete(try stored.identifier("subscriptionID"))], .independent, in: &commit)
            }
            return rows.count
        }
    }
}
