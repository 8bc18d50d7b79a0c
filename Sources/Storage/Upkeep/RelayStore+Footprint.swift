import GRDB

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

    /// Collects counts.
    package init(retries: Int, ranges: Int, rangeSubscriptions: Int, quarantined: Int) {
        self.retries = retries
        self.ranges = ranges
        self.rangeSubscriptions = rangeSubscriptions
        self.quarantined = quarantined
    }
}

extension RelayStore {
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
                            + (SELECT count(*) FROM quarantinedRange) AS quarantined
                    FROM backlog WHERE shard = 0
                    """)
            return Backlog(
                retries: row?["retries"] ?? 0, ranges: row?["ranges"] ?? 0,
                rangeSubscriptions: row?["rangeSubscriptions"] ?? 0,
                quarantined: row?["quarantined"] ?? 0)
        }
    }
}
