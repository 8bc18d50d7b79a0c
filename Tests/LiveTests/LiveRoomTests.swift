import RelayModel
import RelayTestKit
import SimulationKit
import Storage
import Synchronization
import Testing

@testable import Live

/// If the members of all results have no room, the user with the most loses results.
@Suite struct LiveRoomTests {
    private static func reader(_ name: String) -> LiveReader {
        .user(Fixtures.identifier(name))
    }

    /// The approximate bytes of one record in these tests.
    private static let record = 256 + 5 + 16

    /// Settings with room for a dozen records in the results of one container.
    private static var settings: LiveSettings {
        var settings = LiveSettings()
        settings.memory = 2 * 12 * record
        return settings
    }

    private static func add(_ names: ClosedRange<Int>, _ scenario: LiveScenario) async throws {
        for name in names {
            try await scenario.modify([
                LiveScenario.edit(.create, "r\(name)", ["price": .integer(Int64(name))])
            ])
        }
    }

    /// Returns results of all records, each with another condition.
    private static func large(
        _ count: Int, of owner: String, in container: ContainerKey = Fixtures.container
    ) -> [String: LiveQuery] {
        (0..<count).reduce(into: [:]) { queries, number in
            var query = LiveScenario.query(
                .result, where: "price < \(100 + number)", owner: owner)
            query.subscription.container = container
            queries["large \(number)"] = query
        }
    }

    // MARK: Shares

    @Test func `the user with the most loses its largest result`() {
        var shares = ResultShares()
        shares.add(1, 10, for: [Self.reader("alice")])
        shares.add(2, 8, for: [Self.reader("bob")])
        shares.add(3, 9, for: [Self.reader("bob")])
        shares.add(4, 0, for: [Self.reader("carol")])
        let taken = Self.taken(&shares)
        #expect(taken == [3, 1, 2])
    }

    @Test func `a shared result counts in parts for each of its readers`() {
        var shares = ResultShares()
        shares.add(1, 30, for: [Self.reader("alice"), Self.reader("bob"), Self.reader("carol")])
        shares.add(2, 15, for: [Self.reader("dave")])
        shares.add(3, 1, for: [Self.reader("alice")])
        let taken = Self.taken(&shares)
        #expect(taken == [2, 1, 3])
    }

    @Test func `no result ends for a user who has at least half as much`() {
        var shares = ResultShares()
        shares.add(1, 10, for: [Self.reader("alice")])
        shares.add(2, 5, for: [Self.reader("bob")])
        shares.add(3, 4, for: [Self.reader("carol")])
        let forBob = shares.takeLargest(beside: [Self.reader("bob")])
        #expect(forBob == nil)
        let forCarol = shares.takeLargest(beside: [Self.reader("carol")])
        #expect(forCarol == 1)
    }

    @Test func `a shared result does not end for a reader who has more`() {
        var shares = ResultShares()
        shares.add(1, 10, for: [Self.reader("alice"), Self.reader("bob")])
        shares.add(2, 9, for: [Self.reader("bob")])
        shares.add(3, 1, for: [Self.reader("bob")])
        let others: Set<LiveReader> = [Self.reader("alice"), Self.reader("bob")]
        let first = shares.takeLargest(beside: others, sparing: 1)
        #expect(first == 2)
        // Bob's share is six now, and Alice's is five.
        let second = shares.takeLargest(beside: others, sparing: 1)
        #expect(second == nil)
        let last = Self.taken(&shares)
        #expect(last == [1, 3])
    }

    @Test func `later additions count, and removed results do not`() {
        var shares = ResultShares()
        shares.add(1, 10, for: [Self.reader("alice")])
        shares.add(1, 10, for: [Self.reader("alice")])
        let none = shares.takeLargest(beside: [Self.reader("alice")])
        #expect(none == nil)
        shares.add(2, 30, for: [Self.reader("bob")])
        shares.add(3, 40, for: [Self.reader("bob")])
        let isGone = shares.remove(3)
        let isGoneAgain = shares.remove(3)
        #expect(isGone && !isGoneAgain)
        let forAlice = shares.takeLargest(beside: [Self.reader("alice")])
        #expect(forAlice == 2)
        let last = Self.taken(&shares)
        #expect(last == [1])
    }

    private static func taken(_ shares: inout ResultShares) -> [UInt32] {
        var taken: [UInt32] = []
        while let next = shares.takeLargest() { taken.append(next) }
        return taken
    }

    // MARK: In the engine

