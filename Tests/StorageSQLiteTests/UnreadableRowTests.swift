import Foundation
import GRDB
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StorageSQL
@testable import StorageSQLite

/// A row that cannot be read is quarantined and reported.
///
/// All other rows are served as if it did not exist.
@Suite struct UnreadableRowTests {
    private static let owner = SubscriptionOwner(
        container: Fixtures.container, database: .public, user: Fixtures.identifier("alice"))

    private static func readyStore(_ home: TemporaryStore) async throws -> RelayStore {
        let store = try home.open()
        try await store.save(
            ContainerSettings(key: Fixtures.container, topics: ["com.example.Art"]),
            at: Fixtures.moment)
        return store
    }

    private static func save(_ ids: [String], in store: RelayStore) async throws {
        let outcomes = try await store.edit(
            ids.map { id in
                .create(Fixtures.subscription(id, where: "title == '\(id)'"))
            }, of: owner, atomicity: .independent, at: Fixtures.moment)
        #expect(outcomes.allSatisfy { if case .saved = $0 { true } else { false } })
    }

    private static func spoil(_ sql: String, in store: RelayStore) async throws {
        try store.pool.write { try $0.execute(sql: sql) }
    }

    private static func active(_ store: RelayStore, limit: Int = 100) async throws -> [String] {
        try await store.subscriptions(
            activeAt: try await store.head(), after: 0, limit: limit
        ).map(\.subscription.id.rawValue)
    }

    // MARK: Subscriptions and devices

