import RelayModel
import Storage

extension DeliveryAccount {
    static func all(in db: Database) throws -> [DeliveryAccount] {
        // Digests are summed once for all containers. If there are many, PostgreSQL would otherwise
        // search all open digests again for each container.
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT name AS containerName, environment, coalesce(owed, 0) AS owed,
                    coalesce(delivered, 0) AS delivered, coalesce(dropped, 0) AS dropped,
                    coalesce(folded, 0) AS folded, coalesce(seen, 0) AS seen,
                    (SELECT count(*) FROM retry WHERE retry.container = container.id)
                        + coalesce(told.deliveries, 0) AS pending,
                    (SELECT count(*) FROM deadLetter
                        WHERE deadLetter.container = container.id) AS deadLetters,
                    (SELECT coalesce(sum(subscriptions), 0) FROM rangeTask
                        WHERE rangeTask.container = container.id) AS waitingInRanges
                FROM container LEFT JOIN account ON account.container = container.id
                    LEFT JOIN (
                        SELECT container, sum(deliveries) AS deliveries FROM digest
                        WHERE closedAt IS NULL GROUP BY container) AS told
                        ON told.container = container.id
                ORDER BY name, environment
                """)
        return try rows.map { row in
            DeliveryAccount(
                container: try StoredRow(row: row, table: "account").containerKey(),
                owed: row["owed"], delivered: row["delivered"], pending: row["pending"],
                folded: row["folded"], seen: row["seen"],
                waitingInRanges: row["waitingInRanges"], deadLetters: row["deadLetters"],
                dropped: row["dropped"])
        }
    }
}

extension Database {
    /// Adds amounts to the account of a container.
    func addToAccount(
        of container: Int64, owed: Int = 0, delivered: Int = 0, dropped: Int = 0,
        folded: Int = 0, seen: Int = 0
    ) throws {
        guard [owed, delivered, dropped, folded, seen].contains(where: { $0 != 0 }) else { return }
        try cachedStatement(
            sql: """
                INSERT INTO account (container, owed, delivered, dropped, folded, seen)
                VALUES (?, ?, ?, ?, ?, ?)
                ON CONFLICT (container) DO UPDATE SET owed = account.owed + excluded.owed,
                    delivered = account.delivered + excluded.delivered,
                    dropped = account.dropped + excluded.dropped,
                    folded = account.folded + excluded.folded,
                    seen = account.seen + excluded.seen
                """
        ).execute(arguments: [container, owed, delivered, dropped, folded, seen])
    }
}