    @Test("a modest user is shown its result although another one took all room")
    func newcomer() async throws {
        let scenario = try await LiveScenario()
        try await Self.add(1...4, scenario)
        let greedy = ModelClient.of(1, "bob")
        let modest = ModelClient.of(2)
        try await scenario.withEngine(Self.settings) { engine in
            // This takes exactly the available room.
            try await greedy.come(Self.large(3, of: "bob"), to: engine)
            #expect(greedy.state.withLock { $0.gone } == [])
            let one = ["one": LiveScenario.query(.result, where: "price == 1")]
            try await modest.come(one, to: engine)
            try await engine.fence("f", of: 1)
            #expect(modest.state.withLock { $0.gone } == [])
            #expect(modest.state.withLock { $0.shown["one"]?.count } == 1)
            #expect(greedy.state.withLock { $0.gone.count } == 1)
            let counted = await engine.counted
            #expect(counted.memory == counted.members)
        }
    }

    @Test("a result may grow by a record although another user took all room")
    func growing() async throws {
        let scenario = try await LiveScenario()
        try await Self.add(1...2, scenario)
        let greedy = ModelClient.of(1, "bob")
        let modest = ModelClient.of(2)
        var settings = Self.settings
        settings.memory = 2 * 9 * Self.record
        try await scenario.withEngine(settings) { engine in
            let few = ["few": LiveScenario.query(.result, where: "price == 2 OR price == 3")]
            try await modest.come(few, to: engine)
            try await greedy.come(Self.large(4, of: "bob"), to: engine)
            #expect(greedy.state.withLock { $0.gone } == [])
            try await Self.add(3...3, scenario)
            for number: UInt64 in 1...2 { try await engine.fence("f", of: number) }
            #expect(modest.state.withLock { $0.gone } == [])
            #expect(modest.state.withLock { $0.shown["few"]?.count } == 2)
            #expect(greedy.state.withLock { (1..<4).contains($0.gone.count) })
        }
    }

    @Test("a shared result does not end for the other results of one reader")
    func sharing() async throws {
        let scenario = try await LiveScenario()
        try await Self.add(1...2, scenario)
        let greedy = ModelClient.of(1, "bob")
        let modest = ModelClient.of(2)
        var settings = Self.settings
        settings.memory = 2 * 9 * Self.record
        try await scenario.withEngine(settings) { engine in
            // This one is the first that finds no room, because it was declared first.
            let few = ["few": LiveScenario.query(.result, where: "price == 2 OR price == 3")]
            try await modest.come(few, to: engine)
            let all = few.merging(Self.large(3, of: "bob")) { few, _ in few }
            try await greedy.come(all, to: engine)
            try await Self.add(3...3, scenario)
            for number: UInt64 in 1...2 { try await engine.fence("f", of: number) }
            #expect(modest.state.withLock { $0.gone } == [])
            #expect(modest.state.withLock { $0.shown["few"]?.count } == 2)
            #expect(greedy.state.withLock { $0.gone.count } == 1)
            #expect(greedy.state.withLock { $0.shown["few"]?.count } == 2)
        }
    }

    @Test("a modest user is shown its result beside two full containers")
    func severalContainers() async throws {
        let scenario = try await LiveScenario()
        let full = ["First", "Second"].map { name in
            ContainerKey(
                container: Fixtures.identifier("iCloud.com.example.\(name)"),
                environment: .development)
        }
        let record = [LiveScenario.edit(.create, "r1", ["price": .integer(1)])]
        for container in full {
            try await scenario.make(container)
            try await scenario.modify(record, in: container)
        }
        try await Self.add(1...2, scenario)
        let greedy = [ModelClient.of(1, "bob"), ModelClient.of(2, "bob")]
        let modest = ModelClient.of(3)
        try await scenario.withEngine(Self.settings) { engine in
            for (client, container) in zip(greedy, full) {
                // This is as many results of one record as there is room for.
                let queries = Self.large(12, of: "bob", in: container)
                try await client.come(queries, to: engine, of: container)
                #expect(client.state.withLock { $0.gone } == [])
            }
            try await modest.come(["all": LiveScenario.query(.result)], to: engine)
            for client in greedy { try await engine.fence("f", of: client.number) }
            #expect(modest.state.withLock { $0.gone } == [])
            #expect(modest.state.withLock { $0.shown["all"]?.count } == 2)
            let gone = greedy.reduce(0) { $0 + $1.state.withLock { $0.gone.count } }
            #expect(gone == 2)
            let counted = await engine.counted
            #expect(counted.memory == counted.members)
        }
    }

