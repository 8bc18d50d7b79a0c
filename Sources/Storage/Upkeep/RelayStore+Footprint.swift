import GRDB
package import RelayModel

/// How much room the store takes, and how much there is.
package struct StoreFootprint: Sendable, Hashable {
    /// The size of the database file in bytes.
    package var fileBytes: Int
    /// The size of the write-ahead log in bytes.
    package var walBytes: Int
    /// The room on the disk in bytes, as far as it is known.
    package var freeBytes: UInt64?
}

/// What is owed besides the log.
package struct Backlog: Sendable, Hashable {
    /// Deliveries that wait to be tried again.
    package var retries: Int
    /// Ranges of huge fan-outs that are not settled, and the subscriptions in them.
    package var ranges: Int
    /// The subscriptions in those ranges.
    package var rangeSubscriptions: Int
    /// Changes of the log that could not be read, and ranges that could not be worked.
    package var quarantined: Int
    /// Changes whose record was not kept, because a quota was reached; since the store was made.
    package var unkept = 0

    /// Collects counts.
    package init(retries: Int, ranges: Int, rangeSubscriptions: Int, quarantined: Int) {
        self.retries = retries
        self.ranges = ranges
        self.rangeSubscriptions = rangeSubscriptions
        self.quarantined = quarantined
    }
}

/// What one container owes besides the log.
package struct ContainerBacklog: Sendable, Hashable {
    /// The container.
    package var container: ContainerKey
    /// Deliveries that wait to be tried again.
    package var retries: Int
    /// The subscriptions in ranges of huge fan-outs that are not settled.
    package var rangeSubscriptions: Int

    /// Collects counts.
    package init(container: ContainerKey, retries: Int, rangeSubscriptions: Int) {
        self.container = container
        self.retries = retries
        self.rangeSubscriptions = rangeSubscriptions
    }
}

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
    package var footprint: StoreFootprint {
        StoreFootprint(
            fileBytes: LogTrimmer.size(of: path), walBytes: LogTrimmer.size(of: path + "-wal"),
            freeBytes: disk.freeBytes)
    }

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
