import FoundationEssentials
package import RelayModel
package import Storage

extension RelayStore: StandbyVersions {
    package func settledPlace() async throws -> LogPlace {
        try await read { db in
            try LogPlace(at: try ProgressMark(storedIn: db).position, storedIn: db)
        }
    }

    package func endings(
        since place: LogPlace, upTo end: LogPosition
    ) async throws -> EndingsSince {
        try await read { db in
            let settled = try ProgressMark(storedIn: db).position
            let there = try LogPlace(at: place.position, storedIn: db)
            if let fault = place.fault(on: there, settled: settled) { return .unknown(fault) }
            let past = try PastReach(db, after: place.position)
            guard past.isWhole else { return .unknown(.pruned) }
            var reading = EndingReading(db, after: place.position, upTo: end)
            for table in VersionTable.allCases {
                try reading.read(table)
                if past.isTaken { try reading.read(table, isPast: true) }
            }
            return .all(reading.endings)
        }
    }
}

extension LogPlace {
    /// Creates the place of a position in the store's log.
    init(at position: LogPosition, storedIn db: Database) throws {
        let row = try Row.fetchOne(
            db,
            sql: """
                SELECT identity, \(db.dialect.timeline) AS timeline,
                    (SELECT appendedAt FROM logEntry WHERE position = ?) AS appendedAt
                FROM store
                """, arguments: [position.stored])
        guard let row, let identity = UUIDBytes(bytes: row[0] as Data) else {
            throw StorageError.damaged(path: "store", reason: "the store has no identity")
        }
        self.init(
            store: identity, timeline: row[1], position: position,
            appendedAt: (row[2] as Int64?).map { Timestamp(stored: $0) })
    }
}

/// Where the versions that ended after a position are kept.
private struct PastReach {
    /// Whether some were moved to the tables of past versions.
    let isTaken: Bool
    /// Whether all moved versions still exist.
    let isWhole: Bool

    init(_ db: Database, after position: LogPosition) throws {
        let row = try Row.fetchOne(
            db, sql: "SELECT endedPrunedTo, pastFrom FROM progress WHERE shard = 0")
        guard let row else {
            throw StorageError.damaged(path: "progress", reason: "the shard has no progress")
        }
        isTaken = position < LogPosition(stored: row[0])
        guard isTaken else {
            isWhole = true
            return
        }
        // Versions that ended before the first entry of the log are deleted.
        let first = try Int64.fetchOne(
            db,
            sql: """
                SELECT coalesce(
                    (SELECT position FROM logEntry ORDER BY position LIMIT 1),
                    (SELECT position + 1 FROM shardHead WHERE shard = 0))
                """)
        let keptFrom = max(row[1] as Int64, (first ?? .max) - 1)
        isWhole = LogPosition(stored: keptFrom) <= position
    }
}
