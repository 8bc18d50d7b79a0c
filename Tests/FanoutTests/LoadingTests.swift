import Fanout
import Logging
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

/// A relay that loads says what, and how far it is: `/readyz` shows it.
@Suite struct LoadingTests {
    @Test func `a relay that loads says what, and how much of it`() async throws {
        let store = try TemporaryStore().open()
        try await store.save(
            ContainerSettings(key: Fixtures.container, topics: ["com.example.Art"]),
            at: Fixtures.moment)
        for number in 1...3 {
            _ = try await store.register(
                Fixtures.device("d\(number)", token: number), at: Fixtures.moment)
        }
        let owner = SubscriptionOwner(
            container: Fixtures.container, database: .public, user: Fixtures.identifier("alice"))
        _ = try await store.edit(
            (1...5).map { number in
                .create(Fixtures.subscription("s\(number)", where: "year == \(number)"))
            }, of: owner, atomicity: .independent, at: Fixtures.moment)
        var follower = Follower(
            log: store, progress: store, identity: DeliveryIdentity(store: store.storeIdentity),
            indexSeed: 7, clock: ContinuousClock(), settings: { _ in nil },
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }),
            take: { _ in })
        var told: [String] = []
        let head = ProgressMark(position: try await store.head(), offset: 0)
        try await follower.recover(at: head, from: store, portion: 2) { told.append("\($0)") }
        #expect(
            told == [
                "loading devices, 2 so far", "loading devices, 3 so far",
                "loading subscriptions, 2 so far", "loading subscriptions, 4 so far",
                "loading subscriptions, 5 so far", "reading badges",
            ])
        await store.close()
    }
}
