import Fanout
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Synchronization
import Testing

/// A relay that loads reports what it loads and how far it is, which `/readyz` shows.
@Suite struct LoadingTests {
    /// Makes a store with three devices and five subscriptions.
    private static func store() async throws -> RelayStore {
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
        return store
    }

    private static func follower(
        of store: RelayStore, by clock: any Clock<Duration> = ContinuousClock()
    ) -> Follower {
        Follower(
            log: store, progress: store, identity: DeliveryIdentity(store: store.storeIdentity),
            indexSeed: 7, clock: clock, settings: { _ in nil },
            logger: .silent,
            take: { _ in })
    }

    @Test func `a loading relay reports what it loads, and how much of it`() async throws {
        let store = try await Self.store()
        var follower = Self.follower(of: store)
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

    @Test(arguments: 0..<8) func `loading waits for a store that is away`(
        readings: Int
    ) async throws {
        let store = try await Self.store()
        let head = ProgressMark(position: try await store.head(), offset: 0)
        let clock = TestClock()
        let reading = BrokenOffReading(
            store, after: readings, for: 2, as: StorageError.unavailable("away"))
        let told = Mutex<[String]>([])
        let isLoaded = Mutex(false)
        let loading = Task {
            defer { isLoaded.withLock { $0 = true } }
            var follower = Self.follower(of: store, by: clock)
            try await follower.recover(at: head, from: reading, portion: 2) { stage in
                told.withLock { $0.append("\(stage)") }
            }
        }
        let goesOn = await clock.advance(by: .seconds(1)) { isLoaded.withLock { $0 } }
        #expect(goesOn)
        try await loading.value
        let last = told.withLock { Array($0.suffix(2)) }
        #expect(last == ["loading subscriptions, 5 so far", "reading badges"])
        await store.close()
    }
}
