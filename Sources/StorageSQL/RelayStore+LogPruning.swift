package import RelayModel
import Storage

// Pruning of the tables that get rows with each change, in the order in which the rows came. While
// a snapshot is held, as by a copy of a large database for hours, PostgreSQL walks over rows that
// were deleted since. So the first existing row is found in a read transaction, while no writer
// waits, and the deletion begins there.
extension RelayStore {
    /// Moves versions that ended at or before `position`, and that neither the progress, the
    /// snapshot nor an open range needs, to the tables of past versions, and returns their number.
    ///
    /// One call moves at most `limit` of each kind. Explanations read the past versions.
    ///
    /// Until then the versions are needed for recovery, which must know exactly what was active at
    /// a position. A range also needs the versions that ended at its own change: the once
    /// subscriptions that the change claimed.
    package func pruneEndedVersions(
        upTo position: LogPosition, limit: Int = 1000
    ) async throws -> Int {
        let tables = try await read { db in
            try VersionTable.allCases.map { ($0, try PastStep.firstEnd(of: $0, in: db)) }
        }
        return try await write { commit in
            let pasts = try PastStep(commit.db)
            var ends: [Int64] = []
            for case (let table, let first?) in tables {
                ends += try pasts.move(table, from: first, upTo: position, limit: limit)
            }
            if let last = ends.max() {
                // A snapshot from before this position is no longer valid.
                try commit.db.execute(
                    sql: "UPDATE progress SET endedPrunedTo = max(endedPrunedTo, ?)",
                    arguments: [last])
            }
            return ends.count
        }
    }

    /// Deletes rows with ascending numbers, beginning at `first`, and returns how many.
    ///
    /// The first parameter of `sql` is the number to begin at. `arguments` are the others.
    func deleteInOrder(
        _ sql: String, from first: Int64?, _ arguments: StatementArguments, _ portion: Int
    ) async throws -> Int {
        guard var next = first else { return 0 }
        return try await inPortions(portion) { store in
            let start: StatementArguments = [next]
            let count = try await store.write { commit in
                return try commit.db.cachedStatement(sql: sql)
                    .executeCounting(arguments: start + arguments)
            }
            // The next row is at least this far, and further where numbers were skipped.
            next += Int64(count)
            return count
        }
    }

    /// Deletes rows whose moment or position is at most `last`, and returns how many.
    func prune(_ rows: AgingRows, upTo last: Int64, _ portion: Int) async throws -> Int {
        var next = Int64.min
        return try await inPortions(portion) { store in
            let start = next
            let first = try await store.read { db in try rows.first(from: start, in: db) }
            guard let first, first <= last else { return 0 }
            next = first
            return try await store.write { commit in
                return try rows.delete(from: first, to: last, limit: portion, in: commit.db)
            }
        }
    }

    func pruneLog(
        _ retention: Retention, at now: Timestamp, _ portion: Int
    ) async throws -> Int {
        let found = try await read { db -> (first: Int64?, cutoff: Int64?) in
            let log = LogCutoff(db: db)
            return (try log.first(), try log.position(retention, at: now))
        }
        guard let cutoff = found.cutoff else { return 0 }
        return try await deleteInOrder(
            Self.prunedEntries, from: found.first, [cutoff, Int64.max, portion], portion)
    }

    /// The first entries of the log from a position on, at most a given number.
    static let prunedEntries = """
        DELETE FROM logEntry WHERE position IN (
            SELECT position FROM logEntry WHERE position >= ? AND position <= min(?,
                (SELECT position FROM progress WHERE shard = 0),
                coalesce((SELECT min(position) - 1 FROM rangeTask), ?))
            ORDER BY position LIMIT ?)
        """

    /// Deletes past versions that ended before all entries that the log still has.
    func prunePasts(_ portion: Int) async throws -> Int {
        let first = try await read { try LogCutoff(db: $0).firstOrNext() }
        var count = 0
        for table in VersionTable.allCases {
            count += try await prune(.past(table), upTo: first - 1, portion)
        }
        return count
    }
}
