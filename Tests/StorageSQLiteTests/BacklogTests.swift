import Foundation
import GRDB
import Migrations
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StorageSQL
@testable import StorageSQLite

/// Large backlogs do not stall the store: they are counted, read and deleted in small steps.
@Suite struct BacklogTests {
    /// Fills the store with retries, dead letters and a fan-out range.
    private static func fill(_ store: RelayStore) async throws {
        _ = try await store.append(
            [Sample.unkeyed("a")], container: Sample.container, source: Sample.source,
            at: Sample.moment(0))
        var step = SettledStep(
            from: .start, to: ProgressMark(position: LogPosition(1), offset: 0))
        step.retries = (1...3).map { ProgressConformance.retry($0, dueAt: 1) }
        step.deadLetters = (10...11).map { ProgressConformance.letter($0) }
        step.tallies[Sample.container] = DeliveryTally(owed: 5)
        step.newRanges = [
            NewRange(container: Sample.container, position: LogPosition(1), serials: [4, 5, 6])
        ]
        try await store.settle(step)
    }

    @Test func `the counts of the backlog follow its changes`() async throws {
        let home = try TemporaryStore()
        let store = try await home.openReady()
        try await Self.fill(store)
        #expect(
            try await store.backlog()
                == Backlog(retries: 3, ranges: 1, rangeSubscriptions: 3, quarantined: 0))
        let mark = try await store.mark()
        var step = SettledStep(from: mark, to: mark)
        // One retry is rescheduled, one ends, and one becomes a dead letter.
        step.retries = [ProgressConformance.retry(1, dueAt: 9, attempts: 2)]
        step.endedRetries = [Sample.deliveryID(2)]
        step.deadLetters = [ProgressConformance.letter(3)]
        step.tallies[Sample.container] = DeliveryTally(owed: 0, delivered: 1)
        step.receipts = [Sample.receipt(2, .accepted, at: 1)]
        try await store.settle(step)
        #expect(try await store.backlog().retries == 1)
        let redriven = try await store.redriveDeadLetters(
            nil, of: Sample.container, reason: nil, at: Sample.moment(20))
        #expect(redriven == Redriving(redriven: 3))
        #expect(try await store.backlog().retries == 4)
        await store.close()
        let queue = try DatabaseQueue(path: home.path)
        try await queue.write { db in
            try db.execute(sql: "DELETE FROM rangeTask")
            #expect(try Int.fetchOne(db, sql: "SELECT ranges FROM backlog") == 0)
            #expect(try Int.fetchOne(db, sql: "SELECT rangeSubscriptions FROM backlog") == 0)
        }
        try queue.close()
        #expect(try RelayStore.check(path: home.path).problems == [])
    }

    @Test func `a backlog from before the counts existed is counted`() async throws {
        let home = try TemporaryStore()
        let connections = StoreConnections(path: home.path, settings: .forTests)
        _ = try connections.prepare(StoreSchema(migrations: Array(Migration.released.prefix(8))))
        let queue = try DatabaseQueue(path: home.path)
        try await queue.write { db in
            try db.execute(
                sql: """
                    INSERT INTO container
                        (id, name, environment, topics, expirationSeconds, savedAt)
                    VALUES (1, 'c', 'production', '[]', 0, 0);
                    INSERT INTO logEntry (position, container, appendedAt, kind, isStale, body)
                    VALUES (1, 1, 0, 4, 0, '{}');
                    UPDATE shardHead SET position = 1;
                    UPDATE progress SET position = 1;
                    INSERT INTO rangeTask (container, position, subscriptions, serials, "offset")
                    VALUES (1, 1, 3, x'040101', 0);
                    """)
            for number in 1...3 {
                try db.execute(
                    sql: """
                        INSERT INTO retry (container, deliveryID, position, "offset",
                            subscriptionSerial, deviceSerial, body, attempts, dueAt, reason, lane)
                        VALUES (1, ?, 1, 0, 1, 1, '{}', 1, 0, '', 'development t')
                        """, arguments: [Sample.deliveryID(UInt64(number)).stored])
            }
        }
        try queue.close()
        let store = try home.open()
        #expect(
            try await store.backlog()
                == Backlog(retries: 3, ranges: 1, rangeSubscriptions: 3, quarantined: 0))
        await store.close()
    }

    @Test func `many dead letters are deleted in many transactions, and later ones stay`()
        async throws
    {
        let store = try await TemporaryStore().openReady()
        var step = SettledStep(from: .start, to: .start)
        step.deadLetters = (1...1201).map {
            ProgressConformance.letter($0, reason: $0.isMultiple(of: 2) ? "even" : "odd")
        }
        step.tallies[Sample.container] = DeliveryTally(owed: 1201)
        try await store.settle(step)
        let before = store.commitCount
        let even = try await store.redriveDeadLetters(
            nil, of: Sample.container, reason: "even", at: Sample.moment(2000))
        #expect(even == Redriving(redriven: 600))
        #expect(store.commitCount - before == 2)
        let named = try await store.dropDeadLetters(
            [1, 2, 1201].map { Sample.deliveryID($0) }, of: Sample.container, reason: nil)
        #expect(named == 2)
        let rest = try await store.dropDeadLetters(nil, of: Sample.container, reason: "odd")
        #expect(rest == 599)
        let account = try await store.accounts()[0]
        #expect(account.pending == 600 && account.deadLetters == 0 && account.dropped == 601)
        #expect(account.difference == 0)
        await store.close()
    }

    @Test func `expired subscriptions are deleted in many transactions`() async throws {
        let store = try await TemporaryStore().openReady()
        let edits = (0..<70).map { number -> SubscriptionEdit in
            var subscription = Sample.subscription(
                "s\(number)", artist: "a\(number)", of: Sample.owner("ann"))
            subscription.kindness.expiresAt = Sample.moment(100)
            return .create(subscription)
        }
        _ = try await store.edit(
            edits, of: Sample.owner("ann"), atomicity: .allOrNothing, at: Sample.moment(1))
        func commits(at seconds: Int64, expired: Int) async throws -> UInt64 {
            let before = store.commitCount
            let counts = try await store.prune(
                Retention(), at: Sample.moment(seconds), portion: 1000)
            #expect(counts.expired == expired)
            return store.commitCount - before
        }
        // A round makes a few commits in any case.
        let usual = try await commits(at: 2, expired: 0)
        let some = try await commits(at: 200_000, expired: 70)
        #expect(some >= usual + 3)
        await store.close()
    }

    @Test func `parked changes are kept up to a size, the newest longest`() async throws {
        let store = try await TemporaryStore().openReady()
        for number in 1...10 as ClosedRange<Int64> {
            _ = try await store.park(
                ParkedChange(
                    container: Sample.container, source: Sample.source, reason: "", path: "",
                    body: Array(repeating: UInt8(number), count: 1000), headers: [:],
                    receivedAt: Sample.moment(number)))
        }
        var retention = Retention()
        retention.parkedAge = nil
        retention.parkedBytes = 4100
        let counts = try await store.prune(retention, at: Sample.moment(20), portion: 2)
        #expect(counts.parkedChanges == 6)
        let left = try await store.parkedChanges(of: Sample.container, after: 0, limit: 99)
        #expect(left.map(\.number) == [7, 8, 9, 10])
        #expect(try await store.prune(retention, at: Sample.moment(20)).parkedChanges == 0)
        await store.close()
    }

    @Test func `large entries are read a few at a time`() async throws {
        let store = try await TemporaryStore().openReady()
        var change = Sample.change("big")
        change.after = RecordImage(["text": .string(String(repeating: "x", count: 900_000))])
        let big = ChangeToAppend(change, key: nil)
        for _ in 0..<12 {
            _ = try await store.append(
                [big], container: Sample.container, source: Sample.source, at: Sample.moment(0))
        }
        var position = LogPosition.start
        var counts: [Int] = []
        while true {
            let last = position
            let entries = try await store.read {
                try FollowedEntryReading($0).entries(after: last, limit: 256)
            }
            guard let end = entries.last?.position else { break }
            counts.append(entries.count)
            position = end
        }
        #expect(counts == [10, 2])
        await store.close()
    }
}
