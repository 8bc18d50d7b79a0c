import RelayModel
import RelayTestKit
import SimulationKit
import Storage
import StorageSQL
import StorageSQLite
import Synchronization
import Testing

@testable import Live

/// Clients are shown what the store has, however they connect and disconnect.
@Suite struct LiveEngineTests {
    private static let queries: [String: LiveQuery] = [
        "all": LiveScenario.query(.result),
        "cheap": LiveScenario.query(.result, where: "price < 5"),
        "first": LiveScenario.query(
            .result, where: "price < 8", order: [LiveSortKey("price")], limit: .first(3)),
        "last": LiveScenario.query(
            .result, order: [LiveSortKey("name", isAscending: false), LiveSortKey("price")],
            limit: .last(4)),
        "changes": LiveScenario.query(.changes, where: "price < 5"),
        "steady": coalescing(LiveScenario.query(.result, where: "price < 5")),
        "top": coalescing(
            LiveScenario.query(
                .result, where: "price < 8", order: [LiveSortKey("price")], limit: .first(3))),
    ]

    private static func coalescing(_ query: LiveQuery) -> LiveQuery {
        var query = query
        query.coalesces = true
        return query
    }

    private static func fits(_ id: String) -> (RecordFields) -> Bool {
        let most: Int64 =
            switch id {
            case "cheap", "steady": 5
            case "first", "top": 8
            default: .max
            }
        return { fields in
            guard case .integer(let price)? = fields["price"] else { return most == .max }
            return price < most
        }
    }

    private static func edits(_ generator: inout SeededGenerator) -> [RecordEdit] {
        (0..<Int.random(in: 1...6, using: &generator)).map { _ in
            let name = "r\(Int.random(in: 0..<12, using: &generator))"
            guard Int.random(in: 0..<4, using: &generator) > 0 else {
                return LiveScenario.edit(.forceDelete, name)
            }
            return LiveScenario.edit(
                .forceReplace, name,
                [
                    "price": .integer(.random(in: 0..<10, using: &generator)),
                    "name": .string(
                        ["ann", "bob", "cy"][Int.random(in: 0..<3, using: &generator)]),
                ])
        }
    }

    private static func check(
        _ client: ModelClient, _ scenario: LiveScenario, _ comment: Comment
    ) async throws {
        let shown = client.state.withLock { $0.shown }
        for (id, query) in queries where query.kind == .result {
            let oracle = try await scenario.oracle(query, fits: fits(id))
            #expect(shown[id] ?? [:] == oracle, "\(id) \(comment)")
        }
    }

    @Test("a client sees what the store has, at every stop", arguments: 0..<12)
    func followsTheStore(seed: Int) async throws {
        let scenario = try await LiveScenario()
        try await scenario.modify([LiveScenario.edit(.forceReplace, "r0", ["price": .integer(1)])])
        try await scenario.withEngine { engine in
            var generator = SeededGenerator(seed: UInt64(seed))
            let client = ModelClient(1, as: .user(Fixtures.identifier("alice")))
            await engine.connect(1, at: client, of: Fixtures.container, as: client.reader)
            try await engine.declare(Self.queries, version: 1, by: client)
            for round in 0..<20 {
                try await scenario.modify(Self.edits(&generator))
                try await engine.fence("f\(round)", of: 1)
                await client.wait { $0.isComplete }
                try await engine.fence("g\(round)", of: 1)
                try await Self.check(client, scenario, "round \(round)")
            }
        }
    }

    @Test(
        "a returning client resumes, even on an engine that does not know it",
        arguments: 0..<12)
    func resumes(seed: Int) async throws {
        let scenario = try await LiveScenario()
        try await scenario.modify([LiveScenario.edit(.forceReplace, "r0", ["price": .integer(1)])])
        let client = ModelClient(1, as: .user(Fixtures.identifier("alice")))
        var generator = SeededGenerator(seed: UInt64(seed) &+ 100)
        for life in 1...6 {
            let rounds = Int.random(in: 0..<3, using: &generator)
            let edits = (0..<rounds).map { _ in Self.edits(&generator) }
            try await scenario.withEngine { engine in
                await engine.connect(1, at: client, of: Fixtures.container, as: client.reader)
                try await engine.declare(Self.queries, version: Int64(life), by: client)
                await client.wait { $0.isComplete }
                try await Self.check(client, scenario, "life \(life)")
                for edits in edits { try await scenario.modify(edits) }
                try await engine.fence("f", of: 1)
                try await Self.check(client, scenario, "end of life \(life)")
            }
            // These edits happen while no engine follows.
            try await scenario.modify(Self.edits(&generator))
            client.leave()
        }
        let state = client.state.withLock { $0 }
        #expect(state.resets == [])
        let changes = state.changes["changes"] ?? []
        #expect(changes == Array(Set(changes)).sorted(), "each change once, in order")
    }

