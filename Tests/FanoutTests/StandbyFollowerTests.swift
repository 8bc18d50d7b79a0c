import Fanout
import Logging
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import Testing

/// A follower that begins with a standby state owes the same as one that loads everything.
@Suite struct StandbyFollowerTests {
    private static let quiet = Logger.silent

    private func standby(portion: Int = 3) -> StandbyFollower {
        StandbyFollower(
            indexSeed: 3, clock: ContinuousClock(), portion: portion, logger: Self.quiet)
    }

    /// Follows from the progress to the head; returns the deliveries, and what it read before.
    @discardableResult
    private func follow(
        _ store: RelayStore, with standby: StandbyFollower? = nil
    ) async throws -> (deliveries: [OwedDelivery], portions: [Int]) {
        let mark = try await store.mark()
        let collector = Collector(head: try await store.head())
        let settings = ContainerSettings(key: Fixtures.container, topics: ["com.example.Art"])
        var follower = Follower(
            log: store, progress: store, identity: DeliveryIdentity(store: store.storeIdentity),
            indexSeed: 7, clock: ContinuousClock(), settings: { _ in settings },
            logger: Self.quiet, take: { try await collector.take($0) })
        let reading = BrokenOffReading(store)
        try await follower.recover(at: mark, from: reading, standby: standby, portion: 3)
        do {
            try await follower.follow(from: mark)
        } catch is Collector.Finished {}
        return (await collector.deliveries, reading.portions)
    }

    /// Lets a state catch up, but breaks off after `reads` readings.
    private func catchUp(
        _ standby: StandbyFollower, _ store: RelayStore, reads: Int = .max
    ) async throws {
        do {
            try await standby.catchUp(with: BrokenOffReading(store, after: reads))
        } catch is BrokenOffReading.Away {}
    }

    @Test(arguments: Seeds.all, OwnedStore.engines)
    func `a follower owes the same with every standby state`(
        seed: UInt64, engine: OwnedStore.Engine
    ) async throws {
        let owned = try OwnedStore(engine)
        let store = owned.store
        var generator = SeededGenerator(seed: seed ^ 0x57A4D)
        var world = World(seed: seed, in: store)
        var standing: [StandbyFollower] = []
        for _ in 0..<8 {
            try await world.fill(entries: 12)
            // The once claims are made ahead of the progress, and end versions.
            try await follow(store)
            let (mark, head) = (try await store.mark(), try await store.head())
            try await owned.settle(
                to: LogPosition(
                    UInt64.random(
                        in: mark.position.rawValue..<head.rawValue, using: &generator)))
            // Some states begin later, catch up now and then, and are sometimes broken off.
            standing.append(standby())
            for state in standing where generator.chance(60) {
                let reads = generator.chance(50) ? Int.random(in: 0..<9, using: &generator) : .max
                try await catchUp(state, owned.read, reads: reads)
            }
            if generator.chance(50) { try await owned.prune(log: generator.chance(40)) }
        }
        let expected = try await follow(store).deliveries
        for state in standing {
            #expect(try await follow(store, with: state).deliveries == expected)
            // The follower has taken the state.
            #expect(state.status == nil)
        }
        await owned.close()
    }

    @Test(arguments: OwnedStore.engines)
    func `a start with a standby state reads only what has changed`(
        engine: OwnedStore.Engine
    ) async throws {
        let owned = try OwnedStore(engine)
        var world = World(seed: 5, in: owned.store)
        try await world.fill(entries: 120)
        let head = try await owned.store.head()
        try await owned.settle(to: LogPosition(head.rawValue - 1))
        let cold = try await follow(owned.store)
        #expect(cold.portions.reduce(0, +) > 10)
        let state = standby()
        try await catchUp(state, owned.read)
        #expect(state.status?.isWarm == true)
        #expect(state.status?.position == LogPosition(head.rawValue - 1))
        #expect(state.status.map { $0.devices + $0.subscriptions } == cold.portions.reduce(0, +))
        let warm = try await follow(owned.store, with: state)
        #expect(warm.deliveries == cold.deliveries)
        #expect(warm.portions == [0, 0])
        await owned.close()
    }

    @Test(arguments: OwnedStore.engines)
    func `a standby state that pruning has overtaken is loaded again`(
        engine: OwnedStore.Engine
    ) async throws {
        let owned = try OwnedStore(engine)
        var world = World(seed: 6, in: owned.store)
        try await world.fill(entries: 60)
        try await owned.settle(to: try await owned.store.head())
        let (late, prompt) = (standby(), standby())
        for state in [late, prompt] { try await catchUp(state, owned.read) }
        try await world.fill(entries: 60)
        let head = try await owned.store.head()
        try await owned.settle(to: LogPosition(head.rawValue - 1))
        try await owned.prune(log: true)
        let place = try #require(late.status?.position)
        #expect(place < head)
        // One state notices while it stands by, and the other when it is needed.
        try await catchUp(prompt, owned.read)
        let expected = try await follow(owned.store)
        let anew = try await follow(owned.store, with: late)
        #expect(anew.deliveries == expected.deliveries && anew.portions == expected.portions)
        let noticed = try await follow(owned.store, with: prompt)
        #expect(noticed.deliveries == expected.deliveries && noticed.portions == [0, 0])
        await owned.close()
    }

    @Test(arguments: OwnedStore.engines)
    func `the standby state of another store is loaded again`(
        engine: OwnedStore.Engine
    ) async throws {
        let (one, other) = (try OwnedStore(engine), try OwnedStore(engine))
        var world = World(seed: 7, in: one.store)
        try await world.fill(entries: 60)
        world = World(seed: 8, in: other.store)
        try await world.fill(entries: 80)
        try await one.settle(to: try await one.store.head())
        let head = try await other.store.head()
        try await other.settle(to: LogPosition(head.rawValue - 1))
        let (late, prompt) = (standby(), standby())
        for state in [late, prompt] { try await catchUp(state, one.read) }
        try await catchUp(prompt, other.read)
        let expected = try await follow(other.store)
        let anew = try await follow(other.store, with: late)
        #expect(anew.deliveries == expected.deliveries && anew.portions == expected.portions)
        let noticed = try await follow(other.store, with: prompt)
        #expect(noticed.deliveries == expected.deliveries && noticed.portions == [0, 0])
        await one.close()
        await other.close()
    }

    @Test(
        .enabled(
            if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
    func `a log that was cut and has grown again counts as another one`() async throws {
        let owned = try OwnedStore(.server)
        var world = World(seed: 9, in: owned.store)
        try await world.fill(entries: 60)
        let head = try await owned.store.head()
        try await owned.settle(to: LogPosition(head.rawValue - 1))
        let state = standby()
        try await catchUp(state, owned.read)
        let schema = try #require(owned.schema)
        try PostgresServer.ofStores().sql(
            "UPDATE \(schema).logEntry SET appendedAt = appendedAt + 1 "
                + "WHERE position = \(head.rawValue - 1)")
        let expected = try await follow(owned.store)
        let anew = try await follow(owned.store, with: state)
        #expect(anew.deliveries == expected.deliveries && anew.portions == expected.portions)
        await owned.close()
    }
}
