package import RelayModel
package import Storage
import Synchronization

extension RelayStore {
    /// Deletes what has exceeded `retention` at `now`, and what nothing refers to any more.
    ///
    /// Every transaction deletes at most `portion` rows, so that appends can run in between. The
    /// file reuses the freed space, but does not shrink.
    ///
    /// - Throws: ``StorageError``; what was deleted before stays deleted.
    package func prune(
        _ retention: Retention, at now: Timestamp, portion: Int
    ) async throws -> PrunedCounts {
        var counts = PrunedCounts()
        counts.dedupeKeys = try await prune(.dedupeKeys, upTo: now.stored, portion)
        _ = try await prune(.signatures, upTo: now.stored, portion)
        // Each is an edit that takes several round trips to a server, so the portions are small
        // enough for other requests to write in between.
        let some = min(portion, WriteLines.changesPerTurn)
        counts.expired = try await inPortions(some) { store in
            try await store.endExpired(
                before: now.advanced(by: .zero - Retention.expiredAge), at: now, limit: some)
        }
        counts.endedVersions = try await inPortions(portion) { store in
            try await store.pruneEndedVersions(upTo: store.horizon.head, limit: portion)
        }
        // Scanning very many records may exceed a server's time limit for a statement. The error is
        // thrown after the rest is done, because it must not let the log grow.
        var later: StorageError?
        do {
            counts.dedupeKeys += try await boundDedupeKeys(retention, at: now, portion)
        } catch let error as StorageError where error.passes {
            later = error
        }
        do {
            counts.shadows = try await pruneShadows(retention, at: now, portion)
        } catch let error as StorageError where error.passes {
            later = error
        }
        counts.shadows += try await pruneVersions(retention, at: now, portion)
        counts.marks = try await pruneMarks(retention, at: now, portion)
        counts.marks += try await pruneZones(retention, at: now, portion)
        counts.logEntries = try await pruneLog(retention, at: now, portion)
        counts.pastVersions = try await prunePasts(portion)
        counts.receiptBlocks = try await pruneReceipts(retention, at: now, portion)
        if let age = retention.receiptAge {
            let cutoff = now.advanced(by: .zero - age)
            counts.clientReceipts = try await prune(
                .clientReceipts, upTo: cutoff.stored, portion)
            counts.digests = try await delete(
                "digest", "id", from: "closedAt", olderThan: age, at: now, portion)
        }
        counts.throttlePlaces = try await prune(.throttlePlaces, upTo: now.stored, portion)
        counts.deadLetters = try await pruneDeadLetters(retention, at: now, portion)
        counts.parkedChanges = try await pruneParked(retention, at: now, portion)
        counts.quarantined = try await pruneQuarantine(retention, at: now, portion)
        if let later { throw later }
        return counts
    }