    @Test("pruned records leave results, even while the client is away", arguments: [false, true])
    func forgets(isAway: Bool) async throws {
        let scenario = try await LiveScenario()
        try await scenario.modify([LiveScenario.edit(.forceReplace, "r0", ["price": .integer(1)])])
        var changes = ["old", "older"].map { name in
            RecordChange(
                .create, of: LiveScenario.type, RecordID(recordName: Fixtures.identifier(name)))
        }
        for index in changes.indices { changes[index].after = RecordImage(["price": .integer(2)]) }
        try await scenario.append(changes)
        let queries = [
            "all": LiveScenario.query(.result), "changes": LiveScenario.query(.changes),
            "top": LiveScenario.query(
                .result, order: [LiveSortKey("price", isAscending: false)], limit: .first(1)),
        ]
        let client = ModelClient(1, as: .user(Fixtures.identifier("alice")))
        @Sendable func shown(_ id: String) -> [String] {
            client.state.withLock { $0.shown[id]?.keys.sorted() ?? [] }
        }
        @Sendable func join(_ engine: LiveEngine, _ version: Int64) async throws {
            await engine.connect(1, at: client, of: Fixtures.container, as: client.reader)
            try await engine.declare(queries, version: version, by: client)
            await client.wait { $0.isComplete }
        }
        @Sendable func prune() async throws {
            var retention = Retention()
            (retention.shadowAge, retention.logAge) = (.seconds(1), nil)
            let later = Fixtures.moment.advanced(by: .seconds(86_400))
            #expect(try await scenario.store.prune(retention, at: later).shadows == 2)
        }
        try await scenario.withEngine { engine in
            try await join(engine, 1)
            #expect(shown("all") == ["old", "older", "r0"])
            guard !isAway else { return }
            try await prune()
            try await engine.fence("f", of: 1)
        }
        if isAway {
            try await prune()
            client.leave()
            try await scenario.withEngine { try await join($0, 2) }
        }
        #expect(shown("all") == ["r0"])
        #expect(shown("top") == ["r0"])
        let state = client.state.withLock { $0 }
        #expect(state.resets == [])
        #expect(state.changes["changes"] ?? [] == [])
    }

