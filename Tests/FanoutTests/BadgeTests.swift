import Fanout
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

/// A badge that an application sets counts from its place in the log on.
@Suite struct BadgeTests {
    private static let settings = ContainerSettings(
        key: Fixtures.container, topics: ["com.example.Art"])

    private func post(_ name: String, to store: RelayStore) async throws {
        _ = try await store.append(
            [ChangeToAppend(Fixtures.change(.create, name), key: nil)],
            container: Fixtures.container, source: Fixtures.identifier("test"),
            at: Fixtures.moment)
    }

    /// Returns everything that a follower hands over from the beginning of a log.
    private func handedOver(by store: RelayStore) async throws -> [OwedBatch] {
        try await store.handedOver { take in
            Follower(
                log: store, progress: store,
                identity: DeliveryIdentity(store: store.storeIdentity), indexSeed: 7,
                clock: ContinuousClock(), settings: { _ in Self.settings },
                logger: .silent,
                take: take)
        }
    }

    @Test func `a badge is set after earlier changes and before later ones`()
        async throws
    {
        let store = try TemporaryStore().open()
        try await store.save(Self.settings, at: Fixtures.moment)
        let phone = Fixtures.device("phone")
        _ = try await store.register(phone, at: Fixtures.moment)
        var subscription = Fixtures.subscription("s")
        subscription.notificationInfo.shouldBadge = true
        let owner = SubscriptionOwner(
            container: Fixtures.container, database: .public, user: phone.owner)
        _ = try await store.edit(
            [.create(subscription)], of: owner, atomicity: .independent, at: Fixtures.moment)
        try await post("a1", to: store)
        try await post("a2", to: store)
        var sparing = DeviceSparing()
        sparing.badge = 0
        _ = try await store.register(phone, named: .device, sparing, at: Fixtures.moment)
        try await post("a3", to: store)
        let batches = try await handedOver(by: store)
        let raised: [[Int64?]] = batches.map { $0.deliveries.map(\.delivery.badge) }
        #expect(raised == [[1, 2], [1]])
        let holder = BadgeHolder(
            container: Fixtures.container, deviceID: phone.id, owner: phone.owner)
        let set: [[BadgeHolder: Int64]] = batches.map(\.badges)
        #expect(set == [[holder: 0], [:]])
        await store.close()
    }
}
