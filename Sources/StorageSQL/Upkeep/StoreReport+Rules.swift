import RelayModel
package import Storage

extension StoreReport {
    /// Creates the report of a store's tables as of one moment.
    ///
    /// `found` are the problems that the engine has found; those of the tables are added.
    package init(rowsOf db: Database, schemaVersion: Int, problems found: [String]) throws {
        var problems = found
        problems += try Self.unreadableRows(in: db)
        let gone = try Self.goneMembers(in: db)
        if gone > 0 { problems.append("\(gone) × a range names a subscription that is missing") }
        let accounts = try DeliveryAccount.all(in: db)
        let row = try Row.fetchOne(
            db, sql: "SELECT shardHead.position, progress.position FROM shardHead, progress")
        problems += accounts.filter { $0.difference != 0 }.map { account in
            "\(account.container): "
                + Counted.text(account.owed, "delivery was", "deliveries were") + " owed, and "
                + "\(account.owed - account.difference) are delivered, pending, folded, seen, "
                + "dead or dropped"
        }
        for (sentence, sql) in Self.rules(db.dialect) + Self.presence(db.dialect) {
            if let count = try Int.fetchOne(db, sql: sql), count != 0 {
                problems.append("\(count) × \(sentence)")
            }
        }
        // A store whose rows are still being moved in looks damaged, but is not.
        if !problems.isEmpty, let mark = try? MoveMark.find(in: db), mark.direction == .here {
            problems.insert(mark.incompleteness, at: 0)
        }
        self.init(
            problems: problems, accounts: accounts, head: LogPosition(stored: row?[0] ?? 0),
            progress: LogPosition(stored: row?[1] ?? 0), schemaVersion: schemaVersion)
    }

    /// Returns the rules that must hold between the tables.
    ///
    /// Each statement counts the violations.
    private static func rules(_ dialect: Dialect) -> [(sentence: String, sql: String)] {
        [
            (
                "a position is missing in the log",
                "SELECT coalesce(max(position) - min(position) + 1 - count(*), 0) FROM logEntry"
            ),
            (
                "the log has an entry after its head",
                "SELECT count(*) FROM logEntry WHERE position > (SELECT position FROM shardHead)"
            ),
            (
                "an entry that is not settled is missing in the log",
                """
                SELECT shardHead.position - progress.position - (SELECT count(*) FROM logEntry
                    WHERE logEntry.position > progress.position) FROM shardHead, progress
                """
            ),
            (
                "a delivery is pending and dead at once",
                "SELECT count(*) FROM retry JOIN deadLetter USING (deliveryID)"
            ),
            (
                "a delivery is the newest of an open digest, and also pending or dead",
                """
                SELECT count(*) FROM digest WHERE closedAt IS NULL AND (
                    EXISTS (SELECT 1 FROM retry WHERE retry.deliveryID = digest.deliveryID)
                    OR EXISTS (SELECT 1 FROM deadLetter
                        WHERE deadLetter.deliveryID = digest.deliveryID))
                """
            ),
            (
                "a range lies beyond the progress",
                """
                SELECT count(*) FROM rangeTask
                WHERE position > (SELECT position FROM progress WHERE shard = 0)
                """
            ),
            (
                "an accepted delivery is in no account, or in more than one",
                """
                SELECT abs(accepted - acceptedBefore
                    - (SELECT coalesce(sum(delivered), 0) FROM account))
                FROM progress WHERE shard = 0
                """
            ),
            (
                "a retry, range or parked change is counted wrongly",
                """
                SELECT abs(retries - (SELECT count(*) FROM retry))
                    + abs(ranges - (SELECT count(*) FROM rangeTask))
                    + abs(rangeSubscriptions
                        - (SELECT coalesce(sum(subscriptions), 0) FROM rangeTask))
                    + abs(parkedBytes - (SELECT coalesce(sum(length(body) + length(headers)), 0)
                        FROM parkedChange))
                FROM backlog WHERE shard = 0
                """
            ),
            (
                "a subscription, device, record or zone is counted wrongly",
                miscounted(dialect)
            ),
            (
                "a once subscription was claimed and has not ended",
                """
                SELECT count(*) FROM onceClaim JOIN subscription ON serial = onceClaim.subscription
                WHERE ended IS NULL OR ended > onceClaim.position
                """
            ),
        ]
    }

    /// Returns the rules about rows that must exist, because a missing row violates no rule about
    /// its content.
    private static func presence(_ dialect: Dialect) -> [(sentence: String, sql: String)] {
        var rules: [(sentence: String, sql: String)] = [
            (
                "a row that every store must have is missing",
                """
                SELECT 5 - (SELECT count(*) FROM store) - (SELECT count(*) FROM shardHead)
                    - (SELECT count(*) FROM progress) - (SELECT count(*) FROM backlog)
                    - (SELECT count(*) FROM sessionSecret)
                """
            )
        ]
        guard dialect == .postgresql else { return rules }
        // On PostgreSQL these tables have no foreign keys. In a file, the check of all foreign keys
        // covers them.
        for table in ["logEntry", "retry", "dedupe"] {
            rules.append(
                (
                    "a row of \(table) belongs to a container that is missing",
                    """
                    SELECT count(*) FROM \(table) WHERE NOT EXISTS (
                        SELECT 1 FROM container WHERE container.id = \(table).container)
                    """
                ))
        }
        return rules
    }
}
