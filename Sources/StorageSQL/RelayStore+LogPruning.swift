package import RelayModel
import Storage

// What comes with each change, and goes in the order in which it came. PostgreSQL walks over rows
// that were deleted for as long as somebody keeps a snapshot from before, as a copy of a large
// database does for hours: so the first that is there is looked for while nobody waits to write,
// and whoever deletes begins with it.
extension RelayStore {
    /// Deletes versions of subscriptions and devices that ended at or before `position`, and
    /// that the progress and the snapshot have passed, except for open ranges; returns how many.
    ///
    /// What the log's changes were judged by is kept beside, for whoever asks why.
    ///
    /// One call deletes at most `limit` of each.
    ///
    /// Until then recovery needs them: what was active at a position is told exactly. A range needs
    /// what ended at its own change too: the once subscriptions that the change claimed.
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
                // No snapshot from before that counts any more.
                try commit.db.execute(
                    sql: "UPDATE progress SET endedPrunedTo = max(endedPrunedTo, ?)",
                    arguments: [last])
            }
            return ends.count
        }
    }

    /// Deletes rows whose numbers ascend, from the first that there is on; returns how many.
    ///
    /// `sql` begins with where it looks from; `arguments` are the others that it has.
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
            // Where numbers were left out, the next one is further on.
            next += Int64(count)
            return count
        }
    }

    /// Deletes rows whose moment or place is `last` or earlier; returns how many.
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

    /// The first entries of the log from a position on, so many at the most.
    static let prunedEntries = """
        DELETE FROM logEntry WHERE position IN (
            SELECT position FROM logEntry WHERE position >= ? AND position <= min(?,
                (SELECT position FROM progress WHERE shard = 0),
                coalesce((SELECT min(position) - 1 FROM rangeTask), ?))
            ORDER BY position LIMIT ?)
        """

    /// Deletes versions that ended before every entry that the log still has.
    func prunePasts(_ portion: Int) async throws -> Int {
        let first = try await read { try LogCutoff(db: $0).firstOrNext() }
        var count = 0
        for table in VersionTable.allCases {
            count += try await prune(.past(table), upTo: first - 1, portion)
        }
        return count
    }
}
