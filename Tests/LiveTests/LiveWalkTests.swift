import RelayModel
import RelayTestKit
import SimulationKit
import Storage
import StorageSQL
import StorageSQLite
import Synchronization
import Testing

@testable import Live

/// A connection gets every change once and in order, even if it falls behind or the relay changes.
@Suite struct LiveWalkTests {
    /// A connection that stalls, and ignores the frames of its groups until it catches up.
    private final class Lagging: LiveHub {
        private let connection: any LiveHub
        private let isLagging = Mutex(false)
        private let sent = Mutex<[String]>([])

        init(_ client: ModelClient) { connection = client.connection() }

        /// The types of the frames that were sent to this client alone.
        var types: [String] { sent.withLock { $0 } }

        func room() async {}

        func stall() { isLagging.withLock { $0 = true } }

        func post(_ commands: [LiveCommand]) {
            let heard = isLagging.withLock { isLagging in
                commands.filter { command in
                    switch command {
                    case .deliver, .close: return !isLagging
                    case .caughtUp:
                        isLagging = false
                        return true
                    default: return true
                    }
                }
            }
            for case .send(_, let frames) in heard {
                sent.withLock { $0 += frames.map(\.type) }
            }
            connection.post(heard)
        }
    }

    @Test("a query begun while its client was behind catches up from its own beginning")
    func catchesUpWithWhatBegan() async throws {
        let scenario = try await LiveScenario()
        try await scenario.modify([LiveScenario.edit(.create, "r0")])
        let client = ModelClient(1, as: .user(Fixtures.identifier("alice")))
        let hub = Lagging(client)
        try await scenario.withEngine { engine in
            await engine.connect(1, at: hub, of: Fixtures.container, as: client.reader)
            var queries = ["changes": LiveScenario.query(.changes)]
            try await engine.declare(queries, version: 1, by: client)
            await client.wait { $0.isComplete }
            let behind = try await scenario.store.head()
            hub.stall()
            try await scenario.modify(["x", "y"].map { LiveScenario.edit(.create, $0) })
            try await engine.reachHead()
            queries["late"] = LiveScenario.query(.result)
            try await engine.declare(queries, version: 2, by: client)
            let hasBegun = await Turns.yield {
                await engine.clientStates(of: Fixtures.container, after: 0, limit: 1)
                    .allSatisfy { $0.waiting == 0 }
            }
            #expect(hasBegun)
            // The client was shown x, which did not exist where it fell behind, and does not at
            // the end.
            try await scenario.modify([LiveScenario.edit(.forceDelete, "x")])
            try await engine.reachHead()
            await engine.catchUp(1, from: LiveLag(behind))
            await client.wait { $0.isComplete }
            try await engine.fence("f", of: 1)
            let state = client.state.withLock { $0 }
            #expect(state.shown["late"]?.keys.sorted() == ["r0", "y"])
            #expect(state.changes["changes"]?.count == 3)
            #expect(state.resets == [])
        }
    }

    @Test("a once query that catches up is not ended by a change that does not fit")
    func endsWithWhatIsTold() async throws {
        let scenario = try await LiveScenario()
        let client = ModelClient(1, as: .user(Fixtures.identifier("alice")))
        var query = LiveScenario.query(.changes, where: "price > 5")
        query.isOnce = true
        let queries = ["next": query]
        try await scenario.withEngine { engine in
            await engine.connect(1, at: client, of: Fixtures.container, as: client.reader)
            try await engine.declare(queries, version: 1, by: client)
            await client.wait { $0.isComplete }
            try await scenario.modify([
                LiveScenario.edit(.create, "low", ["price": .integer(1)])
            ])
            try await engine.reachHead()
            let ending = await engine.endingWhileCatchingUp(1)
            #expect(ending == 0)
            try await scenario.modify([
                LiveScenario.edit(.create, "high", ["price": .integer(9)])
            ])
            let isTold = await Turns.yield {
                client.state.withLock { $0.changes["next"]?.count ?? 0 } > 0
            }
            #expect(isTold)
            #expect(client.state.withLock { $0.changes["next"]?.count } == 1)
        }
    }

