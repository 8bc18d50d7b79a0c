import Foundation
import GRDB
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StorageSQL
@testable import StorageSQLite

/// The work beside the walk: pruning, accounts, checks and copies.
@Suite struct UpkeepTests {
    /// Appends `count` changes, one a second.
    private static func append(_ count: Int64, to store: RelayStore) async throws {
        for number in 0..<count {
            _ = try await store.append(
                [Sample.keyed("r\(number)", .position, "\(number)")], container: Sample.container,
                source: Sample.source, at: Sample.moment(number))
        }
    }

    private static func settle(_ store: RelayStore, upTo position: UInt64) async throws {
        try await store.settle(
            SettledStep(
                from: try await store.mark(),
                to: ProgressMark(position: LogPosition(position), offset: 0)))
    }

    private static func positions(_ store: RelayStore) async throws -> [UInt64] {
        try await store.storedEntries(after: .start, limit: 1000).map(\.position.rawValue)
    }

    // MARK: Pruning

    @Test func `only settled and old entries of the log are pruned`() async throws {
        let store = try await TemporaryStore().openReady()
        try await Self.append(20, to: store)
        try await Self.settle(store, upTo: 12)
        var retention = Retention()
        retention.logAge = .seconds(10)
        // Entry n was appended at second n - 1.
        let first = try await store.prune(retention, at: Sample.moment(14), portion: 2)
        #expect(first.logEntries == 5)
        #expect(try await Self.positions(store) == Array(6...20))
        let second = try await store.prune(retention, at: Sample.moment(1000), portion: 2)
        #expect(second.logEntries == 7)
        #expect(try await Self.positions(store) == Array(13...20))
        await store.close()
    }

    /// Earlier schemas stored no time with the version of a record that is not kept.
    @Test func `a version without a time ages from when it is first looked at`() async throws {
        let home = try TemporaryStore()
        let former = try await home.openReady()
        for name in ["a", "b"] {
            _ = try await former.append(
                [Sample.unkeyed(name, version: 5)], container: Sample.container,
                source: Sample.source, at: Sample.moment(0))
        }
        await former.close()
        let queue = try DatabaseQueue(path: home.path)
        try await queue.write { db in
            try db.execute(sql: "UPDATE shadowRecord SET modifiedAt = NULL")
            #expect(db.changesCount == 2)
        }
        try queue.close()
        let store = try home.open()
        func prune(day: Int64) async throws -> Int {
            try await store.prune(
                Retention(), at: Sample.moment(day * 86_400), portion: 1
            ).shadows
        }
        // A round dates one portion, so that a large store is not written as a whole.
        #expect(try await prune(day: 100) == 0)
        #expect(try await prune(day: 110) == 0)
        #expect(try await prune(day: 189) == 0)
        #expect(try await prune(day: 191) == 1)
        #expect(try await prune(day: 201) == 1)
        await store.close()
    }

    @Test func `the log is kept below its size, and an open range keeps its change`() async throws {
        let store = try await TemporaryStore().openReady()
        try await Self.append(40, to: store)
        var step = SettledStep(
            from: .start, to: ProgressMark(position: LogPosition(40), offset: 0))
        step.newRanges = [
            NewRange(container: Sample.container, position: LogPosition(30), serials: [1, 2])
        ]
        try await store.settle(step)
        var retention = Retention()
        retention.logAge = nil
        retention.logBytes = 1
        _ = try await store.prune(retention, at: Sample.moment(50))
        #expect(try await Self.positions(store) == Array(30...40))
        let range = try await store.nextRange(of: Sample.container, after: 0)
        let id = try #require(range?.id)
        let mark = try await store.mark()
        var last = SettledStep(from: mark, to: mark)
        last.rangeSteps = [RangeStep(id: id, from: 0, to: 4, isFinished: true)]
        try await store.settle(last)
        _ = try await store.prune(retention, at: Sample.moment(50))
        #expect(try await Self.positions(store) == [])
        // New positions continue after the pruned ones.
        let outcomes = try await store.append(
            [Sample.unkeyed("x")], container: Sample.container, source: Sample.source,
            at: Sample.moment(60))
        #expect(outcomes == [.appended(LogPosition(41))])
        await store.close()
    }

    /// Appends changes of a record with a text of `bytes` bytes.
    private static func append(_ count: Int, bytes: Int, to store: RelayStore) async throws {
        var change = Sample.change("r")
        change.after = RecordImage(["text": .string(String(repeating: "x", count: bytes))])
        _ = try await store.append(
            Array(repeating: ChangeToAppend(change, key: nil), count: count),
            container: Sample.container, source: Sample.source, at: Sample.moment(0))
    }

