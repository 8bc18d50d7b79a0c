import Foundation
import GRDB
package import RelayModel
package import Storage

extension RelayStore: ShardProgress {
    package func mark() async throws -> ProgressMark {
        try await read { try ProgressMark(storedIn: $0) }
    }

    package func settle(_ step: SettledStep) async throws {
        let writing = try SettleStep(step, epoch: epoch, inboxLimit: settings.inboxPerUser)
        let rows = step.retries.count + step.deadLetters.count + step.inbox.count
        try await write(changes: max(1, rows)) { commit in
            try writing.run(in: &commit)
        }
        if !step.newRanges.isEmpty { ranges.signal() }
    }

    package func claimOnce(
        _ serials: [UInt64], at position: LogPosition
    ) async throws -> Set<UInt64> {
        guard !serials.isEmpty else { return [] }
        return try await write(changes: serials.count) { commit in
            try ClaimStep(position: position).run(serials, in: commit)
        }
    }

    package func dueRetries(
        at now: Timestamp, limit: Int, excluding: Set<DeliveryID>,
        unless isHeld: @escaping @Sendable (RetryLane) -> Bool
    ) async throws -> [Retry] {
        let reading = RetryReading(
            excluding: excluding.union(unreadable.deliveries), isHeld: isHeld)
        let (due, damaged) = try await read { [unreadable] db in
            try reading.due(at: now, limit: limit, unreadable, in: db)
        }
        if !damaged.isEmpty { try await setAside(damaged, at: now) }
        return due
    }

    package func nextRetryDue(
        excluding: Set<DeliveryID>, unless isHeld: @escaping @Sendable (RetryLane) -> Bool
    ) async throws -> Timestamp? {
        let reading = RetryReading(
            excluding: excluding.union(unreadable.deliveries), isHeld: isHeld)
        return try await read { try reading.nextDue(in: $0) }
    }

    package func renewWaits(at now: Timestamp) async throws -> Int {
        // Readings of the clock that come out of turn are no step.
        let limit = now.advanced(by: .seconds(1)).stored
        let latest = try await read { db in
            try Int64.fetchOne(db, sql: "SELECT max(decidedAt) FROM retry")
        }
        guard let latest, limit < latest else { return 0 }
        return try await write { commit in
            try commit.db.execute(
                sql: """
                    UPDATE retry SET dueAt = ?1 + max(0, dueAt - decidedAt), decidedAt = ?1
                    WHERE deliveryID IN (
                        SELECT deliveryID FROM retry WHERE decidedAt > ?2 LIMIT 500)
                    """, arguments: [now.stored, limit])
            return commit.db.changesCount
        }
    }

    package func collapsingRetries(limit: Int) async throws -> [Retry] {
        try await read { [unreadable] db in
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT * FROM retry WHERE collapses = 1 ORDER BY position DESC LIMIT ?
                    """, arguments: [max(0, limit)])
            return try unreadable.readable(rows, in: "retry") { try Retry(row: $0) }
        }
    }
}

extension ProgressMark {
    /// The mark of the shard in `db`.
    init(storedIn db: Database) throws {
        let row = try Row.fetchOne(
            db, sql: "SELECT position, \"offset\" FROM progress WHERE shard = 0")
        guard let row else {
            throw StorageError.damaged(path: "progress", reason: "the shard has no progress")
        }
        self.init(
            position: LogPosition(stored: row[0]), offset: UInt32(clamping: row[1] as Int64))
    }
}

/// Claims once subscriptions for one change.
struct ClaimStep {
    let position: LogPosition

    func run(_ serials: [UInt64], in commit: OpenCommit) throws -> Set<UInt64> {
        // A version that ended elsewhere, by deletion, may still be owed earlier changes.
        let claim = try commit.db.cachedStatement(
            sql: """
                INSERT INTO onceClaim (subscription, position)
                SELECT serial, ?2 FROM subscription
                WHERE serial = ?1 AND activation < ?2 AND (ended IS NULL OR ended >= ?2)
                ON CONFLICT DO NOTHING
                """)
        let end = try commit.db.cachedStatement(
            sql: """
                UPDATE subscription SET ended = ?2
                WHERE serial = ?1 AND (ended IS NULL OR ended > ?2)
                """)
        let holder = try commit.db.cachedStatement(
            sql: "SELECT position FROM onceClaim WHERE subscription = ?")
        var claimed: Set<UInt64> = []
        for serial in serials {
            try claim.execute(arguments: [serial.stored, position.stored])
            if commit.db.changesCount > 0 {
                try end.execute(arguments: [serial.stored, position.stored])
                claimed.insert(serial)
            } else if try Int64.fetchOne(holder, arguments: [serial.stored]) == position.stored {
                claimed.insert(serial)
            }
        }
        return claimed
    }
}
