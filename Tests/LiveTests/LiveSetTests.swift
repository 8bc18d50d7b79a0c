import RelayModel
import RelayTestKit
import SimulationKit
import Storage
import StorageSQL
import Synchronization
import Testing

@testable import Live

/// What a client is told of its set before all of it has been told.
@Suite struct LiveSetTests {
    /// A connection that records the types of the frames that it is sent.
    private final class Recorder: LiveHub {
        private let frames = Mutex<[String]>([])

        /// The states of sets, and the types of the other frames.
        var told: [String] { frames.withLock { $0 } }

        func room() async {}

        func post(_ commands: [LiveCommand]) {
            for case .send(_, let sent) in commands {
                let names = sent.map { frame in
                    let json = try? JSONValue(parsing: frame.bytes)
                    guard case .string(let state)? = json?.value(at: ["state"]) else {
                        return frame.type
                    }
                    return state
                }
                frames.withLock { $0 += names }
            }
        }
    }

    /// A connection that records the names of the records that it got.
    private final class GotNames: LiveHub {
        private let got = Mutex<[String]>([])

        var names: [String] { got.withLock { $0.sorted() } }

        func room() async {}

        func post(_ commands: [LiveCommand]) {
            for case .show(_, var result) in commands {
                while let frame = result.next() {
                    let json = try? JSONValue(parsing: frame.bytes)
                    guard case .array(let records)? = json?.value(at: ["records"]) else { continue }
                    let names = records.compactMap { record -> String? in
                        guard case .string(let name)? = record.value(at: ["recordName"]) else {
                            return nil
                        }
                        return name
                    }
                    got.withLock { $0 += names }
                }
            }
        }
    }

    /// A log that blocks all readings once it is held up, until someone asks for its head.
    private final class WaitingLog: AlteredLog {
        private struct State {
            var isHeldUp = false
            var waiting: [CheckedContinuation<Void, Never>] = []
        }

        let store: RelayStore
        private let state = Mutex(State())

        init(_ store: RelayStore) { self.store = store }

        func holdUp() { state.withLock { $0.isHeldUp = true } }

        func head() async throws -> LogPosition {
            let waiting = state.withLock { state in
                defer { state = State() }
                return state.waiting
            }
            for continuation in waiting { continuation.resume() }
            return try await store.head()
        }

        func followedEntries(
            after position: LogPosition, limit: Int
        ) async throws -> [FollowedEntry] {
            await withCheckedContinuation { continuation in
                let isFree = state.withLock { state in
                    if state.isHeldUp { state.waiting.append(continuation) }
                    return !state.isHeldUp
                }
                if isFree { continuation.resume() }
            }
            return try await store.followedEntries(after: position, limit: limit)
        }
    }