    @Test("the results read for one user are bounded before they are complete")
    func reading() async throws {
        let scenario = try await LiveScenario()
        try await Self.add(1...4, scenario)
        let greedy = ModelClient.of(1, "bob")
        let modest = ModelClient.of(2)
        try await scenario.withEngine(Self.settings) { engine in
            for client in [greedy, modest] {
                await engine.connect(
                    client.number, at: client, of: Fixtures.container, as: client.reader)
            }
            try await engine.declare(Self.large(9, of: "bob"), version: 1, by: greedy)
            let one = ["one": LiveScenario.query(.result, where: "price == 1")]
            try await engine.declare(one, version: 1, by: modest)
            await greedy.wait { $0.isComplete }
            await modest.wait { $0.isComplete }
            try await engine.fence("f", of: 1)
            #expect(modest.state.withLock { $0.gone } == [])
            #expect(modest.state.withLock { $0.shown["one"]?.count } == 1)
            // Three results have room, and one fewer if the modest client came while there was
            // none.
            #expect(greedy.state.withLock { (6...7).contains($0.gone.count) })
            let counted = await engine.counted
            #expect(counted.memory == counted.members)
        }
    }

    @Test("a result with too many records ends while it is read")
    func tooMany() async throws {
        let scenario = try await LiveScenario()
        try await Self.add(1...4, scenario)
        var settings = LiveSettings()
        settings.recordsPerResult = 3
        let client = ModelClient.of(1)
        try await scenario.withEngine(settings) { engine in
            var bounded = LiveScenario.query(.result, order: [LiveSortKey("price")])
            bounded.start = LiveBound(.integer(2))
            let queries = [
                "all": LiveScenario.query(.result), "bounded": bounded,
                "few": LiveScenario.query(.result, where: "price < 4"),
            ]
            try await client.come(queries, to: engine)
            let state = client.state.withLock { $0 }
            #expect(state.gone == ["all"])
            #expect(state.shown["bounded"]?.count == 3)
            #expect(state.shown["few"]?.count == 3)
        }
    }

    @Test("a client that comes while an unreadable table is read is answered too")
    func comesMeanwhile() async throws {
        let scenario = try await LiveScenario()
        try await Self.add(1...4, scenario)
        var settings = LiveSettings()
        settings.rowsPerReading = 3
        let clients = [ModelClient.of(1), ModelClient.of(2, "bob")]
        try await scenario.withEngine(settings) { engine in
            for client in clients {
                await engine.connect(
                    client.number, at: client, of: Fixtures.container, as: client.reader)
            }
            try await engine.declareTogether(["all", "few"], by: clients)
            for client in clients {
                let isTold = await Turns.yield {
                    client.state.withLock { !$0.gone.isEmpty && $0.isComplete }
                }
                #expect(isTold, "\(client.number)")
            }
        }
    }

