import RelayModel
import RelayTestKit
import SimulationKit
import Storage
import Synchronization
import Testing

@testable import Live

/// What one client asks for costs the others nothing, and what may be seen no more is shown nobody.
@Suite struct LiveBoundsTests {
    private static func client(_ number: UInt64, _ user: String = "alice") -> ModelClient {
        ModelClient(number, as: .user(Fixtures.identifier(user)))
    }

    private static func come(
        _ client: ModelClient, _ queries: [String: LiveQuery], version: Int64 = 1,
        to engine: LiveEngine
    ) async throws {
        client.leave()
        await engine.connect(client.number, at: client, of: Fixtures.container, as: client.reader)
        try await engine.declare(queries, version: version, by: client)
        await client.wait { $0.isComplete }
    }

    private static func add(
        _ names: ClosedRange<Int>, _ scenario: LiveScenario, price: Int64 = 1
    ) async throws {
        for name in names {
            try await scenario.modify([
                LiveScenario.edit(.create, "r\(name)", ["price": .integer(price)])
            ])
        }
    }

    /// Bounds under which ten changes are too much to come back to.
    static let bounds: [@Sendable (inout LiveSettings) -> Void] = [
        { $0.entriesPerResume = 9 }, { $0.entriesReadPerResume = 9 }, { $0.bytesPerResume = 999 },
        { $0.toldPerResume = 9 },
    ]

    @Test(
        "who was away for too much begins anew, and is shown everything", arguments: bounds.indices)
    func tooFar(bound: Int) async throws {
        let scenario = try await LiveScenario()
        try await Self.add(0...0, scenario)
        var settings = LiveSettings()
        Self.bounds[bound](&settings)
        let queries = ["all": LiveScenario.query(.result), "new": LiveScenario.query(.changes)]
        let client = Self.client(1)
        try await scenario.withEngine(settings) { engine in
            try await Self.come(client, queries, to: engine)
            await engine.disconnect(1)
            try await Self.add(1...10, scenario)
            try await engine.reachHead()
            try await Self.come(client, queries, version: 2, to: engine)
            let state = client.state.withLock { $0 }
            #expect(Set(state.resets) == ["tooFar"])
            #expect(state.shown["all"]?.count == 11)
        }
    }

    @Test("whoever needs most of what is told goes without, and the others do not")
    func sharesTelling() async throws {
        let scenario = try await LiveScenario()
        try await Self.add(0...0, scenario)
        var settings = LiveSettings()
        settings.toldPerResume = 30
        let modest = Self.client(1, "alice")
        let greedy = Self.client(2, "bob")
        let one = ["new": LiveScenario.query(.changes)]
        let many = Dictionary(
            uniqueKeysWithValues: (2...9).map { price in
                (
                    "new\(price)",
                    LiveScenario.query(.changes, where: "price < \(price)", owner: "bob")
                )
            })
        try await scenario.withEngine(settings) { engine in
            try await Self.come(modest, one, to: engine)
            try await Self.come(greedy, many, to: engine)
            await engine.disconnect(1)
            await engine.disconnect(2)
            try await Self.add(1...10, scenario)
            try await engine.reachHead()
            try await Self.come(greedy, many, version: 2, to: engine)
            try await Self.come(modest, one, version: 2, to: engine)
            #expect(modest.state.withLock { $0.resets } == [])
            #expect(modest.state.withLock { $0.changes["new"]?.count } == 10)
            #expect(greedy.state.withLock { $0.resets.count } == many.count)
        }
    }

    @Test("who goes while the log is read for it leaves nothing behind")
    func goesWhileResuming() async throws {
        let scenario = try await LiveScenario()
        try await Self.add(0...0, scenario)
        let queries = ["all": LiveScenario.query(.result), "new": LiveScenario.query(.changes)]
        let client = Self.client(1)
        let other = Self.client(2)
        try await scenario.withEngine { engine in
            try await Self.come(client, queries, to: engine)
            try await Self.come(other, queries, to: engine)
            await engine.disconnect(1)
            await engine.disconnect(2)
            try await Self.add(1...3, scenario)
            try await engine.reachHead()
            await engine.connect(1, at: client, of: Fixtures.container, as: client.reader)
            try await engine.declare(queries, version: 2, by: client)
            await engine.disconnect(1)
            try await Self.come(other, queries, version: 2, to: engine)
            #expect(other.state.withLock { $0.changes["new"]?.count } == 3)
            let waiting = await engine.returning
            #expect(waiting.values.allSatisfy { $0.isEmpty })
        }
    }

    @Test("after a change of the schema nobody stands in what was shown under the one before")
    func forgetsBySchema() async throws {
        let scenario = try await LiveScenario()
        try await Self.add(0...0, scenario)
        let queries = ["all": LiveScenario.query(.result), "new": LiveScenario.query(.changes)]
        let client = Self.client(1)
        try await scenario.withEngine { engine in
            try await Self.come(client, queries, to: engine)
            let before = await engine.schema(of: Fixtures.container)
            await engine.noteSchemaChange(of: Fixtures.container)
            try await Self.add(1...1, scenario)
            try await engine.reachHead()
            let state = client.state.withLock { $0 }
            #expect(state.shown["all"]?.count == 1)
            #expect(state.changes["new"] == nil)
            await #expect(throws: APIError.self) {
                try await engine.declare(
                    LiveSet(version: 2, [], removing: nil, under: before), by: 1)
            }
            let counts = await engine.counts
            #expect(counts.groups == 0)
        }
    }

    @Test("a query that ends with its first change leaves its client's other one where it is")
    func endsOneOfTwo() async throws {
        let scenario = try await LiveScenario()
        try await Self.add(0...0, scenario)
        var once = LiveScenario.query(.changes)
        once.isOnce = true
        let queries = ["once": once, "new": LiveScenario.query(.changes)]
        let client = Self.client(1)
        try await scenario.withEngine { engine in
            try await Self.come(client, queries, to: engine)
            try await Self.add(1...1, scenario)
            try await engine.fence("f", of: 1)
            try await Self.add(2...3, scenario)
            try await engine.fence("g", of: 1)
            #expect(client.state.withLock { $0.changes["new"]?.count } == 3)
        }
    }
}
