import RelayModel
package import Storage

extension RelayStore {
    /// What each container owes besides the log; it reads the indexes of retries and ranges, some
    /// 0.1 s for a million rows.
    package func backlogOfContainers() async throws -> [ContainerBacklog] {
        try await read { try DeliveryAccount.all(in: $0) }.map {
            ContainerBacklog(
                container: $0.container, retries: $0.pending,
                rangeSubscriptions: $0.waitingInRanges)
        }
    }

    /// How much room the store takes.
    package var footprint: StoreFootprint { engine.footprint }

    /// What is owed besides the log; how much that is does not matter, because it is counted as it
    /// comes and goes.
    package func backlog() async throws -> Backlog {
        try await read { db in
            let row = try Row.fetchOne(
                db,
                sql: """
                    SELECT retries, ranges, rangeSubscriptions,
                        (SELECT count(*) FROM quarantine)
                            + (SELECT count(*) FROM quarantinedRange) AS quarantined,
                        (SELECT coalesce(sum(number), 0) FROM container JOIN quotaUse
                            ON quotaUse.container = container.id AND thing = 5
                                AND holder = '') AS unkept
                    FROM backlog WHERE shard = 0
                    """)
            var backlog = Backlog(
                retries: row?["retries"] ?? 0, ranges: row?["ranges"] ?? 0,
                rangeSubscriptions: row?["rangeSubscriptions"] ?? 0,
                quarantined: row?["quarantined"] ?? 0)
            backlog.unkept = row?["unkept"] ?? 0
            return backlog
        }
    }
}