    @Test("a once query gets its change even if its client was behind")
    func catchesUpWithOne() async throws {
        let scenario = try await LiveScenario()
        let client = ModelClient(1, as: .user(Fixtures.identifier("alice")))
        let hub = Lagging(client)
        var query = LiveScenario.query(.changes)
        query.isOnce = true
        let queries = ["next": query]
        try await scenario.withEngine { engine in
            await engine.connect(1, at: hub, of: Fixtures.container, as: client.reader)
            try await engine.declare(queries, version: 1, by: client)
            await client.wait { $0.isComplete }
            let behind = try await scenario.store.head()
            hub.stall()
            for name in ["x", "y"] {
                try await scenario.modify([LiveScenario.edit(.create, name)])
                try await engine.reachHead()
            }
            // A client that has not heard of x must declare the query again, and no other client
            // must.
            for (place, count) in [(behind, 1), (behind.next, 0)] {
                #expect(await engine.declared(by: 1, after: place)?.queries.count == count)
            }
            await engine.catchUp(1, from: LiveLag(behind))
            let isTold = await Turns.yield {
                client.state.withLock { $0.changes["next"]?.count ?? 0 } > 0
            }
            #expect(isTold)
            try await scenario.modify([LiveScenario.edit(.create, "z")])
            try await engine.fence("f", of: 1)
            // The change was told, and is not told again.
            let head = try await scenario.store.head()
            await engine.catchUp(1, from: LiveLag(head))
            try await engine.fence("g", of: 1)
            #expect(client.state.withLock { $0.changes["next"]?.count } == 1)
            let states = await engine.clientStates(of: Fixtures.container, after: 0, limit: 1)
            #expect(states.map(\.isLagging) == [false])
        }
    }

    @Test func `a client that fell behind is shown as lagging until it has caught up`() async throws
    {
        let scenario = try await LiveScenario()
        let client = ModelClient(1, as: .user(Fixtures.identifier("alice")))
        try await scenario.withEngine { engine in
            await engine.connect(1, at: client, of: Fixtures.container, as: client.reader)
            let queries = ["changes": LiveScenario.query(.changes)]
            try await engine.declare(queries, version: 1, by: client)
            await client.wait { $0.isComplete }
            try await scenario.modify([LiveScenario.edit(.create, "x")])
            try await engine.reachHead()
            let behind = try await scenario.store.head()
            await engine.fallBehind(1, at: LiveLag(behind))
            var lagging = await engine.counts.lagging
            #expect(lagging == 1)
            await engine.catchUp(1, from: LiveLag(behind))
            // The report of falling behind takes another way, and may arrive later.
            await engine.fallBehind(1, at: LiveLag(behind))
            lagging = await engine.counts.lagging
            #expect(lagging == 0)
            await engine.fallBehind(1, at: LiveLag(behind.next))
            lagging = await engine.counts.lagging
            #expect(lagging == 1)
        }
    }

    @Test("a fence waits for frames that were held back because the client fell behind")
    func fencesBehind() async throws {
        let scenario = try await LiveScenario()
        try await scenario.modify([LiveScenario.edit(.create, "first")])
        let client = ModelClient(1, as: .user(Fixtures.identifier("alice")))
        let hub = Lagging(client)
        try await scenario.withEngine { engine in
            await engine.connect(1, at: hub, of: Fixtures.container, as: client.reader)
            let queries = ["changes": LiveScenario.query(.changes)]
            try await engine.declare(queries, version: 1, by: client)
            await client.wait { $0.isComplete }
            let behind = try await scenario.store.head()
            hub.stall()
            await engine.fallBehind(1, at: LiveLag(behind))
            try await scenario.modify([LiveScenario.edit(.create, "x")])
            try await engine.fence("f", of: 1)
            #expect(!hub.types.contains("fenced"))
            await engine.catchUp(1, from: LiveLag(behind))
            let isFenced = await Turns.yield { hub.types.contains("fenced") }
            #expect(isFenced)
            #expect(hub.types.suffix(3) == ["change", "state", "fenced"])
            // The connection returns the answer that it could not send, perhaps late.
            let answer = LiveFrame(["type": "fenced", "id": "g"])
            await engine.fallBehind(1, at: LiveLag(behind), untold: [answer])
            #expect(hub.types.suffix(2) == ["fenced", "fenced"])
            let head = try await scenario.store.head()
            await engine.catchUp(1, from: LiveLag(head, count: 2))
            let hasCaughtUp = await Turns.yield { await engine.counts.lagging == 0 }
            #expect(hasCaughtUp)
            // The client falls behind once more, although nothing has happened since. The answer
            // that is returned then must not be sent again and again.
            await engine.fallBehind(1, at: LiveLag(head, count: 3), untold: [answer])
            #expect(hub.types.count { $0 == "fenced" } == 2)
            await engine.catchUp(1, from: LiveLag(head, count: 3))
            let isAnswered = await Turns.yield { hub.types.count { $0 == "fenced" } == 3 }
            #expect(isAnswered)
            await engine.fallBehind(1, at: LiveLag(head.next, count: 4), untold: [answer])
            #expect(hub.types.count { $0 == "fenced" } == 3)
        }
    }

