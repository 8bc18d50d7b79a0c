import GRDB
package import RelayModel
package import Storage

extension RelayStore {
    /// Deletes what has outlived `retention` at `now`, and what nothing refers to any more.
    ///
    /// Every transaction deletes at most `portion` rows, so that appends go on between them; the
    /// room in the file is used again, but the file does not shrink.
    ///
    /// - Throws: ``StorageError``; what was deleted before stays deleted.
    package func prune(
        _ retention: Retention, at now: Timestamp, portion: Int
    ) async throws -> PrunedCounts {
        var counts = PrunedCounts()
        counts.dedupeKeys = try await inPortions(portion) { store in
            try await store.pruneDedupeKeys(at: now, limit: portion)
        }
        counts.endedVersions = try await inPortions(portion) { store in
            try await store.pruneEndedVersions(upTo: store.horizon.head, limit: portion)
        }
        counts.shadows = try await pruneShadows(retention, at: now, portion)
        counts.marks = try await pruneMarks(retention, at: now, portion)
        counts.marks += try await pruneZones(retention, at: now, portion)
        counts.logEntries = try await pruneLog(retention, at: now, portion)
        counts.receiptBlocks = try await pruneReceipts(retention, at: now, portion)
        counts.deadLetters = try await pruneDeadLetters(retention, at: now, portion)
        counts.parkedChanges = try await pruneParked(retention, at: now, portion)
        counts.quarantined = try await pruneQuarantine(retention, at: now, portion)
        return counts
    }

    /// Repeats `body` until it deletes fewer than a portion; returns how many altogether.
    func inPortions(
        _ portion: Int, _ body: (RelayStore) async throws -> Int
    ) async throws -> Int {
        var total = 0
        while true {
            try Task.checkCancellation()
            CrashPoint.prune.reach()
            let count = try await body(self)
            total += count
            if count < portion { return total }
        }
    }

    private func delete(
        _ sql: String, _ arguments: StatementArguments, _ portion: Int
    ) async throws -> Int {
        try await inPortions(portion) { store in
            try await store.write { commit in
                try commit.db.cachedStatement(sql: sql).execute(arguments: arguments)
                return commit.db.changesCount
            }
        }
    }

    // MARK: The log

    private func pruneLog(
        _ retention: Retention, at now: Timestamp, _ portion: Int
    ) async throws -> Int {
        let cutoff = try await read { try LogCutoff(db: $0).position(retention, at: now) }
        guard let cutoff else { return 0 }
        return try await delete(
            """
            DELETE FROM logEntry WHERE position IN (
                SELECT position FROM logEntry WHERE position <= min(?,
                    (SELECT position FROM progress WHERE shard = 0),
                    coalesce((SELECT min(position) - 1 FROM rangeTask), ?))
                ORDER BY position LIMIT ?)
            """, [cutoff, cutoff, portion], portion)
    }

    private func pruneShadows(
        _ retention: Retention, at now: Timestamp, _ portion: Int
    ) async throws -> Int {
        guard let age = retention.shadowAge else { return 0 }
        let cutoff = try await read { db in
            try LogCutoff(db: db).lastPosition(appendedBy: now.advanced(by: .zero - age))
        }
        guard let cutoff else { return 0 }
        return try await delete(
            """
            DELETE FROM shadowRecord WHERE (container, database, owner, zoneOwner, zoneName,
                recordType, recordName) IN (
                SELECT container, database, owner, zoneOwner, zoneName, recordType, recordName
                FROM shadowRecord WHERE position <= ? AND isDeleted = 0 AND source <> ? LIMIT ?)
            """, [cutoff, SourceName.cloudKit.rawValue, portion], portion)
    }

    // MARK: What was set aside

    private func pruneParked(
        _ retention: Retention, at now: Timestamp, _ portion: Int
    ) async throws -> Int {
        var count = 0
        if let age = retention.parkedAge {
            count += try await delete(
                "parkedChange", "number", from: "receivedAt", olderThan: age, at: now, portion)
        }
        guard let bytes = retention.parkedBytes else { return count }
        // The oldest, as long as those before them are not enough.
        return try await count
            + delete(
                """
                DELETE FROM parkedChange WHERE number IN (
                    SELECT number FROM (
                        SELECT number, sum(length(body) + length(headers))
                            OVER (ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
                            AS before
                        FROM (SELECT * FROM parkedChange ORDER BY number LIMIT ?))
                    WHERE coalesce(before, 0) < (SELECT parkedBytes FROM backlog) - ?)
                """, [portion, bytes], portion)
    }

    private func pruneQuarantine(
        _ retention: Retention, at now: Timestamp, _ portion: Int
    ) async throws -> Int {
        guard let age = retention.quarantineAge else { return 0 }
        let changes = try await delete(
            "quarantine", "position", from: "quarantinedAt", olderThan: age, at: now, portion)
        return try await changes
            + delete(
                "quarantinedRange", "id", from: "quarantinedAt", olderThan: age, at: now, portion)
    }

    /// Deletes the rows of `table` whose `moment` is older than `age`.
    private func delete(
        _ table: String, _ key: String, from moment: String, olderThan age: Duration,
        at now: Timestamp, _ portion: Int
    ) async throws -> Int {
        try await delete(
            """
            DELETE FROM \(table) WHERE \(key) IN (
                SELECT \(key) FROM \(table) WHERE \(moment) <= ? LIMIT ?)
            """, [now.advanced(by: .zero - age).stored, portion], portion)
    }