    @Test("a fence waits for readings, and an unfinished set is superseded")
    func waits() async throws {
        let scenario = try await LiveScenario()
        let client = ModelClient(1, as: .user(Fixtures.identifier("alice")))
        let hub = Recorder()
        // No table is ever read.
        var settings = LiveSettings()
        settings.readings = 0
        try await scenario.withEngine(settings) { engine in
            await engine.connect(1, at: hub, of: Fixtures.container, as: client.reader)
            try await engine.declare(
                ["all": LiveScenario.query(.result)], version: 1, by: client)
            try await engine.fence("f", of: 1)
            #expect(hub.told == ["bootstrapping"])
            try await engine.declare([:], version: 2, by: client)
            #expect(
                hub.told
                    == ["bootstrapping", "superseded", "bootstrapping", "complete", "fenced"])
            try await engine.fence("g", of: 1)
            #expect(hub.told.last == "fenced" && hub.told.count == 6)
        }
    }

    @Test("the reported part of a set counts queries in any order")
    func tellsParts() async throws {
        let scenario = try await LiveScenario()
        let client = ModelClient(1, as: .user(Fixtures.identifier("alice")))
        let hub = Recorder()
        // The result is never read, but queries of changes begin at once.
        var settings = LiveSettings()
        settings.readings = 0
        var queries = ["all": LiveScenario.query(.result)]
        for price in 1...3 {
            queries["price \(price)"] = LiveScenario.query(.changes, where: "price == \(price)")
        }
        let declared = queries
        try await scenario.withEngine(settings) { engine in
            await engine.connect(1, at: hub, of: Fixtures.container, as: client.reader)
            try await engine.declare(declared, version: 1, by: client)
            // There is one frame as the answer, and one for each further quarter.
            #expect(hub.told == Array(repeating: "bootstrapping", count: 4))
        }
    }

    @Test("a second get of the same name is refused while the first waits")
    func refusesSecondGet() async throws {
        let scenario = try await LiveScenario()
        let client = ModelClient(1, as: .user(Fixtures.identifier("alice")))
        var settings = LiveSettings()
        settings.readings = 0
        try await scenario.withEngine(settings) { engine in
            await engine.connect(1, at: Recorder(), of: Fixtures.container, as: client.reader)
            let schema = await engine.schema(of: Fixtures.container)
            let query = DeclaredQuery(
                id: "g", LiveScenario.query(.result), grant: .world, fingerprint: "")
            try await engine.get("g", query, under: schema, for: 1)
            try await engine.get("h", query, under: schema, for: 1)
            await #expect(throws: APIError.self) {
                try await engine.get("g", query, under: schema, for: 1)
            }
        }
    }

    @Test("a get contains what was durable when it was requested")
    func getsWhatIsThere() async throws {
        let scenario = try await LiveScenario()
        try await scenario.modify([LiveScenario.edit(.create, "early")])
        let log = WaitingLog(scenario.store)
        let other = ModelClient(1, as: .user(Fixtures.identifier("alice")))
        let hub = GotNames()
        let query = LiveScenario.query(.result)
        let declared = DeclaredQuery(id: "g", query, grant: .world, fingerprint: "")
        try await scenario.withEngine(log: log) { engine in
            // Another client already shows the same.
            try await other.come(["all": query], to: engine)
            log.holdUp()
            try await scenario.modify([LiveScenario.edit(.create, "late")])
            await engine.connect(2, at: hub, of: Fixtures.container, as: other.reader)
            let schema = await engine.schema(of: Fixtures.container)
            try await engine.get("g", declared, under: schema, for: 2)
            try await engine.fence("f", of: 2)
        }
        #expect(hub.names == ["early", "late"])
    }

    @Test("a get does not begin anew because of a record's readers")
    func getsAmongReaders() async throws {
        let scenario = try await LiveScenario()
        try await scenario.modify([
            LiveScenario.edit(.create, "r1", ["price": .integer(1)], readers: ["alice"])
        ])
        let client = ModelClient(1, as: .user(Fixtures.identifier("alice")))
        try await scenario.withEngine { engine in
            await engine.connect(1, at: client, of: Fixtures.container, as: client.reader)
            let schema = await engine.schema(of: Fixtures.container)
            let query = LiveScenario.query(.result, order: [LiveSortKey("price")])
            let declared = DeclaredQuery(id: "g", query, grant: .world, fingerprint: "")
            try await engine.get("g", declared, under: schema, for: 1)
            try await engine.fence("f", of: 1)
            await client.wait { !$0.ends.isEmpty }
            #expect(client.state.withLock { $0.resets } == [])
        }
    }

    @Test("a client that cannot resume is told the whole result")
    func beginsAnew() async throws {
        let scenario = try await LiveScenario()
        try await scenario.modify([LiveScenario.edit(.create, "r1", ["price": .integer(1)])])
        let client = ModelClient(1, as: .user(Fixtures.identifier("alice")))
        var query = LiveScenario.query(.result)
        query.beginning = .none
        let declared = DeclaredQuery(
            id: "new", query, grant: .world, fingerprint: "", since: LogPosition(1),
            reset: .foreign)
        try await scenario.withEngine { engine in
            await engine.connect(1, at: client, of: Fixtures.container, as: client.reader)
            let schema = await engine.schema(of: Fixtures.container)
            let set = LiveSet(version: 1, [declared], removing: nil, under: schema)
            try await engine.declare(set, by: 1)
            try await engine.fence("f", of: 1)
            await client.wait { !$0.ends.isEmpty }
            #expect(client.state.withLock { $0.resets } == ["foreign"])
            #expect(client.state.withLock { $0.shown["new"]?.count } == 1)
        }
    }

    @Test("a query is kept once for all clients, whatever they are told first")
    func keepsQueriesOnce() async throws {
        let scenario = try await LiveScenario()
        var asked = LiveScenario.query(.result, owner: "bob")
        asked.beginning = .none
        let quiet = ["q": asked]
        try await scenario.withEngine { engine in
            try await ModelClient.of(1).come(["q": LiveScenario.query(.result)], to: engine)
            try await ModelClient.of(2, "bob").come(quiet, to: engine)
            let queries = await engine.queries(of: 2)
            let known = try #require(queries["q"])
            #expect(known.beginning == LiveQuery.Beginning.none)
            #expect(known.subscription.owner.rawValue == "alice")
        }
    }

    @Test("queries are equal whatever form their condition was written in")
    func comparesConditions() {
        let query = LiveScenario.query(.changes, where: "price < 5")
        func asked(_ change: (inout SubscriptionQuery) -> Void) -> LiveQuery {
            var asked = LiveScenario.query(.changes, where: "price < 5", owner: "bob")
            guard case .query(var condition, let zoneID) = asked.subscription.scope else {
                return asked
            }
            change(&condition)
            asked.subscription.scope = .query(condition, zoneID: zoneID)
            return asked
        }
        let rewritten = asked { $0.source = .string("5 > price") }
        let other = asked { $0.canonical = "price < 6" }
        #expect(query.shows(theSameAs: rewritten))
        #expect(!query.shows(theSameAs: other))
    }

    @Test("waiting fences are bounded")
    func bounds() async throws {
        let scenario = try await LiveScenario()
        let client = ModelClient(1, as: .user(Fixtures.identifier("alice")))
        var settings = LiveSettings()
        settings.readings = 0
        try await scenario.withEngine(settings) { engine in
            await engine.connect(1, at: Recorder(), of: Fixtures.container, as: client.reader)
            try await engine.declare(
                ["all": LiveScenario.query(.result)], version: 1, by: client)
            let long = String(repeating: "f", count: 10_000)
            try await engine.fence(long, of: 1)
            await #expect(throws: APIError.self) { try await engine.fence(long, of: 1) }
        }
    }

    @Test("removals are told before additions, also if readers decide")
    func ordersWhatIsReadable() {
        func record(_ name: String, _ readers: [String]?) -> LiveRecord {
            let stamp = RecordStamp(at: Fixtures.moment, userID: nil, deviceID: nil)
            return LiveRecord(
                ShadowRecord(
                    recordID: RecordID(recordName: Fixtures.identifier(name)),
                    recordType: Fixtures.identifier("Artwork"), fields: [:], created: stamp,
                    modified: stamp, source: .cloudKit, position: LogPosition(1)),
                readers: readers)
        }
        let group = LiveGroup(
            1, LiveScenario.query(.result), identity: "all", grant: .world, reader: nil)
        let items = [
            LiveItem(operation: .added, reason: .entered, record: record("new", nil)),
            LiveItem(
                operation: .changed, record: record("shown", ["alice"]),
                before: record("shown", ["bob"])),
            LiveItem(
                operation: .changed, record: record("hidden", ["bob"]),
                before: record("hidden", ["alice"])),
        ]
        let told = group.readable(items, for: .user(Fixtures.identifier("alice")))
        #expect(told.map(\.operation) == [.removed, .added, .added])
        #expect(told.map(\.reason) == [.unreadable, .entered, .readable])
    }
}
