package import RelayModel
import Storage

extension RelayStore {
    /// Deletes subscriptions whose time was over before `moment`, as their owners would; returns
    /// how many, at most `limit`.
    ///
    /// They do not fire any more in any case: it gives their places back.
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
            // Found by the writer: one that is renewed meanwhile stays.
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