    @Test("the different queries of one user are bounded, whatever they show")
    func boundsQueries() async throws {
        let scenario = try await LiveScenario()
        let size = LiveScenario.query(.result, where: "price < 100").ownBytes
        var settings = LiveSettings()
        settings.queryBytesPerUser = 3 * size + size / 2
        let (greedy, again) = (ModelClient.of(1, "bob"), ModelClient.of(2, "bob"))
        let modest = ModelClient.of(3)
        try await scenario.withEngine(settings) { engine in
            try await greedy.come(Self.large(3, of: "bob"), to: engine)
            // A query that exists already costs nothing more, however often it is declared.
            try await again.come(Self.large(3, of: "bob"), to: engine)
            await #expect(throws: APIError.self) {
                try await engine.declare(Self.large(4, of: "bob"), version: 2, by: again)
            }
            let version = await engine.version(of: 2)
            #expect(version == 1)
            let schema = await engine.schema(of: Fixtures.container)
            let other = LiveScenario.query(.result, where: "price > 100", owner: "bob")
            let got = DeclaredQuery(id: "g", other, grant: .world, fingerprint: "")
            await #expect(throws: APIError.self) {
                try await engine.get("g", got, under: schema, for: 1)
            }
            let own = ["own": LiveScenario.query(.result, where: "price > 200")]
            try await modest.come(own, to: engine)
            #expect(modest.state.withLock { $0.shown["own"]?.count } == 0)
        }
    }

    @Test("a condition's memory counts for each index that holds it")
    func countsConditions() async throws {
        let scenario = try await LiveScenario()
        var (result, changes) = (
            LiveScenario.query(.result, where: "price < 100", owner: "bob"),
            LiveScenario.query(.changes, where: "price < 100", owner: "bob")
        )
        let (ofResult, ofChanges) = (result.ownBytes, changes.ownBytes)
        result.conditionBytes = 100_000
        changes.conditionBytes = 100_000
        #expect(result.ownBytes == ofResult + 100_000)
        #expect(changes.ownBytes == ofChanges + 200_000)
        var settings = LiveSettings()
        settings.queryBytesPerUser = 150_000
        let (client, other) = (ModelClient.of(1, "bob"), ModelClient.of(2))
        try await scenario.withEngine(settings) { [result, changes] engine in
            try await client.come(["result": result], to: engine)
            await #expect(throws: APIError.self) {
                try await engine.declare(
                    ["result": result, "changes": changes], version: 2, by: client)
            }
            let own = LiveScenario.query(.result, where: "price < 200", owner: "alice")
            try await other.come(["own": own], to: engine)
            #expect(other.state.withLock { $0.shown["own"]?.count } != nil)
        }
    }

    @Test("a user who has left does not pay for what others still see")
    func paysForNobody() async throws {
        let scenario = try await LiveScenario()
        let size = LiveScenario.query(.result, where: "price < 100").ownBytes
        var settings = LiveSettings()
        settings.queryBytesPerUser = 3 * size + size / 2
        let first = ModelClient.of(1, "bob")
        let other = ModelClient.of(2)
        let again = ModelClient.of(3, "bob")
        let own = ["own": LiveScenario.query(.result, where: "price > 100", owner: "bob")]
        try await scenario.withEngine(settings) { engine in
            try await first.come(Self.large(3, of: "bob"), to: engine)
            try await other.come(Self.large(3, of: "alice"), to: engine)
            await engine.disconnect(1)
            await engine.lookAfterGroups()
            try await again.come(own, to: engine)
            #expect(again.state.withLock { $0.shown["own"]?.count } == 0)
            await #expect(throws: APIError.self) {
                try await engine.declare(Self.large(4, of: "alice"), version: 2, by: other)
            }
        }
    }

    @Test("a client that leaves at once is not waited for")
    func forgetsWhoLeft() async throws {
        let scenario = try await LiveScenario()
        try await Self.add(1...2, scenario)
        let queries = ["all": LiveScenario.query(.result)]
        let stays = ModelClient.of(1)
        let leaves = ModelClient.of(2)
        try await scenario.withEngine { engine in
            for client in [stays, leaves] { try await client.come(queries, to: engine) }
            await engine.disconnect(2)
            leaves.leave()
            try await Self.add(3...3, scenario)
            try await engine.fence("f", of: 1)
            let waiting = try await engine.comeAndGo(queries, by: leaves)
            #expect(waiting.then == 1 && waiting.now == 0)
        }
    }

    @Test("a table read for clients that have left is not kept")
    func forgetsTables() async throws {
        let scenario = try await LiveScenario()
        try await Self.add(1...4, scenario)
        var settings = LiveSettings()
        settings.recordsPerResult = 3
        // The second table is read after the first.
        settings.readings = 1
        let client = ModelClient.of(1)
        let other = LiveQuery(
            .result, Fixtures.subscription("other", on: "Other"), form: LiveForm())
        let new = LiveScenario.query(.changes)
        try await scenario.withEngine(settings) { engine in
            try await client.come(["all": LiveScenario.query(.result), "new": new], to: engine)
            #expect(client.state.withLock { $0.gone } == ["all"])
            try await engine.declare(["new": new, "other": other], version: 2, by: client)
            await client.wait { $0.isComplete }
            let tables = await engine.tables
            #expect(tables == 1)
        }
    }
}

private extension LiveEngine {
    /// Lets each client declare another result.
    ///
    /// The second declaration comes while the reading for the first is under way.
    func declareTogether(_ names: [String], by clients: [ModelClient]) throws {
        for (index, client) in clients.enumerated() {
            let query = LiveScenario.query(.result, where: "price < \(100 + index)")
            try declare([names[index]: query], version: 1, by: client)
        }
    }

    /// Lets a client connect and leave at once; returns the number of groups with returning
    /// clients before and after it leaves.
    func comeAndGo(
        _ queries: [String: LiveQuery], by client: ModelClient
    ) throws -> (then: Int, now: Int) {
        connect(client.number, at: client, of: Fixtures.container, as: client.reader)
        try declare(queries, version: 2, by: client)
        let then = returning.values.reduce(0) { $0 + $1.count }
        disconnect(client.number)
        return (then, returning.values.reduce(0) { $0 + $1.count })
    }

    /// The number of tables of which something is kept.
    var tables: Int { containers.values.reduce(0) { $0 + $1.tables.count } }
}
