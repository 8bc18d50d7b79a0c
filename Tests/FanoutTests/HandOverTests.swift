import Fanout
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

/// A push does not wait for all changes that were read together with its own, unless its container
/// is alone.
@Suite struct HandOverTests {
    private static let other = ContainerKey(
        container: Fixtures.identifier("iCloud.com.example.Music"), environment: .development)

    /// Follows a hundred changes of one container that each fire a subscription, and one of
    /// another container if asked; returns the sizes of the batches.
    private func sizes(besideOthers: Bool) async throws -> [Int] {
        let store = try TemporaryStore().open()
        let settings = [Fixtures.container, Self.other].map {
            ContainerSettings(key: $0, topics: ["com.example.Art"])
        }
        for one in settings { try await store.save(one, at: Fixtures.moment) }
        _ = try await store.register(Fixtures.device("phone"), at: Fixtures.moment)
        let owner = SubscriptionOwner(
            container: Fixtures.container, database: .public, user: Fixtures.identifier("alice"))
        _ = try await store.edit(
            [.create(Fixtures.subscription("s", where: "price < 100"))], of: owner,
            atomicity: .independent, at: Fixtures.moment)
        let changes = (0..<100).map { number in
            var change = Fixtures.change(.create, "a\(number)")
            change.after = RecordImage(["price": .integer(50)])
            return ChangeToAppend(change, key: nil)
        }
        for container in besideOthers ? [Self.other, Fixtures.container] : [Fixtures.container] {
            _ = try await store.append(
                container == Self.other ? [changes[0]] : changes, container: container,
                source: Fixtures.identifier("test"), at: Fixtures.moment)
        }
        let batches = try await store.handedOver { take in
            Follower(
                log: store, progress: store,
                identity: DeliveryIdentity(store: store.storeIdentity), indexSeed: 7,
                clock: ContinuousClock(), settings: { key in settings.first { $0.key == key } },
                logger: .silent,
                take: take)
        }
        await store.close()
        return batches.map(\.deliveries.count).filter { $0 > 0 }
    }

    @Test func `the deliveries of a container that is alone are handed over together`() async throws
    {
        #expect(try await sizes(besideOthers: false) == [100])
    }

    @Test func `deliveries are handed over in small batches while others wait`() async throws {
        #expect(try await sizes(besideOthers: true) == [32, 32, 32, 4])
    }
}