    @Test func `large entries displace no more than necessary`() async throws {
        let store = try await TemporaryStore(in: .memory).openReady()
        for _ in 0..<10 { try await Self.append(100, bytes: 10, to: store) }
        for _ in 0..<6 { try await Self.append(100, bytes: 20_000, to: store) }
        try await Self.settle(store, upTo: 1600)
        var retention = Retention()
        retention.logAge = nil
        retention.logBytes = 20_000_000
        let none = try await store.prune(retention, at: Sample.moment(1), portion: 1000)
        #expect(none.logEntries == 0)
        retention.logBytes = 4_000_000
        let some = try await store.prune(retention, at: Sample.moment(1), portion: 1000)
        #expect((1380...1450).contains(some.logEntries), "\(some.logEntries)")
        await store.close()
    }

    @Test func `one large entry counts for no more than its own size`() async throws {
        let store = try await TemporaryStore(in: .memory).openReady()
        // Of 2000 entries, pruning first looks at every fourth one, starting with the newest.
        for _ in 0..<9 { try await Self.append(111, bytes: 10, to: store) }
        try await Self.append(1, bytes: 500_000, to: store)
        for _ in 0..<10 { try await Self.append(100, bytes: 10, to: store) }
        #expect(try await store.head() == LogPosition(2000))
        try await Self.settle(store, upTo: 2000)
        var retention = Retention()
        retention.logAge = nil
        retention.logBytes = 1_900_000
        let none = try await store.prune(retention, at: Sample.moment(1), portion: 1000)
        #expect(none.logEntries == 0)
        retention.logBytes = 400_000
        let some = try await store.prune(retention, at: Sample.moment(1), portion: 1000)
        #expect(some.logEntries >= 1000, "\(some.logEntries)")
        await store.close()
    }

    @Test func `large receipts displace no more than necessary`() async throws {
        let store = try await TemporaryStore(in: .memory).openReady()
        try await store.write { commit in
            for number in 1...1200 {
                let bytes = number > 1000 ? 20_000 : 10
                try commit.db.execute(
                    sql: """
                        INSERT INTO receiptBlock
                            (firstPosition, lastPosition, lastAt, outcomes, count, body)
                        VALUES (1, 1, 0, 0, 1, zeroblob(?))
                        """, arguments: [bytes])
            }
        }
        var retention = Retention()
        retention.receiptAge = nil
        retention.receiptBytes = 5_000_000
        let none = try await store.prune(retention, at: Sample.moment(1), portion: 1000)
        #expect(none.receiptBlocks == 0)
        retention.receiptBytes = 2_000_000
        let some = try await store.prune(retention, at: Sample.moment(1), portion: 1000)
        #expect((1090...1110).contains(some.receiptBlocks), "\(some.receiptBlocks)")
        await store.close()
    }

    @Test func `receipts, dead letters and parked changes are pruned after their time`()
        async throws
    {
        let store = try await TemporaryStore().openReady()
        for number in 1...6 as ClosedRange<UInt64> {
            var step = SettledStep(from: .start, to: .start)
            step.receipts = [Sample.receipt(number, .dead, at: number)]
            step.deadLetters = [ProgressConformance.letter(number)]
            step.tallies[Sample.container] = DeliveryTally(owed: 1)
            try await store.settle(step)
        }
        _ = try await store.park(Self.parked("a", at: 1))
        var retention = Retention()
        retention.receiptAge = .seconds(10)
        retention.deadLetterAge = .seconds(10)
        retention.deadLetters = 3
        retention.parkedAge = .seconds(10)
        let counts = try await store.prune(retention, at: Sample.moment(12), portion: 1)
        #expect(counts.receiptBlocks == 2)
        // Two are too old, and one of the four others is beyond the limit.
        #expect(counts.deadLetters == 3)
        #expect(counts.parkedChanges == 1)
        let account = try await store.accounts()[0]
        #expect(account.owed == 6 && account.deadLetters == 3 && account.dropped == 3)
        #expect(account.difference == 0)
        await store.close()
    }

