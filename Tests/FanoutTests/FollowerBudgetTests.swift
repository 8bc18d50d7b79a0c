import Fanout
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Synchronization
import Testing

/// A condition that takes too many steps does not delay the changes of others.
@Suite struct FollowerBudgetTests {
    private let owner = SubscriptionOwner(
        container: Fixtures.container, database: .public, user: Fixtures.identifier("alice"))
    private let settings = ContainerSettings(key: Fixtures.container, topics: ["com.example.Art"])
    private static let dear = "SUBQUERY(a, $x, SUBQUERY(a, $y, $x == $y).@count > 0).@count > 0"

    /// Makes a store whose log has a device at position 1 and subscriptions at 2 and 3.
    private func store() async throws -> RelayStore {
        let store = try TemporaryStore().open()
        try await store.save(settings, at: Fixtures.moment)
        _ = try await store.register(Fixtures.device("phone"), at: Fixtures.moment)
        var innocent = Fixtures.subscription("innocent", where: "price < 100")
        innocent.notificationInfo.alertBody = "hello"
        try await save([Fixtures.subscription("dear", where: Self.dear), innocent], in: store)
        return store
    }

    private func save(
        _ subscriptions: [Subscription], of owner: SubscriptionOwner? = nil, in store: RelayStore
    ) async throws {
        _ = try await store.edit(
            subscriptions.map { .create($0) }, of: owner ?? self.owner, atomicity: .independent,
            at: Fixtures.moment)
    }

    private func post(
        _ numbers: Int, heavy: Bool, readers: [String]? = nil, to store: RelayStore
    ) async throws {
        var change = Fixtures.change(.create, "a\(numbers)")
        change.readers = readers
        var fields: RecordFields = ["price": .integer(50)]
        if heavy { fields["a"] = .list((0..<100).map { .integer($0) }) }
        change.after = RecordImage(fields)
        _ = try await store.append(
            [ChangeToAppend(change, key: nil)], container: Fixtures.container,
            source: Fixtures.identifier("test"), at: Fixtures.moment)
    }

    /// Follows the log to its head; returns the positions of the changes that were delivered.
    private func follow(
        _ store: RelayStore, mostSteps: Int = 100_000, pulse: FollowerPulse? = nil
    ) async throws -> [String] {
        let settings = settings
        let batches = try await store.handedOver { take in
            Follower(
                log: store, progress: store,
                identity: DeliveryIdentity(store: store.storeIdentity), indexSeed: 7,
                clock: ContinuousClock(), settings: { _ in settings },
                logger: .silent,
                mostSteps: mostSteps, pulse: pulse, take: take)
        }
        return batches.flatMap(\.deliveredPositions)
    }

    @Test func `a change that takes too many steps is set aside, and the others go on`()
        async throws
    {
        let store = try await store()
        try await post(4, heavy: false, to: store)
        try await post(5, heavy: true, to: store)
        try await post(6, heavy: false, to: store)
        #expect(try await follow(store) == ["4", "6"])
        #expect(try await store.positionsSetAside(after: .start) == [LogPosition(5)])
        // A restart has the same result without judging the change again.
        #expect(try await follow(store, mostSteps: .max) == ["4", "6"])
        #expect(try await store.disabledSubscriptions(of: owner) == [])
        await store.close()
    }

    @Test func `a subscription is disabled after several changes were set aside for it`()
        async throws
    {
        let store = try await store()
        for number in 4...6 { try await post(number, heavy: true, to: store) }
        #expect(try await follow(store) == [])
        // The subscription was ended by the entry at position 7.
        let disabled = try #require(try await store.disabledSubscriptions(of: owner).first)
        #expect(disabled.version.subscription.id.rawValue == "dear")
        #expect(disabled.position == LogPosition(7))
        #expect(
            disabled.reason
                == "its condition takes too many steps: 3 changes were set aside for it, the last "
                + "at position 6")
        let active = try await store.subscriptions(of: owner).map(\.subscription.id.rawValue)
        #expect(active == ["innocent"])
        try await post(8, heavy: true, to: store)
        #expect(try await follow(store) == ["8"])
        try await save([Fixtures.subscription("dear", where: Self.dear)], in: store)
        #expect(try await store.disabledSubscriptions(of: owner) == [])
        #expect(try await store.subscriptions(of: owner).count == 2)
        await store.close()
    }

    @Test func `conditions of users who may not read a change do not cost anybody its push`()
        async throws
    {
        let store = try await store()
        let stranger = SubscriptionOwner(
            container: Fixtures.container, database: .public, user: Fixtures.identifier("mallory"))
        // Whether this takes long tells what a record holds: here, that its price is 50.
        let spying = Fixtures.subscription(
            "spy", of: "mallory", where: "price == 50 AND \(Self.dear)")
        try await save([spying], of: stranger, in: store)
        _ = try await store.edit(
            [.delete(Fixtures.identifier("dear"))], of: owner, atomicity: .independent,
            at: Fixtures.moment)
        for number in 6...9 {
            try await post(number, heavy: true, readers: ["alice"], to: store)
        }
        #expect(try await follow(store) == ["6", "7", "8", "9"])
        #expect(try await store.positionsSetAside(after: .start) == [])
        #expect(try await store.disabledSubscriptions(of: stranger) == [])
        // Where the user may read the record, the condition counts.
        try await post(10, heavy: true, readers: ["alice", "mallory"], to: store)
        _ = try await follow(store)
        #expect(try await store.positionsSetAside(after: .start) == [LogPosition(10)])
        await store.close()
    }

    @Test func `a disabled subscription can be updated or deleted`() async throws {
        let store = try await store()
        for number in 4...6 { try await post(number, heavy: true, to: store) }
        _ = try await follow(store)
        let id: SubscriptionID = Fixtures.identifier("dear")
        let deleted = try await store.edit(
            [.delete(id), .delete(id)], of: owner, atomicity: .independent, at: Fixtures.moment)
        #expect(deleted == [.deleted(id), .notFound(id)])
        #expect(try await store.disabledSubscriptions(of: owner) == [])
        await store.close()
    }

    @Test func `a follower stalls if it is at one entry for long, but not if it rests`() {
        let elapsed = Mutex(Duration.zero)
        let pulse = FollowerPulse { elapsed.withLock { $0 } }
        #expect(pulse.stand == nil)
        pulse.work(
            on: FollowerPulse.Entry(position: LogPosition(7), container: Fixtures.container))
        elapsed.withLock { $0 += .seconds(5) }
        #expect(pulse.stand == nil)
        elapsed.withLock { $0 += .seconds(4) }
        #expect(pulse.stand?.position == LogPosition(7))
        #expect(pulse.stand?.duration == .seconds(9))
        #expect(pulse.rest()?.position == LogPosition(7))
        elapsed.withLock { $0 += .seconds(100) }
        #expect(pulse.stand == nil)
        pulse.work(
            on: FollowerPulse.Entry(position: LogPosition(8), container: Fixtures.container))
        #expect(pulse.stand == nil)
    }
}