    @Test("an `at` never divides the changes of a request")
    func keepsRequestsWhole() async throws {
        let scenario = try await LiveScenario()
        let sizes = [1, 300, 2, 255, 1, 900, 3]
        let client = ModelClient(1, as: .user(Fixtures.identifier("alice")))
        try await scenario.withEngine { engine in
            await engine.connect(1, at: client, of: Fixtures.container, as: client.reader)
            try await engine.declare(["all": LiveScenario.query(.changes)], version: 1, by: client)
            await client.wait { $0.isComplete }
            // Several requests are ready to be read while the first one is told.
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                for (number, size) in sizes.enumerated() {
                    tasks.addTask {
                        try await scenario.append(
                            (0..<size).map { index in
                                RecordChange(
                                    .create, of: LiveScenario.type,
                                    RecordID(
                                        recordName: Fixtures.identifier("r\(number)-\(index)")))
                            })
                    }
                }
                try await tasks.waitForAll()
            }
            try await engine.fence("f", of: 1)
        }
        let log = try await scenario.store.entries(after: .start, limit: 2000)
        let requests = log.indices.filter { !log[$0].continuesRequest }
        #expect(requests.count >= sizes.count)
        let ends = Set(requests + [log.count]).map { end in
            log[..<end].count { if case .change = $0.body { true } else { false } }
        }
        let told = client.state.withLock { $0.ends }
        #expect(told.last == sizes.reduce(0, +))
        #expect(Set(told).isSubset(of: Set(ends)), "\(told) of \(ends.sorted())")
    }

    @Test("a query gets the first of the changes read together, or the last of each record")
    func tellsOneOfMany() async throws {
        let scenario = try await LiveScenario()
        var once = LiveScenario.query(.changes, where: "price < 5")
        once.isOnce = true
        let steady = Self.coalescing(LiveScenario.query(.changes, where: "price < 5"))
        let queries = [
            "once": once, "steady": steady,
            "each": LiveScenario.query(.changes, where: "price < 6"),
        ]
        let client = ModelClient(1, as: .user(Fixtures.identifier("alice")))
        try await scenario.withEngine { engine in
            await engine.connect(1, at: client, of: Fixtures.container, as: client.reader)
            try await engine.declare(queries, version: 1, by: client)
            await client.wait { $0.isComplete }
            try await scenario.modify(
                (0..<4).map { number in
                    LiveScenario.edit(
                        .forceReplace, number == 2 ? "b" : "a", ["price": .integer(Int64(number))])
                })
            try await engine.fence("f", of: 1)
        }
        let changes = client.state.withLock { $0.changes }
        let each = changes["each"] ?? []
        #expect(each.count == 4)
        #expect(changes["once"] == Array(each.prefix(1)))
        // These are the last change of a and the only one of b, in the order of the log.
        //
        // There is one more if the engine read a's changes apart, which it does once for the query
        // that ended.
        #expect(changes["steady"]?.suffix(2) == each.suffix(2))
        #expect((2...3).contains(changes["steady"]?.count ?? 0))
    }

    @Test("an update of other fields is told only to queries of all fields")
    func tellsWhatIsAskedFor() async throws {
        let scenario = try await LiveScenario()
        var narrow = LiveScenario.query(.changes)
        narrow.desiredKeys = ["price"]
        let queries = ["narrow": narrow, "all": LiveScenario.query(.changes)]
        let client = ModelClient(1, as: .user(Fixtures.identifier("alice")))
        @Sendable func told(_ id: String) -> Int {
            client.state.withLock { $0.changes[id]?.count ?? 0 }
        }
        try await scenario.withEngine { engine in
            await engine.connect(1, at: client, of: Fixtures.container, as: client.reader)
            try await engine.declare(queries, version: 1, by: client)
            await client.wait { $0.isComplete }
            let steps: [(RecordFields, Int)] = [
                (["price": .integer(1), "name": .string("a")], 1),
                (["price": .integer(1), "name": .string("b")], 1),
                (["price": .integer(2), "name": .string("b")], 2),
                (["name": .string("b")], 3),
            ]
            for (index, (fields, count)) in steps.enumerated() {
                try await scenario.modify([LiveScenario.edit(.forceReplace, "r", fields)])
                try await engine.fence("f", of: 1)
                #expect(told("narrow") == count, "step \(index)")
                #expect(told("all") == index + 1)
            }
            try await scenario.modify([LiveScenario.edit(.forceDelete, "r")])
            try await engine.fence("f", of: 1)
            #expect(told("narrow") == 4)
        }
        // If a source lists the changed keys, they decide.
        var change = Fixtures.change(.update, "r", fields: ["price": .integer(5)])
        change.changedKeys = ["name"]
        #expect(!narrow.shows(change))
        change.changedKeys = ["price.amount"]
        #expect(narrow.shows(change))
        change.changedKeys = nil
        #expect(narrow.shows(change), "nothing is known of what it was before")
        change.before = RecordImage(["price": .integer(5)], completeness: .partial)
        #expect(narrow.shows(change))
        change.before = RecordImage(["price": .integer(5)])
        #expect(!narrow.shows(change))
        var known: [String: Bool] = [:]
        let first = narrow.shows(change, knowing: &known)
        let second = narrow.shows(change, knowing: &known)
        #expect(!first && !second && known == ["price": false])
        change.readersBefore = ["bob"]
        #expect(narrow.shows(change), "to whoever may read it only now it is new")
    }

    @Test("a large set reports how much of it was told")
    func saysHowFarItIs() async throws {
        let scenario = try await LiveScenario()
        try await scenario.modify([LiveScenario.edit(.forceReplace, "r0", ["price": .integer(1)])])
        let client = ModelClient(1, as: .user(Fixtures.identifier("alice")))
        try await scenario.withEngine { engine in
            await engine.connect(1, at: client, of: Fixtures.container, as: client.reader)
            let queries = Dictionary(
                (0..<8).map { ("q\($0)", LiveScenario.query(.result, where: "price < \($0)")) }
            ) { first, _ in first }
            try await engine.declare(queries, version: 1, by: client)
            await client.wait { $0.isComplete }
            #expect(client.state.withLock { $0.progress } == [0.25, 0.5, 0.75])
            try await engine.declare(["q0": LiveScenario.query(.result)], version: 2, by: client)
            await client.wait { $0.isComplete }
            #expect(client.state.withLock { $0.progress }.count == 3)
        }
    }

    @Test("each change that fits is told once, whether or not the client was away")
    func tellsEachChangeOnce() async throws {
        let scenario = try await LiveScenario()
        let query = ["c": LiveScenario.query(.changes, where: "price < 5")]
        let client = ModelClient(1, as: .user(Fixtures.identifier("alice")))
        var expected = 0
        for life in 1...3 {
            try await scenario.withEngine { engine in
                await engine.connect(1, at: client, of: Fixtures.container, as: client.reader)
                try await engine.declare(query, version: Int64(life), by: client)
                await client.wait { $0.isComplete }
                try await scenario.modify([
                    LiveScenario.edit(.create, "a\(life)", ["price": .integer(1)]),
                    LiveScenario.edit(.create, "b\(life)", ["price": .integer(9)]),
                ])
                try await engine.fence("f", of: 1)
            }
            expected += 1
            #expect(client.state.withLock { $0.changes["c"]?.count } == expected)
            try await scenario.modify([
                LiveScenario.edit(.create, "c\(life)", ["price": .integer(2)])
            ])
            expected += 1
            client.leave()
        }
    }

    @Test("a reader is shown and told only records that it may read")
    func keepsSecrets() async throws {
        let scenario = try await LiveScenario()
        try await scenario.modify([
            LiveScenario.edit(.create, "open", ["price": .integer(1)]),
            LiveScenario.edit(.create, "bobs", ["price": .integer(2)], readers: ["bob"]),
        ])
        let queries = [
            "all": LiveScenario.query(.result),
            "first": LiveScenario.query(
                .result, order: [LiveSortKey("price")], limit: .first(2)),
            "changes": LiveScenario.query(.changes),
        ]
        try await scenario.withEngine { engine in
            var clients: [ModelClient] = []
            for (number, user) in [(UInt64(1), "alice"), (2, "bob")] {
                let client = ModelClient(number, as: .user(Fixtures.identifier(user)))
                clients.append(client)
                await engine.connect(number, at: client, of: Fixtures.container, as: client.reader)
                try await engine.declare(queries, version: 1, by: client)
                await client.wait { $0.isComplete }
            }
            func names(_ client: ModelClient, _ id: String) -> [String] {
                client.state.withLock { $0.shown[id].map { $0.keys.sorted() } ?? [] }
            }
            #expect(names(clients[0], "all") == ["open"])
            #expect(names(clients[0], "first") == ["open"])
            #expect(names(clients[1], "all") == ["bobs", "open"])
            #expect(names(clients[1], "first") == ["bobs", "open"])
            try await scenario.modify([
                LiveScenario.edit(.create, "more", ["price": .integer(0)], readers: ["bob"])
            ])
            // A source hides a record from everybody but one user.
            var hidden = Fixtures.change(.update, "open", fields: ["price": .integer(3)])
            hidden.readers = ["bob"]
            try await scenario.append(hidden)
            for number in [UInt64(1), 2] { try await engine.fence("f", of: number) }
            #expect(names(clients[0], "all") == [])
            #expect(names(clients[0], "first") == [])
            #expect(names(clients[1], "all") == ["bobs", "more", "open"])
            #expect(names(clients[1], "first") == ["bobs", "more"])
            #expect(clients[0].state.withLock { $0.changes["changes"] ?? [] } == [])
            #expect(clients[1].state.withLock { $0.changes["changes"]?.count } == 2)
        }
    }

    @Test("a result that exceeds its bound ends, and others go on")
    func bounds() async throws {
        let scenario = try await LiveScenario()
        try await scenario.modify([LiveScenario.edit(.create, "a", ["price": .integer(9)])])
        var settings = LiveSettings()
        settings.recordsPerResult = 2
        try await scenario.withEngine(settings) { engine in
            let client = ModelClient(1, as: .user(Fixtures.identifier("alice")))
            await engine.connect(1, at: client, of: Fixtures.container, as: client.reader)
            let queries = [
                "all": LiveScenario.query(.result),
                "cheap": LiveScenario.query(.result, where: "price < 5"),
            ]
            try await engine.declare(queries, version: 1, by: client)
            await client.wait { $0.isComplete }
            for name in ["b", "c", "d"] {
                try await scenario.modify([
                    LiveScenario.edit(.create, name, ["price": .integer(9)])
                ])
            }
            try await scenario.modify([LiveScenario.edit(.create, "e", ["price": .integer(1)])])
            try await engine.fence("f", of: 1)
            #expect(client.state.withLock { $0.gone } == ["all"])
            #expect(client.state.withLock { $0.shown["cheap"]?.keys.sorted() } == ["e"])
        }
    }

    @Test("the memory counted for results is that of their members")
    func countsMemory() async throws {
        let scenario = try await LiveScenario()
        var bounded = LiveScenario.query(.result, order: [LiveSortKey("price")], limit: .first(2))
        bounded.start = LiveBound(.integer(3))
        let queries = ["all": LiveScenario.query(.result), "bounded": bounded]
        try await scenario.modify([LiveScenario.edit(.create, "r0", ["price": .integer(1)])])
        try await scenario.withEngine { engine in
            var generator = SeededGenerator(seed: 7)
            let client = ModelClient(1, as: .user(Fixtures.identifier("alice")))
            await engine.connect(1, at: client, of: Fixtures.container, as: client.reader)
            try await engine.declare(queries, version: 1, by: client)
            await client.wait { $0.isComplete }
            for _ in 0..<40 { try await scenario.modify(Self.edits(&generator)) }
            try await engine.fence("f", of: 1)
            let counted = await engine.counted
            #expect(counted.memory > 0)
            #expect(counted.memory == counted.members)
        }
    }
}
