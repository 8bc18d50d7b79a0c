import RelayModel
import Storage
import Synchronization

extension RelayStore {
    /// Deletes the oldest dedupe keys of each container that has more than is allowed, and returns
    /// their number.
    ///
    /// Keys of contents do not count: they are remembered for a minute.
    func boundDedupeKeys(
        _ retention: Retention, at now: Timestamp, _ portion: Int
    ) async throws -> Int {
        guard let most = retention.dedupeKeys else { return 0 }
        try await countDedupeKeys(at: now)
        let surpluses = rememberedKeys.withLock { keys in
            keys.end(at: now.stored)
            return keys.surpluses(beyond: most)
        }
        var count = 0
        for (container, surplus) in surpluses {
            count += try await dropDedupeKeys(of: container, surplus, portion)
            // If there were fewer, the others have gone in another way.
            rememberedKeys.withLock { $0.remove(surplus, of: container) }
        }
        return count
    }

    /// Counts the keys that have come since the last time; after the start, all of them.
    ///
    /// Later keys end later, so those are counted whose end is beyond the last one that was
    /// counted. Those of the last minute come next time, because requests that came before may
    /// still wait for their commit.
    private func countDedupeKeys(at now: Timestamp) async throws {
        let until = now.advanced(by: settings.dedupeWindow - .seconds(60)).stored
        let last = min(until, Int64.max - 1)
        let (width, part) = rememberedKeys.withLock { ($0.width, $0.part) }
        while true {
            try Task.checkCancellation()
            let start = rememberedKeys.withLock { max($0.next, now.stored) }
            guard start <= last else { return }
            let first = try await read { db in try AgingRows.dedupeKeys.first(from: start, in: db) }
            guard let first, first <= last else {
                return rememberedKeys.withLock { $0.add([], next: last + 1) }
            }
            let end = last - first < part ? last : first + part - 1
            let found = try await read { db in
                try Row.fetchAll(
                    db.cachedStatement(sql: Self.countedKeys), arguments: [width, first, end]
                ).map {
                    RememberedKeys.Found(
                        container: $0["container"], bin: $0["bin"], count: $0["number"])
                }
            }
            rememberedKeys.withLock { $0.add(found, next: end + 1) }
        }
    }

    /// Deletes a container's oldest keys, and returns their number.
    ///
    /// They may be few among those of other containers. So where they are is found while no writer
    /// waits, and each transaction goes through a limited number of keys.
    private func dropDedupeKeys(
        of container: Int64, _ surplus: Int, _ portion: Int
    ) async throws -> Int {
        var (next, count) = (Int64.min, 0)
        while count < surplus {
            try Task.checkCancellation()
            CrashPoint.prune.reach()
            let (start, some) = (next, min(portion, surplus - count))
            let range = try await read { db in
                try Self.firstKeys(of: container, from: start, within: 10 * portion, in: db)
            }
            guard let range else { return count }
            let deleted = try await write { commit in
                return try commit.db.deleteRows(
                    of: "dedupe", by: AgingRows.dedupeKeys.key, Self.oldestKeys,
                    [range.lowerBound, range.upperBound, container, some])
            }
            count += deleted
            // Those of one moment may be more than a portion.
            if deleted == some {
                next = range.lowerBound
            } else if range.upperBound < .max {
                next = range.upperBound + 1
            } else {
                return count
            }
        }
        return count
    }

    /// Returns from which moment on a container has keys, and up to which moment about `most` keys
    /// of all containers end; `nil` if it has none from `start` on.
    private static func firstKeys(
        of container: Int64, from start: Int64, within most: Int, in db: Database
    ) throws -> ClosedRange<Int64>? {
        let first = try Int64.fetchOne(
            db.cachedStatement(sql: firstKey), arguments: [start, container])
        guard let first else { return nil }
        let last = try Int64.fetchOne(
            db.cachedStatement(sql: laterKey), arguments: [first, most])
        return first...(last ?? .max)
    }

    /// The keys that end between two moments, by container and bin.
    private static let countedKeys = """
        SELECT container, rememberedUntil / ? AS bin, count(*) AS number
        FROM dedupe INDEXED BY dedupeRememberedUntil
        WHERE rememberedUntil >= ? AND rememberedUntil <= ?
            AND kind <> \(DedupeKey.Kind.content.stored)
        GROUP BY container, bin
        """

    /// The part of a statement that selects a container's oldest keys between two moments.
    ///
    /// The sign before the container's column keeps PostgreSQL from reading and sorting all keys of
    /// the container, by the index that begins with it.
    static let oldestKeys = """
        INDEXED BY dedupeRememberedUntil
        WHERE rememberedUntil >= ? AND rememberedUntil <= ? AND +container = ?
            AND kind <> \(DedupeKey.Kind.content.stored)
        ORDER BY rememberedUntil LIMIT ?
        """

    private static let firstKey = """
        SELECT rememberedUntil FROM dedupe INDEXED BY dedupeRememberedUntil
        WHERE rememberedUntil >= ? AND +container = ?
            AND kind <> \(DedupeKey.Kind.content.stored)
        ORDER BY rememberedUntil LIMIT 1
        """

    private static let laterKey = """
        SELECT rememberedUntil FROM dedupe INDEXED BY dedupeRememberedUntil
        WHERE rememberedUntil >= ? ORDER BY rememberedUntil LIMIT 1 OFFSET ?
        """
}
