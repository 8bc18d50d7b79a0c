import Fanout
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Synchronization
import Testing

/// The events that a follower reports of the changes that it judges.
@Suite struct ChangeWatchTests {
    private struct Finished: Error {}

    private final class Told: Sendable {
        private let lines = Mutex<[String]>([])

        var text: [String] { lines.withLock { $0 } }

        func add(_ line: String) { lines.withLock { $0.append(line) } }
    }

    /// Follows a log with a phone and a tablet of alice, a subscription of hers to the year 1907,
    /// and changes.
    ///
    /// Returns the reported events and the deliveries, in order.
    private func follow(isOn: Bool = true, once: Bool = false) async throws -> [String] {
        let store = try TemporaryStore().open()
        let settings = ContainerSettings(key: Fixtures.container, topics: ["com.example.Art"])
        try await store.save(settings, at: Fixtures.moment)
        for (number, name) in ["phone", "tablet"].enumerated() {
            _ = try await store.register(
                Fixtures.device(name, token: number + 1), at: Fixtures.moment)
        }
        var subscription = Fixtures.subscription("s", where: "year == 1907")
        subscription.firesOnce = once
        subscription.notificationInfo.alertBody = "hello"
        _ = try await store.edit(
            [.create(subscription)],
            of: SubscriptionOwner(
                container: Fixtures.container, database: .public,
                user: Fixtures.identifier("alice")), atomicity: .independent, at: Fixtures.moment)
        for (name, year) in [("a1", 1907), ("a2", 1908), ("a3", 1907)] {
            var change = Fixtures.change(name: name, year: Int64(year))
            change.origin.deviceID = Fixtures.identifier("phone")
            _ = try await store.append(
                [ChangeToAppend(change, key: nil)], container: Fixtures.container,
                source: Fixtures.identifier("test"), at: Fixtures.moment)
        }
        let head = try await store.head()
        let told = Told()
        var follower = Follower(
            log: store, progress: store, identity: DeliveryIdentity(store: store.storeIdentity),
            indexSeed: 7, clock: ContinuousClock(), settings: { _ in settings },
            logger: .silent,
            watch: ChangeWatch {
                $0 == Fixtures.container && isOn
            } tell: { judged in
                let name = try? judged.change.change().recordID.recordName.rawValue
                let fired = judged.fired.map(\.id.rawValue).joined(separator: ",")
                let leftOut = judged.leftOut.map(\.deviceID.rawValue).joined(separator: ",")
                told.add("\(name ?? "?") \(judged.firedCount) [\(fired)] [\(leftOut)]")
            },
            take: { batch in
                for delivery in batch.deliveries {
                    told.add("push to \(delivery.delivery.deviceID)")
                }
                if batch.finished == head { throw Finished() }
            })
        try await follower.recover(at: .start, from: store)
        do {
            try await follower.follow(from: .start)
        } catch is Finished {}
        await store.close()
        return told.text
    }

    @Test
    func `each change is reported with its firings and suppressed devices, before its pushes`()
        async throws
    {
        let told = try await follow()
        #expect(
            told == [
                "a1 1 [s] [phone]", "a2 0 [] []", "a3 1 [s] [phone]", "push to tablet",
                "push to tablet",
            ])
    }

    @Test func `a once subscription is reported as fired once`() async throws {
        let told = try await follow(once: true)
        #expect(told == ["a1 1 [s] [phone]", "a2 0 [] []", "a3 0 [] []", "push to tablet"])
    }

    @Test func `nothing is reported unless someone watches`() async throws {
        #expect(try await follow(isOn: false) == ["push to tablet", "push to tablet"])
    }
}

private extension Fixtures {
    static func change(name: String, year: Int64) -> RecordChange {
        change(.create, of: "Artwork", name, fields: ["year": .integer(year)])
    }
}
