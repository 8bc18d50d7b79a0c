import RelayModel
import RelayTestKit
import SimulationKit
import Storage
import StorageSQL
import Synchronization
import Testing

@testable import Live

/// A log that is pruned while it is read, or that cannot be read.
@Suite struct LiveLogTests {
    /// A log that is pruned up to a position once someone has read from before it.
    private final class ShrinkingLog: AlteredLog {
        private struct State {
            var end = LogPosition.start
            var isGone = false
        }

        let store: RelayStore
        private let state = Mutex(State())

        init(_ store: RelayStore) { self.store = store }

        /// Prunes everything up to `end` after one more reading.
        func shrink(to end: LogPosition) {
            state.withLock { $0 = State(end: end) }
        }

        func followedEntries(
            after position: LogPosition, limit: Int
        ) async throws -> [FollowedEntry] {
            let start = state.withLock { state in
                guard position < state.end else { return position }
                defer { state.isGone = true }
                return state.isGone ? state.end : position
            }
            return try await store.followedEntries(after: start, limit: limit)
        }
    }

    /// A log in which one change cannot be read.
    private final class DamagedLog: AlteredLog {
        let store: RelayStore
        private let damaged = Mutex<LogPosition?>(nil)

        init(_ store: RelayStore) { self.store = store }

        /// Makes the change at a position unreadable.
        func damage(_ position: LogPosition) { damaged.withLock { $0 = position } }

        func followedEntries(
            after position: LogPosition, limit: Int
        ) async throws -> [FollowedEntry] {
            let entries = try await store.followedEntries(after: position, limit: limit)
            guard let damaged = damaged.withLock({ $0 }),
                let index = entries.firstIndex(where: { $0.position == damaged })
            else { return entries }
            guard index == 0 else { return Array(entries[..<index]) }
            throw StorageError.unreadable(
                UnreadableEntry(position: damaged, isChange: true, reason: "a test"))
        }
    }

    private static let queries = ["all": LiveScenario.query(.changes)]

    private static func creations(_ count: Int) -> [RecordChange] {
        (0..<count).map { number in
            RecordChange(
                .create, of: LiveScenario.type,
                RecordID(recordName: Fixtures.identifier("r\(number)")))
        }
    }

    /// A log that cannot be read while it is away.
    private final class AwayLog: AlteredLog {
        let store: RelayStore
        let isAway = Mutex(false)

        init(_ store: RelayStore) { self.store = store }

        func followedEntries(
            after position: LogPosition, limit: Int
        ) async throws -> [FollowedEntry] {
            guard !isAway.withLock({ $0 }) else { throw StorageError.unavailable("away") }
            return try await store.followedEntries(after: position, limit: limit)
        }
    }

    /// A call that waits would keep its listener, and thereby the relay, from ending.
    @Test func `a wait for an unreadable log ends with its client or the relay`()
        async throws
    {
        let scenario = try await LiveScenario()
        let log = AwayLog(scenario.store)
        try await scenario.withEngine(log: log) { engine in
            let client = ModelClient(1, as: .user(Fixtures.identifier("alice")))
            await engine.connect(1, at: client, of: Fixtures.container, as: client.reader)
            try await engine.declare(
                ["all": LiveScenario.query(.changes)], version: 1, by: client)
            await client.wait { $0.isComplete }
            log.isAway.withLock { $0 = true }
            try await scenario.modify([LiveScenario.edit(.forceReplace, "r0")])
            let gone = Task { try await engine.reachHead() }
            gone.cancel()
            await #expect(throws: CancellationError.self) { try await gone.value }
            let waiting = Task { try await engine.fence("f", of: 1) }
            await engine.endWaiting()
            await #expect(throws: APIError.self) { try await waiting.value }
            await #expect(throws: APIError.self) { try await engine.reachHead() }
        }
    }

