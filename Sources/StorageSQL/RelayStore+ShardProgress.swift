package import RelayModel
package import Storage
import Synchronization

extension RelayStore: ShardProgress {
    package func mark() async throws -> ProgressMark {
        try await read { try ProgressMark(storedIn: $0) }
    }

    package func settle(_ step: SettledStep) async throws {
        let writing = try SettleStep(step, epoch: epoch, inboxLimit: settings.inboxPerUser)
        let rows =
            step.retries.count + step.deadLetters.count + step.inbox.count + step.places.count
        try await write(changes: max(1, rows)) { commit in
            try writing.run(in: &commit)
        }
        if !step.newRanges.isEmpty { ranges.signal() }
        if writing.firingCount > 0 {
            notAddedUp.add(writing.firingCount, ordering: .relaxed)
        }
        inboxes.tell(step.inbox.lazy.map(\.owner))
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
        // Clock readings that arrive slightly out of order do not count as a clock that was set
        // back.
        let limit = now.advanced(by: .seconds(1)).stored
        let latest = try await read { db in
            try Int64.fetchOne(
                db,
                sql: """
                    SELECT max(coalesce((SELECT max(decidedAt) FROM retry), 0), coalesce((
                        SELECT max(decidedAt) FROM digest WHERE closedAt IS NULL), 0))
                    """)
        }
        guard let latest, limit < latest else { return 0 }
        return try await write { commit in
            let digests = try commit.db.executeCounting(
                sql: """
                    UPDATE digest SET dueAt = ?1 + max(0, dueAt - decidedAt), decidedAt = ?1,
                        openedAt = min(openedAt, ?1)
                    WHERE id IN (
                        SELECT id FROM digest WHERE closedAt IS NULL AND decidedAt > ?2 LIMIT 500)
                    """, arguments: [now.stored, limit])
            let retries = try commit.db.executeCounting(
                sql: """
                    UPDATE retry SET dueAt = ?1 + max(0, dueAt - decidedAt), decidedAt = ?1
                    WHERE deliveryID IN (
                        SELECT deliveryID FROM retry WHERE decidedAt > ?2 LIMIT 500)
                    """, arguments: [now.stored, limit])
            return digests + retries
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