    // MARK: Receipts and dead letters

    private func pruneReceipts(
        _ retention: Retention, at now: Timestamp, _ portion: Int
    ) async throws -> Int {
        var count = 0
        if let age = retention.receiptAge {
            // Blocks are written in the order of time, about: those that come first are looked at.
            count += try await delete(
                """
                DELETE FROM receiptBlock WHERE id IN (
                    SELECT id FROM (SELECT id, lastAt FROM receiptBlock ORDER BY id LIMIT ?)
                    WHERE lastAt <= ?)
                """, [portion, now.advanced(by: .zero - age).stored], portion)
        }
        guard let bytes = retention.receiptBytes else { return count }
        let cutoff = try await read { db in
            try Int64.fetchOne(
                db,
                sql: """
                    SELECT max(id) - CAST(? / (SELECT avg(length(body)) + 64 FROM (
                        SELECT body FROM receiptBlock ORDER BY id DESC LIMIT 200)) AS INTEGER)
                    FROM receiptBlock
                    """, arguments: [bytes])
        }
        guard let cutoff, cutoff > 0 else { return count }
        return try await count
            + delete(
                """
                DELETE FROM receiptBlock WHERE id IN (
                    SELECT id FROM receiptBlock WHERE id <= ? ORDER BY id LIMIT ?)
                """, [cutoff, portion], portion)
    }

    private func pruneDeadLetters(
        _ retention: Retention, at now: Timestamp, _ portion: Int
    ) async throws -> Int {
        var count = 0
        let age = retention.deadLetterAge.map { now.advanced(by: .zero - $0).stored }
        for container in try await read({
            try Int64.fetchAll($0, sql: "SELECT id FROM container")
        }) {
            let surplus = try await read { db in
                try retention.deadLetters.flatMap { kept in
                    try Int64.fetchOne(
                        db,
                        sql: """
                            SELECT endedAt FROM deadLetter WHERE container = ?
                            ORDER BY endedAt DESC LIMIT 1 OFFSET ?
                            """, arguments: [container, kept])
                }
            }
            guard let cutoff = [age, surplus].compactMap(\.self).max() else { continue }
            count += try await dropDeadLetters(of: container, endedBy: cutoff, portion)
        }
        return count
    }

    private func dropDeadLetters(
        of container: Int64, endedBy cutoff: Int64, _ portion: Int
    ) async throws -> Int {
        try await inPortions(portion) { store in
            try await store.write { commit in
                try commit.db.execute(
                    sql: """
                        DELETE FROM deadLetter WHERE deliveryID IN (
                            SELECT deliveryID FROM deadLetter
                            WHERE container = ? AND endedAt <= ? ORDER BY endedAt LIMIT ?)
                        """, arguments: [container, cutoff, portion])
                let count = commit.db.changesCount
                try commit.db.addToAccount(of: container, dropped: count)
                return count
            }
        }
    }

    // MARK: The planner

    /// Has SQLite look at its statistics, where it thinks that they are stale.
    package func optimize() async throws {
        try await write { commit in try commit.db.execute(sql: "PRAGMA optimize") }
    }
}

/// Up to where the log has outlived its retention.
struct LogCutoff {
    let db: Database

    /// The last position to delete; `nil` if there is none.
    func position(_ retention: Retention, at now: Timestamp) throws -> Int64? {
        let byAge = try retention.logAge.flatMap {
            try lastPosition(appendedBy: now.advanced(by: .zero - $0))
        }
        return [byAge, try retention.logBytes.flatMap(positionBySize)].compactMap(\.self).max()
    }

    /// The last entry that was appended by `moment`, in O(log n): positions have no gaps, and are
    /// in the order of time, about.
    func lastPosition(appendedBy moment: Timestamp) throws -> Int64? {
        guard let bounds = try bounds() else { return nil }
        var (low, high) = (bounds.lowerBound - 1, bounds.upperBound)
        let statement = try db.cachedStatement(
            sql: "SELECT appendedAt FROM logEntry WHERE position = ?")
        while low < high {
            let middle = low + (high - low + 1) / 2
            let at = try Int64.fetchOne(statement, arguments: [middle]) ?? .max
            if at <= moment.stored { low = middle } else { high = middle - 1 }
        }
        return low < bounds.lowerBound ? nil : low
    }

    private func positionBySize(_ bytes: Int) throws -> Int64? {
        guard let bounds = try bounds() else { return nil }
        let average =
            try Double.fetchOne(
                db,
                sql: """
                    SELECT avg(length(body)) FROM (
                        SELECT body FROM logEntry ORDER BY position DESC LIMIT 500)
                    """) ?? 0
        // What a row has besides its body.
        let kept = Int64(Double(bytes) / (average + 48))
        let cutoff = bounds.upperBound - kept
        return cutoff < bounds.lowerBound ? nil : cutoff
    }

    private func bounds() throws -> ClosedRange<Int64>? {
        let row = try Row.fetchOne(
            db,
            sql: """
                SELECT (SELECT min(position) FROM logEntry), (SELECT max(position) FROM logEntry)
                """)
        guard let first = row?[0] as Int64?, let last = row?[1] as Int64? else { return nil }
        return first...max(first, last)
    }
}