    @Test(arguments: ["{", "[]", #"{"subscriptionID":"b"}"#, ""])
    func `an unreadable subscription hides no other one`(body: String) async throws {
        let store = try await Self.readyStore(TemporaryStore())
        try await Self.save(["a", "b", "c"], in: store)
        try await Self.spoil(
            "UPDATE subscription SET body = '\(body)' WHERE subscriptionID = 'b'", in: store)
        #expect(try await Self.active(store) == ["a", "c"])
        let owned = try await store.subscriptions(of: Self.owner)
        #expect(owned.map(\.subscription.id.rawValue) == ["a", "c"])
        let found = store.unreadable.takeNews()
        #expect(
            found == [
                UnreadableRow(
                    table: "subscription", key: "2",
                    reason: "subscription.body contains a value that Belfry does not write")
            ])
        #expect(try await Self.active(store) == ["a", "c"])
        #expect(store.unreadable.takeNews() == [], "each is told once")
        await store.close()
    }

    @Test func `a portion without a readable row is not the end`() async throws {
        let store = try await Self.readyStore(TemporaryStore())
        try await Self.save(["a", "b", "c", "d", "e"], in: store)
        try await Self.spoil(
            "UPDATE subscription SET body = '{' WHERE subscriptionID IN ('a', 'b', 'd')", in: store)
        #expect(try await Self.active(store, limit: 1) == ["c"])
        let rest = try await store.subscriptions(
            activeAt: try await store.head(), after: 3, limit: 1)
        #expect(rest.map(\.subscription.id.rawValue) == ["e"])
        let end = try await store.subscriptions(
            activeAt: try await store.head(), after: 5, limit: 1)
        #expect(end.isEmpty)
        await store.close()
    }

    @Test func `saving a subscription again replaces the unreadable one`() async throws {
        let store = try await Self.readyStore(TemporaryStore())
        try await Self.save(["a", "b", "c"], in: store)
        try await Self.spoil("UPDATE subscription SET body = '{'", in: store)
        #expect(try await Self.active(store) == [])
        try await Self.save(["a"], in: store)
        let updated = try await store.edit(
            [
                .update(Fixtures.subscription("b", where: "title == 'b'")),
                .delete(Fixtures.identifier("c")),
            ], of: Self.owner, atomicity: .independent, at: Fixtures.moment)
        #expect(updated.last == .deleted(Fixtures.identifier("c")))
        #expect(try await Self.active(store) == ["a", "b"])
        await store.close()
    }

    @Test func `an unreadable device hides no other one and can be registered again`()
        async throws
    {
        let store = try await Self.readyStore(TemporaryStore())
        for number in 1...3 {
            _ = try await store.register(
                Fixtures.device("d\(number)", token: number), at: Fixtures.moment)
        }
        try await Self.spoil("UPDATE device SET token = 'x' WHERE deviceID = 'd2'", in: store)
        func active() async throws -> [String] {
            try await store.devices(activeAt: try await store.head(), after: 0, limit: 1).map {
                $0.device.id.rawValue
            }
                + (try await store.devices(activeAt: try await store.head(), after: 1, limit: 9))
                .map { $0.device.id.rawValue }
        }
        #expect(try await active() == ["d1", "d3"])
        let listed = try await store.devices(of: Fixtures.container, owner: nil, limit: 9)
        #expect(listed.count == 2)
        _ = try await store.register(Fixtures.device("d2", token: 2), at: Fixtures.moment)
        #expect(try await active() == ["d1", "d3", "d2"])
        await store.close()
    }

    // MARK: Retries

    /// Returns a store that owes three retries, the second of which cannot be read.
    private static func storeWithRetries(_ home: TemporaryStore) async throws -> RelayStore {
        let store = try await readyStore(home)
        let mark = try await store.mark()
        var step = SettledStep(from: mark, to: mark)
        step.retries = (1...3).map {
            Retry(
                delivery: Fixtures.delivery(at: $0), attempts: 1, dueAt: Fixtures.moment,
                reason: .said("503"))
        }
        step.tallies[Fixtures.container] = DeliveryTally(owed: 3)
        try await store.settle(step)
        try await spoil("UPDATE retry SET body = '{\"a\":' WHERE position = 2", in: store)
        return store
    }

    private static func due(_ store: RelayStore) async throws -> [UInt64] {
        try await store.dueRetries(at: Fixtures.moment, limit: 10, excluding: []) { _ in false }
            .map(\.delivery.delivery.ordinal.position.rawValue).sorted()
    }

    @Test func `an unreadable retry becomes a dead letter, and the others are due`()
        async throws
    {
        let store = try await Self.storeWithRetries(TemporaryStore())
        #expect(try await store.retries(of: Fixtures.container, limit: 9).count == 2)
        #expect(try await store.collapsingRetries(limit: 9).isEmpty)
        #expect(try await Self.due(store) == [1, 3])
        let account = try #require(try await store.accounts().first)
        #expect(account.pending == 2)
        #expect(account.deadLetters == 1)
        #expect(account.difference == 0)
        #expect(try await Self.due(store) == [1, 3])
        #expect(store.unreadable.takeNews().map(\.table) == ["retry"])
        let letters = try await store.deadLetters(of: Fixtures.container, reason: nil, limit: 9)
        #expect(letters.isEmpty, "it cannot be shown")
        let redriven = try await store.redriveDeadLetters(
            nil, of: Fixtures.container, reason: nil, at: Fixtures.moment)
        #expect(redriven == Redriving())
        let dropped = try await store.dropDeadLetters(
            nil, of: Fixtures.container, reason: DeadLetter.unreadableReason)
        #expect(dropped == 1)
        #expect(try await store.accounts().first?.difference == 0)
        await store.close()
    }

    // MARK: Ranges

    @Test func `an unreadable range is reported, and the next one is worked`() async throws {
        let store = try await Self.readyStore(TemporaryStore())
        _ = try await store.append(
            [ChangeToAppend(Fixtures.change(.create, "a1"), key: nil)],
            container: Fixtures.container, source: Fixtures.identifier("test"),
            at: Fixtures.moment)
        let head = try await store.head()
        var step = SettledStep(
            from: try await store.mark(), to: ProgressMark(position: head, offset: 0))
        step.newRanges = [[1, 2], [3, 4]].map {
            NewRange(container: Fixtures.container, position: head, serials: $0)
        }
        try await store.settle(step)
        try await Self.spoil("UPDATE rangeTask SET serials = x'80' WHERE id = 1", in: store)
        let range = try await store.nextRange(of: Fixtures.container, after: 0)
        #expect(range?.id == 1 && range?.isReadable == false && range?.serials == [])
        let next = try await store.nextRange(of: Fixtures.container, after: 1)
        #expect(next?.serials == [3, 4])
        #expect(store.unreadable.takeNews().map(\.key) == ["1"])
        await store.close()
    }

    @Test func `the readable members of a range are served`() async throws {
        let store = try await Self.readyStore(TemporaryStore())
        try await Self.save(["a", "b", "c"], in: store)
        try await Self.spoil(
            "UPDATE subscription SET body = '{' WHERE subscriptionID = 'b'", in: store)
        let range = FanoutRange(
            id: 1, container: Fixtures.container, position: LogPosition(9), serials: [1, 2, 3],
            offset: 0)
        let members = try await store.members([1, 2, 3], of: range)
        #expect(members.map(\.version.serial) == [1, 3])
        await store.close()
    }

    // MARK: The check

    @Test func `a check names each unreadable row and nothing of its content`()
        async throws
    {
        let home = try TemporaryStore()
        let store = try await Self.storeWithRetries(home)
        try await Self.save(["a", "b"], in: store)
        _ = try await store.register(Fixtures.device("d1", token: 1), at: Fixtures.moment)
        try await Self.spoil("UPDATE subscription SET body = 'secret'", in: store)
        try await Self.spoil("UPDATE device SET token = 'secret'", in: store)
        let report = try RelayStore.check(path: home.path)
        let retry = Fixtures.delivery(at: 2).delivery.id
        #expect(
            report.problems == [
                "subscription 1: subscription.body contains a value that Belfry does not write",
                "subscription 2: subscription.body contains a value that Belfry does not write",
                "device 1: device.token contains a value that Belfry does not write",
                "retry \(retry): retry.body contains a value that Belfry does not write",
                // The test has changed rows directly, so the counts are wrong.
                "4 × a subscription, device, record or zone is counted wrongly",
            ])
        await store.close()
    }
}
