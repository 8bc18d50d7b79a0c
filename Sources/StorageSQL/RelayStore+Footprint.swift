import RelayModel
package import Storage

extension RelayStore {
    /// Returns the owed work of each container besides the log.
    ///
    /// It reads the indexes of retries and ranges, which takes about 0.1 s for a million rows.
    package func backlogOfContainers() async throws -> [ContainerBacklog] {
        try await read { try DeliveryAccount.all(in: $0) }.map {
            ContainerBacklog(
                container: $0.container, retries: $0.pending,
                rangeSubscriptions: $0.waitingInRanges)
        }
    }

    /// The space that the store takes.
    package var footprint: StoreFootprint { engine.footprint }

    /// Returns the owed work besides the log.
    ///
    /// The cost does not depend on the amount, because the counts are maintained with each change.
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
            if backlog.quarantined > 0 {
                backlog.newestSetAside = try SetAsideChange.newest(in: db)
            }
            return backlog
        }
    }
}

private extension SetAsideChange {
    /// Returns the change that was set aside last, or whose range was.
    ///
    /// An index finds the newest row of each table.
    static func newest(in db: Database) throws -> SetAsideChange? {
        var newest: (moment: Int64, container: Int64, position: Int64, reason: String)?
        for table in ["quarantine", "quarantinedRange"] {
            let row = try Row.fetchOne(
                db,
                sql: """
                    SELECT quarantinedAt, container, position, reason FROM \(table)
                    ORDER BY quarantinedAt DESC LIMIT 1
                    """)
            guard let row else { continue }
            let moment: Int64 = row[0]
            if let newest, newest.moment >= moment { continue }
            newest = (moment: moment, container: row[1], position: row[2], reason: row[3])
        }
        return try newest.map { found in
            SetAsideChange(
                container: try db.containerKey(found.container),
                position: LogPosition(stored: found.position), reason: found.reason)
        }
    }
}
