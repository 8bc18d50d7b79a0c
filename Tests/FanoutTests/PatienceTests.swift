import Fanout
import GRDB
import Logging
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

/// The follower and the range worker wait while the store cannot be written for the time being.
@Suite struct PatienceTests {
    private struct Finished: Error {}

    private static let logger = Logger.silent
    private static let settings: ContainerSettings = {
        var settings = ContainerSettings(key: Fixtures.container, topics: ["com.example.Art"])
        settings.keepsInbox = true
        return settings
    }()

    private actor Taker {
        private(set) var count = 0

        func take(_ batch: OwedBatch) throws {
            count += batch.deliveries.count
            if !batch.deliveries.isEmpty || !batch.ranges.isEmpty { throw Finished() }
        }

        func take(_ batch: RangeBatch) {
            count += batch.deliveries.count
        }
    }

    /// Makes a store with one subscription and a change that fires it.
    ///
    /// Its writes fail at once while another connection has the file locked.
    private static func store(
        _ home: TemporaryStore, firesOnce: Bool
    ) async throws -> RelayStore {
        var storeSettings = StoreSettings.forTests
        storeSettings.busyTimeout = .milliseconds(1)
        let store = try home.open(storeSettings)
        try await store.save(settings, at: Fixtures.moment)
        _ = try await store.register(Fixtures.device("phone"), at: Fixtures.moment)
        var subscription = Fixtures.subscription("s")
        subscription.firesOnce = firesOnce
        subscription.notificationInfo.alertBody = "hello"
        _ = try await store.edit(
            [.create(subscription)],
            of: SubscriptionOwner(
                container: Fixtures.container, database: .public,
                user: Fixtures.identifier("alice")), atomicity: .independent, at: Fixtures.moment)
        _ = try await store.append(
            [ChangeToAppend(Fixtures.change(), key: nil)], container: Fixtures.container,
            source: Fixtures.identifier("test"), at: Fixtures.moment)
        return store
    }

    /// Runs `body` while another connection has the file locked, until it waits; then unlocks the
    /// file.
    private static func whileLocked(
        _ home: TemporaryStore, _ clock: TestClock,
        _ body: @escaping @Sendable () async throws -> Void
    ) async throws {
        var configuration = Configuration()
        configuration.allowsUnsafeTransactions = true
        let other = try DatabaseQueue(path: home.path, configuration: configuration)
        try await other.writeWithoutTransaction { try $0.execute(sql: "BEGIN IMMEDIATE") }
        let work = Task { try await body() }
        // The work has failed more than once, and still waits.
        for _ in 0..<3 {
            #expect(await Turns.yield { clock.sleeperCount == 1 })
            clock.advance(by: .seconds(5))
        }
        #expect(await Turns.yield { clock.sleeperCount == 1 })
        try await other.writeWithoutTransaction { try $0.execute(sql: "ROLLBACK") }
        try other.close()
        clock.advance(by: .seconds(5))
        try await work.value
    }

    @Test func `a claim waits for a locked file, and is then made once`()
        async throws
    {
        let home = try TemporaryStore()
        let store = try await Self.store(home, firesOnce: true)
        let (clock, taker) = (TestClock(), Taker())
        try await Self.whileLocked(home, clock) {
            var follower = Follower(
                log: store, progress: store,
                identity: DeliveryIdentity(store: store.storeIdentity), indexSeed: 7,
                clock: clock, settings: { _ in Self.settings }, logger: Self.logger,
                take: { try await taker.take($0) })
            try await follower.recover(at: .start, from: store)
            do {
                try await follower.follow(from: .start)
            } catch is Finished {}
        }
        #expect(await taker.count == 1)
        await store.close()
    }

    @Test func `the inbox entries of a range wait for a locked file`() async throws {
        let home = try TemporaryStore()
        let store = try await Self.store(home, firesOnce: false)
        let head = try await store.head()
        var step = SettledStep(from: .start, to: ProgressMark(position: head, offset: 0))
        step.newRanges = [
            NewRange(container: Fixtures.container, position: head, serials: [1])
        ]
        try await store.settle(step)
        let (clock, taker) = (TestClock(), Taker())
        try await Self.whileLocked(home, clock) {
            var worker = RangeWorker(
                log: store, ranges: store,
                identity: DeliveryIdentity(store: store.storeIdentity), badges: BadgeCounts(),
                settings: { _ in Self.settings }, logger: Self.logger, clock: clock,
                take: { await taker.take($0) })
            try await worker.workAll()
        }
        #expect(await taker.count == 1)
        await store.close()
    }
}
