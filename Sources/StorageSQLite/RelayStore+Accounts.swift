import GRDB
package import RelayModel
package import Storage

extension RelayStore {
    /// Deletes versions of subscriptions and devices that ended at or before `position`, and
    /// that the progress and the snapshot have passed, except for open ranges; returns how many.
    ///
    /// One call deletes at most `limit` of each.
    ///
    /// Until then recovery needs them: what was active at a position is told exactly. A range needs
    /// what ended at its own change too: the once subscriptions that the change claimed.
    package func pruneEndedVersions(
        upTo position: LogPosition, limit: Int = 1000
    ) async throws -> Int {
        try await write { commit in
            var ends: [Int64] = []
            for table in ["subscription", "device"] {
                ends += try Int64.fetchAll(
                    commit.db,
                    sql: """
                        DELETE FROM \(table) WHERE serial IN (
                            SELECT serial FROM \(table)
                            WHERE ended <= min(?, (SELECT position FROM progress WHERE shard = 0),
                                coalesce((SELECT position FROM stateSnapshot), ?),
                                coalesce((SELECT min(position) - 1 FROM rangeTask), ?))
                            LIMIT ?)
                        RETURNING ended
                        """, arguments: [position.stored, Int64.max, Int64.max, max(0, limit)])
            }
            if let last = ends.max() {
                // No snapshot from before that counts any more.
                try commit.db.execute(
                    sql: "UPDATE progress SET endedPrunedTo = max(endedPrunedTo, ?)",
                    arguments: [last])
            }
            return ends.count
        }
    }

    /// Forgets dedupe keys whose window has passed at `now`; returns how many, at most `limit`.
    package func pruneDedupeKeys(at now: Timestamp, limit: Int = 1000) async throws -> Int {
        try await write { commit in
            try commit.db.execute(
                sql: """
                    DELETE FROM dedupe WHERE (container, source, kind, key) IN (
                        SELECT container, source, kind, key FROM dedupe
                        WHERE rememberedUntil <= ? ORDER BY rememberedUntil LIMIT ?)
                    """, arguments: [now.stored, max(0, limit)])
            return commit.db.changesCount
        }
    }

    /// How many attempts ended how, and how many deliveries are pending or dead: one side of the
    /// conservation law.
    package func deliveryCounts() async throws -> DeliveryCounts {
        try await read { db in
            let row = try Row.fetchOne(
                db,
                sql: """
                    SELECT accepted, deferred, unregistered, dead,
                        (SELECT count(*) FROM retry) AS pending,
                        (SELECT count(*) FROM deadLetter) AS deadLetters
                    FROM progress WHERE shard = 0
                    """)
            guard let row else {
                throw StorageError.damaged(path: "progress", reason: "the shard has no progress")
            }
            return DeliveryCounts(
                accepted: row[0], deferred: row[1], unregistered: row[2], dead: row[3],
                pending: row[4], deadLetters: row[5])
        }
    }
}