    @Test("a returning client begins anew if the log is pruned while it is read")
    func beginsAnewBehindGap() async throws {
        let scenario = try await LiveScenario()
        let log = ShrinkingLog(scenario.store)
        let client = ModelClient(1, as: .user(Fixtures.identifier("alice")))
        try await scenario.withEngine(log: log) { engine in
            try await client.come(Self.queries, to: engine)
            await engine.disconnect(1)
            client.leave()
            let start = try await scenario.store.head()
            try await scenario.append(Self.creations(600))
            try await engine.reachHead()
            log.shrink(to: LogPosition(start.rawValue + 400))
            try await client.come(Self.queries, version: 2, to: engine)
        }
        let state = client.state.withLock { $0 }
        #expect(state.resets == ["expired"])
        #expect(state.changes["all"] ?? [] == [])
        #expect(state.gaps["all"]?.count == 1)
    }

    @Test("a query ends if the log was pruned beyond what it was told")
    func endsBeforeGap() async throws {
        let scenario = try await LiveScenario()
        let log = ShrinkingLog(scenario.store)
        let client = ModelClient(1, as: .user(Fixtures.identifier("alice")))
        try await scenario.withEngine(log: log) { engine in
            try await client.come(Self.queries, to: engine)
            let start = try await scenario.store.head()
            log.shrink(to: LogPosition(start.rawValue + 400))
            try await scenario.append(Self.creations(600))
            try await engine.reachHead()
            await engine.beat([1])
            #expect(client.state.withLock { $0.gone } == ["all"])
            // The query can be declared again.
            await engine.disconnect(1)
            try await client.come(Self.queries, version: 2, to: engine)
            try await scenario.append(Self.creations(1))
            try await engine.fence("f", of: 1)
        }
        let state = client.state.withLock { $0 }
        let head = try await scenario.store.head()
        #expect(state.resets == ["expired"])
        #expect(state.changes["all"]?.last == Int64(clamping: head.rawValue))
    }

    @Test("a query does not go on beyond a change that cannot be read", arguments: [false, true])
    func beginsAnewBehindDamage(isAway: Bool) async throws {
        let scenario = try await LiveScenario()
        let log = DamagedLog(scenario.store)
        let client = ModelClient(1, as: .user(Fixtures.identifier("alice")))
        try await scenario.withEngine(log: log) { engine in
            try await client.come(Self.queries, to: engine)
            if isAway { await engine.disconnect(1) }
            let start = try await scenario.store.head()
            log.damage(LogPosition(start.rawValue + 2))
            try await scenario.append(Self.creations(3))
            try await engine.reachHead()
            await engine.beat([1])
            #expect(client.state.withLock { $0.gone } == (isAway ? [] : ["all"]))
            if !isAway { await engine.disconnect(1) }
            try await client.come(Self.queries, version: 2, to: engine)
        }
        let state = client.state.withLock { $0 }
        #expect(state.resets == ["expired"])
        #expect(state.gaps["all"]?.count == 1)
    }

    @Test("a client begins anew if an unreadable change came while it was away")
    func beginsAnewBehindDamagedText() async throws {
        let scenario = try await LiveScenario()
        let start = try await scenario.store.head()
        try await scenario.append(Self.creations(1))
        let entries = try await scenario.store.followedEntries(after: start, limit: 1)
        let container = LiveContainer(Fixtures.container, seed: 1, mostSteps: 1_000_000)
        let group = LiveGroup(
            1, LiveScenario.query(.changes), identity: "all", grant: .world, reader: nil)
        try container.insert(group)
        for entry in entries {
            var past = PastChanges(for: [1])
            try past.add(entry, in: container, LiveSettings())
            #expect(past.reset(of: group, since: start) == nil)
            let damaged = FollowedEntry(
                position: entry.position, appendedAt: entry.appendedAt,
                container: entry.container, body: .change(.stored("{}"), isStale: false))
            try past.add(damaged, in: container, LiveSettings())
            #expect(past.reset(of: group, since: start) == .tooFar)
        }
    }

    // MARK: Many containers