    /// A log that was pruned: nothing is left at the position from which it is first read.
    private final class PrunedLog: AlteredLog {
        private struct State {
            var end = LogPosition.start
            var meanwhile: (@Sendable () async throws -> Void)?
        }

        let store: RelayStore
        private let state = Mutex(State())

        init(_ store: RelayStore) { self.store = store }

        /// Prunes everything up to `end`; the first reader afterwards runs `meanwhile` while it
        /// reads.
        func prune(to end: LogPosition, meanwhile: @escaping @Sendable () async throws -> Void) {
            state.withLock { $0 = State(end: end, meanwhile: meanwhile) }
        }

        func followedEntries(
            after position: LogPosition, limit: Int
        ) async throws -> [FollowedEntry] {
            let known = state.withLock { state in
                defer { if position < state.end { state.meanwhile = nil } }
                return state
            }
            if position < known.end, let meanwhile = known.meanwhile {
                try await meanwhile()
                return []
            }
            return try await store.followedEntries(after: max(position, known.end), limit: limit)
        }
    }

    @Test("a client resumes although another one was away for too long")
    func goesOnBesideWhoCannot() async throws {
        let scenario = try await LiveScenario()
        let log = PrunedLog(scenario.store)
        let long = ModelClient(1, as: .user(Fixtures.identifier("alice")))
        let short = ModelClient(2, as: .user(Fixtures.identifier("bob")))
        let queries = ["new": LiveScenario.query(.changes)]
        try await scenario.withEngine(log: log) { engine in
            @Sendable func come(_ client: ModelClient, _ version: Int64) async throws {
                await engine.connect(
                    client.number, at: client.connection(), of: Fixtures.container,
                    as: client.reader)
                try await engine.declare(queries, version: version, by: client)
            }
            @Sendable func go(_ client: ModelClient) async {
                await engine.disconnect(client.number)
                client.leave()
            }
            for client in [long, short] {
                try await come(client, 1)
                await client.wait { $0.isComplete }
            }
            await go(long)
            try await scenario.modify([LiveScenario.edit(.create, "a")])
            try await engine.fence("f", of: 2)
            await go(short)
            log.prune(to: try await scenario.store.head()) {
                try await scenario.modify([LiveScenario.edit(.create, "b")])
                try await engine.reachHead()
                try await come(short, 2)
            }
            try await come(long, 2)
            for client in [long, short] { await client.wait { $0.isComplete } }
        }
        #expect(long.state.withLock { $0.resets } == ["expired"])
        let state = short.state.withLock { $0 }
        #expect(state.resets == [] && state.changes["new"]?.count == 2)
    }

    @Test("a result requested before the log is followed misses no change")
    func waitsUntilItFollows() async throws {
        let scenario = try await LiveScenario()
        try await scenario.modify([LiveScenario.edit(.create, "early")])
        let client = ModelClient(1, as: .user(Fixtures.identifier("alice")))
        let engine = LiveEngine(
            log: scenario.store, shadow: scenario.store, writing: PlainForm(),
            store: LiveScenario.mark, seed: 1, clock: TestClock(),
            logger: .silent)
        await engine.connect(1, at: client, of: Fixtures.container, as: client.reader)
        try await engine.declare(["all": LiveScenario.query(.result)], version: 1, by: client)
        // After these turns, everything that the engine reads before it follows has been read.
        await Turns.pass(2000)
        try await scenario.modify([LiveScenario.edit(.create, "late")])
        let following = Task { try? await engine.follow() }
        await client.wait { $0.isComplete }
        #expect(client.state.withLock { $0.shown["all"]?.keys.sorted() } == ["early", "late"])
        following.cancel()
    }

    @Test("frames of a former connection are ignored")
    func hearsTheLiving() {
        let client = ModelClient(1, as: .server)
        let former = client.connection()
        let frame = LiveFrame(["type": "at", "at": "1-store-1"])
        former.post([.close(1, frame, .start)])
        #expect(client.state.withLock { $0.ends } == [0])
        client.leave()
        former.post([.close(1, frame, .start)])
        #expect(client.state.withLock { $0.ends } == [0])
        client.connection().post([.close(1, frame, .start)])
        #expect(client.state.withLock { $0.ends } == [0, 0])
    }
}

private extension LiveEngine {
    /// Lets a client catch up from the beginning; returns the number of queries that the next
    /// change would end before it has caught up.
    func endingWhileCatchingUp(_ number: UInt64) -> Int {
        catchUp(number, from: LiveLag(.start))
        return containers.values.flatMap(\.groups.values).reduce(0) { $0 + $1.once.count }
    }
}