    @Test(arguments: [1, 2, 500])
    func `dead letters that ended at one moment are kept up to the limit`(
        portion: Int
    ) async throws {
        let store = try await TemporaryStore().openReady()
        var step = SettledStep(from: .start, to: .start)
        step.deadLetters = (1...7 as ClosedRange<UInt64>).map { number in
            var letter = ProgressConformance.letter(number)
            letter.at = Sample.moment(9)
            return letter
        }
        step.tallies[Sample.container] = DeliveryTally(owed: 7)
        try await store.settle(step)
        var retention = Retention()
        retention.deadLetters = 3
        let counts = try await store.prune(retention, at: Sample.moment(12), portion: portion)
        #expect(counts.deadLetters == 4)
        let again = try await store.prune(retention, at: Sample.moment(12), portion: portion)
        #expect(again.deadLetters == 0)
        let account = try await store.accounts()[0]
        #expect(account.deadLetters == 3 && account.dropped == 4 && account.difference == 0)
        await store.close()
    }

    @Test(arguments: [1, 3, 500])
    func `parked changes of one container displace none of another's`(portion: Int) async throws {
        let store = try await TemporaryStore().openReady()
        try await store.save(
            ContainerSettings(key: Sample.otherContainer, topics: []), at: Sample.moment(0))
        // The other container's change is the oldest.
        let small = Self.parked("small", of: Sample.otherContainer, at: 1)
        let number = try await store.park(small)
        for second in 2...21 as ClosedRange<Int64> {
            let body = "\(second) " + String(repeating: "x", count: 1000)
            _ = try await store.park(Self.parked(body, at: second))
        }
        var retention = Retention()
        retention.parkedBytes = 5000
        let counts = try await store.prune(retention, at: Sample.moment(30), portion: portion)
        let others = try await store.parkedChanges(of: Sample.otherContainer, after: 0, limit: 99)
        #expect(others.map(\.number) == [number])
        let left = try await store.parkedChanges(of: Sample.container, after: 0, limit: 99)
        #expect(left.map(\.receivedAt) == (18...21).map { Sample.moment($0) })
        #expect(counts.parkedChanges == 16)
        let again = try await store.prune(retention, at: Sample.moment(30), portion: 9)
        #expect(again.parkedChanges == 0)
        await store.close()
    }

    @Test func `small shares are kept whole, and the others get equal shares`() {
        #expect(EvenLevel(of: [], within: 0).level == nil)
        #expect(EvenLevel(of: [1, 2, 3], within: 6).level == nil)
        #expect(EvenLevel(of: [1, 2, 3], within: 5).level == 2)
        #expect(EvenLevel(of: [100, 1, 100], within: 51).level == 25)
        #expect(EvenLevel(of: [7], within: 0).level == 0)
        #expect(EvenLevel(of: [5, 5], within: 7).level == 3)
    }

    private static func parked(
        _ body: String, of container: ContainerKey = Sample.container, at seconds: Int64
    ) -> ParkedChange {
        ParkedChange(
            container: container, source: Sample.source, reason: "unmappable", path: "",
            body: Array(body.utf8), headers: [:], receivedAt: Sample.moment(seconds))
    }

    @Test func `a repeated change of a source is parked once`() async throws {
        let store = try await TemporaryStore().openReady()
        let first = try await store.park(Self.parked("a", at: 1))
        let other = try await store.park(Self.parked("b", at: 2))
        let again = try await store.park(Self.parked("a", at: 3))
        #expect(first == again && first != other)
        let all = try await store.parkedChanges(of: Sample.container, after: 0, limit: 9)
        #expect(all.map(\.number) == [first, other])
        await store.close()
    }

    // MARK: The accounts