    private static func container(_ number: Int) -> ContainerKey {
        ContainerKey(
            container: Fixtures.identifier("iCloud.com.example.c\(number)"),
            environment: .development)
    }

    /// Reads changes of three containers, each of which has one entry more than the one before.
    private static func reading(postponed: [ContainerKey: Int]) async throws -> PastReading {
        let scenario = try await LiveScenario()
        let start = try await scenario.store.head()
        try await scenario.append(Self.creations(3))
        let entries = try await scenario.store.followedEntries(after: start, limit: 3)
        let container = LiveContainer(Fixtures.container, seed: 1, mostSteps: 1_000_000)
        try container.insert(
            LiveGroup(
                1, LiveScenario.query(.changes), identity: "all", grant: .world, reader: nil))
        var reading = PastReading(after: start, postponed: postponed)
        for number in 1...3 {
            var past = PastChanges(for: [1])
            for entry in entries.prefix(number) {
                try past.add(entry, in: container, LiveSettings())
            }
            reading.past[Self.container(number)] = past
        }
        return reading
    }

    @Test("reading for many containers postpones the largest ones, but never all")
    func postpones() async throws {
        var reading = try await Self.reading(postponed: [:])
        let bytes = (1...3).map { reading.past[Self.container($0)]?.bytes ?? 0 }
        #expect(bytes[0] > 0 && bytes[0] < bytes[1] && bytes[1] < bytes[2])
        reading.postpone(beyond: bytes.reduce(0, +))
        #expect(reading.past.count == 3)
        reading.postpone(beyond: bytes[0] + bytes[1])
        #expect(Set(reading.past.keys) == [Self.container(1), Self.container(2)])
        reading.postpone(beyond: 0)
        #expect(Set(reading.past.keys) == [Self.container(1)])
        #expect(reading.postponed == [Self.container(2): 1, Self.container(3): 1])
    }

    @Test("the largest container is not postponed forever")
    func postponesByTurns() async throws {
        var postponed: [ContainerKey: Int] = [:]
        var told: [ContainerKey] = []
        for _ in 1...6 {
            var reading = try await Self.reading(postponed: postponed)
            reading.postpone(beyond: 0)
            told += reading.past.keys
            postponed = reading.postponed.filter { reading.past[$0.key] == nil }
        }
        #expect(Set(told.prefix(3)) == Set((1...3).map { Self.container($0) }))
        #expect(Set(told.suffix(3)) == Set((1...3).map { Self.container($0) }))
    }

    @Test("a client returning beside many other containers gets each change once")
    func comesBackBesideMany() async throws {
        let scenario = try await LiveScenario()
        let places = (0..<6).map { number in
            (container: Self.container(number), client: ModelClient.of(UInt64(number) + 1))
        }
        for place in places {
            try await scenario.make(place.container)
            try await scenario.modify([LiveScenario.edit(.create, "r")], in: place.container)
        }
        @Sendable func come(_ version: Int64, to engine: LiveEngine) async throws {
            for (container, client) in places {
                client.leave()
                var query = LiveScenario.query(.changes)
                query.subscription.container = container
                await engine.connect(client.number, at: client, of: container, as: client.reader)
                try await engine.declare(["new": query], version: version, by: client)
            }
            for place in places { await place.client.wait { $0.isComplete } }
        }
        try await scenario.withEngine { try await come(1, to: $0) }
        let start = try await scenario.store.head()
        for place in places {
            try await scenario.modify(
                (0..<3).map { LiveScenario.edit(.create, "r\($0)") }, in: place.container)
        }
        let entries = try await scenario.store.followedEntries(after: start, limit: 18)
        var settings = LiveSettings()
        // The room is enough for four of the six entries.
        settings.bytesPerResume = entries.prefix(3).reduce(10) { $0 + $1.memoryBytes }
        try await scenario.withEngine(settings) { try await come(2, to: $0) }
        for place in places {
            let state = place.client.state.withLock { $0 }
            #expect(state.resets == [] && state.changes["new"]?.count == 3)
        }
    }
}