    /// Repeats `body` until it deletes less than a portion, and returns the total number of deleted
    /// rows.
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
                return try commit.db.cachedStatement(sql: sql).executeCounting(arguments: arguments)
            }
        }
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
        return try await count + pruneParked(beyond: bytes, portion)
    }

    /// Reduces the parked changes to `bytes` bytes.
    ///
    /// The oldest ones of the containers that have more than others are deleted, so that one
    /// container's parked changes never push out another's.
    private func pruneParked(beyond bytes: Int, _ portion: Int) async throws -> Int {
        let shares = try await read { db -> [Int64: Int] in
            let all = try Int.fetchOne(db, sql: "SELECT parkedBytes FROM backlog") ?? 0
            guard all > bytes else { return [:] }
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT container, sum(length(body) + length(headers)) AS bytes
                    FROM parkedChange GROUP BY container
                    """)
            return Dictionary(
                rows.map { ($0["container"] as Int64, $0["bytes"] as Int) },
                uniquingKeysWith: { $0 + $1 })
        }
        guard let level = EvenLevel(of: Array(shares.values), within: bytes).level else { return 0 }
        var count = 0
        for (container, share) in shares where share > level {
            count += try await dropParked(of: container, share - level, portion)
        }
        return count
    }

    /// Deletes the oldest parked changes of a container until `bytes` of them are gone.
    private func dropParked(of container: Int64, _ bytes: Int, _ portion: Int) async throws -> Int {
        var rest = bytes
        var count = 0
        while rest > 0 {
            try Task.checkCancellation()
            CrashPoint.prune.reach()
            let wanted = rest
            let (rows, freed) = try await write { commit -> (Int, Int) in
                let before = try Self.parkedBytes(commit.db)
                // Deletes a row as long as the rows before it do not free enough.
                let rows = try commit.db.executeCounting(
                    sql: """
                        DELETE FROM parkedChange WHERE number IN (
                            SELECT number FROM (
                                SELECT number, sum(length(body) + length(headers)) OVER (
                                    ORDER BY number
                                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
                                FROM (
                                    SELECT * FROM parkedChange WHERE container = ?
                                    ORDER BY number LIMIT ?) AS first)
                                AS summed
                            WHERE coalesce(before, 0) < ?)
                        """, arguments: [container, portion, wanted])
                return (rows, before - (try Self.parkedBytes(commit.db)))
            }
            guard rows > 0 else { break }
            count += rows
            rest -= freed
        }
        return count
    }

    private static func parkedBytes(_ db: Database) throws -> Int {
        try Int.fetchOne(db, sql: "SELECT parkedBytes FROM backlog") ?? 0
    }

    private func pruneQuarantine(
        _ retention: Retention, at now: Timestamp, _ portion: Int
    ) async throws -> Int {
        var count = 0
        if let age = retention.quarantineAge {
            count += try await delete(
                "quarantine", "position", from: "quarantinedAt", olderThan: age, at: now, portion)
            count += try await delete(
                "quarantinedRange", "id", from: "quarantinedAt", olderThan: age, at: now, portion)
        }
        guard let bytes = retention.quarantineBytes else { return count }
        return try await count + pruneQuarantine(beyond: bytes, portion)
    }

    /// Reduces the set-aside changes to `bytes` bytes, in the same way as parked changes.
    ///
    /// A user who may save expensive conditions and make changes can cause any number of them.
    private func pruneQuarantine(beyond bytes: Int, _ portion: Int) async throws -> Int {
        let newest = try await read { db in
            try Int64.fetchOne(db, sql: "SELECT max(position) FROM quarantine")
        }
        // Computing their size reads all of them, so it is done only if a change was set aside
        // since the last time.
        guard let newest, newest != setAsideLookedAt.withLock({ $0 }) else { return 0 }
        let shares = try await read { db -> [Int64: Int] in
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT container, sum(\(Self.setAsideBytes(db))) AS bytes
                    FROM quarantine GROUP BY container
                    """)
            return Dictionary(
                rows.map { ($0["container"] as Int64, $0["bytes"] as Int) },
                uniquingKeysWith: { $0 + $1 })
        }
        var count = 0
        if let level = EvenLevel(of: Array(shares.values), within: bytes).level {
            for (container, share) in shares where share > level {
                count += try await dropSetAside(of: container, beyond: level, portion)
            }
        }
        setAsideLookedAt.withLock { $0 = newest }
        return count
    }

    /// Deletes the oldest set-aside changes of a container beyond `bytes` bytes.
    ///
    /// Those that the progress has not passed stay, because after a crash they say which changes
    /// are set aside.
    private func dropSetAside(
        of container: Int64, beyond bytes: Int, _ portion: Int
    ) async throws -> Int {
        let last = try await read { db in
            try Int64.fetchOne(
                db,
                sql: """
                    SELECT max(position) FROM (
                        SELECT position,
                            sum(\(Self.setAsideBytes(db))) OVER (ORDER BY position DESC) AS kept
                        FROM quarantine WHERE container = ?) AS summed
                    WHERE kept > ?
                    """, arguments: [container, bytes])
        }
        guard let last else { return 0 }
        return try await delete(
            """
            DELETE FROM quarantine WHERE position IN (
                SELECT position FROM quarantine
                WHERE container = ?
                    AND position <= min(?, (SELECT position FROM progress WHERE shard = 0))
                ORDER BY position LIMIT ?)
            """, [container, last, portion], portion)
    }

    /// Returns the expression for the size of a set-aside change: its body, and about 256 bytes for
    /// the rest of the row.
    private static func setAsideBytes(_ db: Database) -> String {
        "\(db.dialect.bytes(of: "body")) + 256"
    }

    /// Deletes the rows of `table` whose `moment` is older than `age`.
    private func delete(
        _ table: String, _ key: String, from moment: String, olderThan age: Duration,
        at now: Timestamp, _ portion: Int
    ) async throws -> Int {
        try await delete(
            Self.deletingFirst(of: table, by: key, from: moment),
            [now.advanced(by: .zero - age).stored, portion], portion)
    }

    /// Returns the statement that deletes the first rows of `table` whose `moment` is over, at most
    /// a given number.
    static func deletingFirst(of table: String, by key: String, from moment: String) -> String {
        """
        DELETE FROM \(table) WHERE \(key) IN (
            SELECT \(key) FROM \(table) WHERE \(moment) <= ? ORDER BY \(moment) LIMIT ?)
        """
    }

    // MARK: Receipts and dead letters

    private func pruneReceipts(
        _ retention: Retention, at now: Timestamp, _ portion: Int
    ) async throws -> Int {
        var count = 0
        if let age = retention.receiptAge {
            let cutoff = now.advanced(by: .zero - age).stored
            let first = try await read { db in try Self.receiptSizes(db).bounds()?.lowerBound }
            // Blocks are written approximately in the order of time, so only the first ones are
            // looked at.
            count += try await deleteInOrder(
                """
                DELETE FROM receiptBlock WHERE id IN (
                    SELECT id FROM (
                        SELECT id, lastAt FROM receiptBlock WHERE id >= ? ORDER BY id LIMIT ?)
                        AS first
                    WHERE lastAt <= ?)
                """, from: first, [portion, cutoff], portion)
        }
        guard let bytes = retention.receiptBytes else { return count }
        let found = try await read { db -> (first: Int64?, cutoff: Int64?) in
            let sizes = Self.receiptSizes(db)
            return (try sizes.bounds()?.lowerBound, try sizes.last(beyond: bytes))
        }
        guard let cutoff = found.cutoff else { return count }
        return try await count
            + deleteInOrder(
                """
                DELETE FROM receiptBlock WHERE id IN (
                    SELECT id FROM receiptBlock WHERE id >= ? AND id <= ? ORDER BY id LIMIT ?)
                """, from: found.first, [cutoff, portion], portion)
    }

    private static func receiptSizes(_ db: Database) -> SizeCutoff {
        SizeCutoff(db: db, table: "receiptBlock", number: "id", rowBytes: 64)
    }

    private func pruneDeadLetters(
        _ retention: Retention, at now: Timestamp, _ portion: Int
    ) async throws -> Int {
        var count = 0
        for container in try await read({
            try Int64.fetchAll($0, sql: "SELECT id FROM container")
        }) {
            if let age = retention.deadLetterAge {
                let cutoff = now.advanced(by: .zero - age).stored
                count += try await dropDeadLetters(of: container, endedBy: cutoff, portion)
            }
            guard let kept = retention.deadLetters else { continue }
            // The deletion is limited by number and not only by moment, because many dead letters
            // may end at the same moment.
            let surplus = try await read { db in
                try Row.fetchOne(
                    db,
                    sql: """
                        SELECT count(*), max(endedAt) FROM (
                            SELECT endedAt FROM deadLetter WHERE container = ?
                            ORDER BY endedAt DESC LIMIT -1 OFFSET ?) AS older
                        """, arguments: [container, kept]
                ).map { (count: $0[0] as Int, last: $0[1] as Int64?) }
            }
            guard let surplus, let last = surplus.last else { continue }
            count += try await dropDeadLetters(
                of: container, endedBy: last, atMost: surplus.count, portion)
        }
        return count
    }

    private func dropDeadLetters(
        of container: Int64, endedBy cutoff: Int64, atMost most: Int = .max, _ portion: Int
    ) async throws -> Int {
        var rest = most
        return try await inPortions(portion) { store in
            let some = min(portion, rest)
            guard some > 0 else { return 0 }
            let count = try await store.write { commit in
                let count = try commit.db.executeCounting(
                    sql: Self.droppedLetters, arguments: [container, cutoff, some])
                try commit.db.addToAccount(of: container, dropped: count)
                return count
            }
            rest -= count
            return count
        }
    }

    /// Deletes the first dead letters of a container that ended by a moment, at most a given
    /// number.
    ///
    /// The condition on `attempts` is always true. It makes PostgreSQL read the row, and therefore
    /// choose the index with the order. Another index contains all the needed columns but not the
    /// order, and would read and sort all dead letters of the container for a few.
    static let droppedLetters = """
        DELETE FROM deadLetter WHERE deliveryID IN (
            SELECT deliveryID FROM deadLetter
            WHERE container = ? AND endedAt <= ? AND attempts >= 0 ORDER BY endedAt LIMIT ?)
        """

    // MARK: The planner

    /// Lets the database update its statistics where they may be stale.
    package func optimize() async throws {
        try await write { [engine] commit in try engine.optimize(commit.db) }
    }
}