    @Test func `dropping and redriving dead letters keeps the accounts balanced`() async throws {
        let store = try await TemporaryStore().openReady()
        var step = SettledStep(from: .start, to: .start)
        step.deadLetters = [1, 2, 3].map { ProgressConformance.letter($0) }
        step.tallies[Sample.container] = DeliveryTally(owed: 4, delivered: 1)
        try await store.settle(step)
        _ = try await store.dropDeadLetters(
            [Sample.deliveryID(1)], of: Sample.container, reason: nil)
        _ = try await store.redriveDeadLetters(
            [Sample.deliveryID(2)], of: Sample.container, reason: nil, at: Sample.moment(9))
        let account = try await store.accounts()[0]
        #expect(
            account
                == DeliveryAccount(
                    container: Sample.container, owed: 4, delivered: 1, pending: 1,
                    deadLetters: 1, dropped: 1))
        #expect(account.difference == 0)
        await store.close()
    }

    @Test func `a check names a missing delivery and a missing position`()
        async throws
    {
        let home = try TemporaryStore()
        let store = try await home.openReady()
        try await Self.append(5, to: store)
        var step = SettledStep(from: .start, to: .start)
        step.retries = [ProgressConformance.retry(1, dueAt: 1)]
        step.tallies[Sample.container] = DeliveryTally(owed: 1)
        try await store.settle(step)
        #expect(try RelayStore.check(path: home.path).problems == [])
        await store.close()
        let queue = try DatabaseQueue(path: home.path)
        try await queue.write { db in
            try db.execute(sql: "DELETE FROM retry; DELETE FROM logEntry WHERE position = 3")
        }
        try queue.close()
        #expect(
            try RelayStore.check(path: home.path).problems == [
                "\(Sample.container): 1 delivery was owed, and 0 are delivered, pending, folded, "
                    + "seen, dead or dropped",
                "1 × a position is missing in the log",
                "1 × an entry that is not settled is missing in the log",
            ])
    }

    // MARK: Copies

    @Test func `a copy made during appends is sound and can be opened`() async throws {
        let home = try TemporaryStore()
        let store = try await home.openReady()
        try await Self.append(50, to: store)
        let target = home.path + ".backup"
        let path = home.path
        async let writing: Void = Self.appendMore(to: store)
        let report = try await Task.onThread { try RelayStore.backUp(path: path, to: target) }
        try await writing
        #expect(report.problems == [] && report.head >= LogPosition(50))
        let attributes = try FileManager.default.attributesOfItem(atPath: target)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        #expect(throws: StorageError.self) { try RelayStore.backUp(path: path, to: target) }
        _ = try RelayStore.restore(from: target, to: target + ".store")
        let copy = try RelayStore.open(path: target + ".store", settings: .forTests)
        #expect(try await copy.head() == report.head)
        #expect(copy.storeIdentity != store.storeIdentity)
        await copy.close()
        await store.close()
        let names = try FileManager.default.contentsOfDirectory(
            atPath: (target as NSString).deletingLastPathComponent)
        let left = names.filter { $0.contains(".partial") }
        #expect(left == [])
    }

    private static func appendMore(to store: RelayStore) async throws {
        for number in 0..<200 {
            _ = try await store.append(
                [Sample.unkeyed("more\(number)")], container: Sample.container,
                source: Sample.source, at: Sample.moment(0))
        }
    }

    // MARK: The write-ahead log

    @Test func `the write-ahead log is restarted although readers come and go`() async throws {
        let home = try TemporaryStore()
        var settings = StoreSettings.forTests
        settings.walBytes = 512 * 1024
        // SQLite itself would never checkpoint.
        settings.checkpointPages = 0
        let store = try await home.openReady(settings)
        var change = Sample.change("big")
        change.after = RecordImage(["text": .string(String(repeating: "x", count: 20_000))])
        let big = ChangeToAppend(change, key: nil)
        func append(_ count: Int) async throws {
            for _ in 0..<count {
                _ = try await store.append(
                    [big], container: Sample.container, source: Sample.source,
                    at: Sample.moment(0))
            }
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<2 {
                group.addTask {
                    while !Task.isCancelled {
                        _ = try await store.storedEntries(after: .start, limit: 2)
                    }
                }
            }
            try await append(400)
            group.cancelAll()
        }
        // No reader is left, so the log shrinks at the latest when the writer next tries a
        // checkpoint.
        let end = ContinuousClock.now.advanced(by: .patience)
        while store.footprint.walBytes > 2 * 1024 * 1024, ContinuousClock.now < end {
            try await append(64)
        }
        #expect(store.footprint.walBytes <= 2 * 1024 * 1024)
        #expect(store.footprint.fileBytes > 6 * 1024 * 1024)
        await store.close()
    }

    // MARK: What refuses changes

    @Test func `a reached bound refuses changes by name and is released without a restart`()
        async throws
    {
        let store = try await TemporaryStore().openReady()
        store.gate.set([.retries: "many wait"])
        let refusal = StorageError.bounded(.retries, reason: "many wait")
        await #expect(throws: refusal) { try await Self.append(1, to: store) }
        await #expect(throws: refusal) { try await store.park(Self.parked("a", at: 1)) }
        // The relay continues to settle what it owes.
        try await Self.settle(store, upTo: 1)
        store.gate.set([:])
        try await Self.append(1, to: store)
        #expect(store.gate.refusals == [.retries: 2])
        await store.close()
    }
}

extension Task where Success == Never, Failure == Never {
    /// Runs a blocking closure on a thread of its own.
    static func onThread<Value: Sendable>(
        _ body: @escaping @Sendable () throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            Thread { continuation.resume(with: Result(catching: body)) }.start()
        }
    }
}
