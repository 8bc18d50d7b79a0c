import RelayModel
package import Storage

extension RelayStore {
    /// The accounts of all containers, of one commit, ordered by name.
    ///
    /// Both sides are computed from the tables: `owed` counts what was passed, whatever became of
    /// it; the other side counts what is there. It reads the indexes of retries and dead letters.
    package func accounts() async throws -> [DeliveryAccount] {
        try await read { try DeliveryAccount.all(in: $0) }
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
