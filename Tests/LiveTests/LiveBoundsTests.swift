import Matching
import RelayModel
import RelayTestKit
import SimulationKit
import Storage
import StorageSQL
import Synchronization
import Testing

@testable import Live

/// The cost of one client's queries does not affect others, and records that may no longer be seen
/// are shown to nobody.
@Suite struct LiveBoundsTests {
    private static func add(
        _ names: ClosedRange<Int>, _ scenario: LiveScenario, price: Int64 = 1
    ) async throws {
        for name in names {
            try await scenario.modify([
                LiveScenario.edit(.create, "r\(name)", ["price": .integer(price)])
            ])
        }
    }

    /// Connects two clients, creates records while both are away, and lets them return, the greedy
    /// one first.
    private static func comeBack(
        greedy: (client: ModelClient, queries: [String: LiveQuery]),
        modest: (client: ModelClient, queries: [String: LiveQuery]),
        after names: ClosedRange<Int>, _ scenario: LiveScenario, to engine: LiveEngine
    ) async throws {
        for (client, queries) in [modest, greedy] { try await client.come(queries, to: engine) }
        for (client, _) in [modest, greedy] { await engine.disconnect(client.number) }
        try await add(names, scenario)
        try await engine.reachHead()
        for (client, queries) in [greedy, modest] {
            try await client.come(queries, version: 2, to: engine)
        }
    }

    @Test func `a look-up in a long list of readers agrees with a search`() {
        let many = (0..<20).map { "user\($0)" } + ["zo\u{e9}"]
        let cases: [(readers: [String]?, before: [String]?)] = [
            (many, nil), (many, ["alice"]), (nil, many), (many + ["world"], many), ([], many),
        ]
        for (readers, before) in cases {
            var told = LiveGroupFrame(1, LiveFrame(["type": "items"]))
            told.readers = readers
            told.readersBefore = before
            told.entered = LiveFrame(["type": "entered"])
            told.left = LiveFrame(["type": "left"])
            for name in ["user7", "zo\u{e9}", "zoe\u{301}", "bob", "alice"] {
                let reader = LiveReader.user(Fixtures.identifier(name))
                let looked = LiveAudience(told, of: 100).frame(for: reader, on: nil)
                #expect(looked === told.frame(for: reader, on: nil), "\(name)")
            }
        }
    }

    @Test func `a change that everybody may read is told to all at once`() {
        var told = LiveGroupFrame(1, LiveFrame(["type": "items"]))
        told.narrow(to: ["bob", "world"], before: nil)
        #expect(told.isForAll)
        told.narrow(to: ["world"], before: ["bob"])
        #expect(told.readers == nil && told.readersBefore == ["bob"])
        told.narrow(to: ["bob"], before: ["world"])
        #expect(told.readers == ["bob"] && told.readersBefore == nil)
        told.narrow(to: [], before: [])
        #expect(told.readers == [] && told.readersBefore == [])
    }

    /// Bounds under which ten changes are too many for a client that returns.
    static let bounds: [@Sendable (inout LiveSettings) -> Void] = [
        { $0.entriesPerResume = 9 }, { $0.entriesReadPerResume = 9 }, { $0.bytesPerResume = 999 },
        { $0.toldPerResume = 9 }, { $0.bytesToldPerClient = 199 },
    ]

    @Test(
        "a client that missed too much begins anew, and is shown everything",
        arguments: bounds.indices)
    func tooFar(bound: Int) async throws {
        let scenario = try await LiveScenario()
        try await Self.add(0...0, scenario)
        var settings = LiveSettings()
        Self.bounds[bound](&settings)
        let queries = ["all": LiveScenario.query(.result), "new": LiveScenario.query(.changes)]
        let client = ModelClient.of(1)
        try await scenario.withEngine(settings) { engine in
            try await client.come(queries, to: engine)
            await engine.disconnect(1)
            try await Self.add(1...10, scenario)
            try await engine.reachHead()
            try await client.come(queries, version: 2, to: engine)
            let state = client.state.withLock { $0 }
            #expect(Set(state.resets) == ["tooFar"])
            #expect(state.shown["all"]?.count == 11)
        }
    }

    @Test("changes of types that a returning client does not show are not too many for it")
    func countsWhatIsShown() async throws {
        let scenario = try await LiveScenario()
        try await Self.add(0...0, scenario)
        var settings = LiveSettings()
        settings.entriesPerResume = 9
        let queries = ["all": LiveScenario.query(.result), "new": LiveScenario.query(.changes)]
        let client = ModelClient.of(1)
        try await scenario.withEngine(settings) { engine in
            try await client.come(queries, to: engine)
            await engine.disconnect(1)
            try await scenario.append(
                (1...10).map { number -> RecordChange in
                    var change = RecordChange(
                        .create, of: Fixtures.identifier("Other"),
                        RecordID(recordName: Fixtures.identifier("other-\(number)")))
                    change.after = RecordImage(["price": .integer(1)])
                    return change
                })
            try await Self.add(1...9, scenario)
            try await engine.reachHead()
            try await client.come(queries, version: 2, to: engine)
            let state = client.state.withLock { $0 }
            #expect(state.resets == [] && state.shown["all"]?.count == 10)
        }
    }

    @Test("the user who needs most of what is told begins anew, and others go on")
    func sharesTelling() async throws {
        let scenario = try await LiveScenario()
        try await Self.add(0...0, scenario)
        var settings = LiveSettings()
        settings.toldPerResume = 30
        let modest = ModelClient.of(1, "alice")
        let greedy = ModelClient.of(2, "bob")
        let one = ["new": LiveScenario.query(.changes)]
        let many = Dictionary(
            uniqueKeysWithValues: (2...9).map { price in
                (
                    "new\(price)",
                    LiveScenario.query(.changes, where: "price < \(price)", owner: "bob")
                )
            })
        try await scenario.withEngine(settings) { engine in
            try await Self.comeBack(
                greedy: (greedy, many), modest: (modest, one), after: 1...10, scenario, to: engine)
            #expect(modest.state.withLock { $0.resets } == [])
            #expect(modest.state.withLock { $0.changes["new"]?.count } == 10)
            #expect(greedy.state.withLock { $0.resets.count } == many.count)
        }
    }

    @Test(
        "one change is told to a user in a bounded number of forms",
        arguments: [
            LiveQuery.Kind.changes, .result,
        ])
    func sharesWriting(kind: LiveQuery.Kind) async throws {
        let scenario = try await LiveScenario()
        try await Self.add(0...0, scenario)
        var settings = LiveSettings()
        settings.bytesPerChange = 1
        let modest = ModelClient.of(1, "alice")
        let greedy = ModelClient.of(2, "bob")
        // Bob was there first, so the common query counts as his too.
        let one = ["new": LiveScenario.query(kind, owner: "bob")]
        let many = Dictionary(
            uniqueKeysWithValues: (2...9).map { price in
                (
                    "new\(price)",
                    LiveScenario.query(kind, where: "price < \(price)", owner: "bob")
                )
            })
        try await scenario.withEngine(settings) { engine in
            try await greedy.come(many.merging(one) { mine, _ in mine }, to: engine)
            try await modest.come(one, to: engine)
            try await Self.add(1...1, scenario)
            try await engine.reachHead()
            // One form fits, and perhaps another one that counts for Alice.
            let gone = greedy.state.withLock { Set($0.gone) }
            #expect((many.count - 1...many.count).contains(gone.count), "\(gone)")
            #expect(!gone.contains("new"))
            #expect(modest.state.withLock { $0.gone } == [])
        }
    }

    /// Returns coalescing results of different forms, which tell only the last change of a record.
    private static func coalescing(
        _ prices: ClosedRange<Int>, for owner: String
    ) -> [String: LiveQuery] {
        prices.reduce(into: [:]) { queries, price in
            var query = LiveScenario.query(.result, where: "price < \(price)", owner: owner)
            query.coalesces = true
            queries["new\(price)"] = query
        }
    }

    @Test("coalesced changes are told to a user in a bounded number of forms")
    func sharesCoalescing() async throws {
        let scenario = try await LiveScenario()
        try await Self.add(0...0, scenario)
        var settings = LiveSettings()
        settings.bytesPerChange = 1
        let modest = ModelClient.of(1, "alice")
        let greedy = ModelClient.of(2, "bob")
        try await scenario.withEngine(settings) { engine in
            try await greedy.come(Self.coalescing(2...9, for: "bob"), to: engine)
            try await modest.come(Self.coalescing(2...2, for: "alice"), to: engine)
            try await Self.add(1...1, scenario)
            try await engine.reachHead()
            // One form fits.
            let gone = greedy.state.withLock { Set($0.gone) }
            #expect(gone.count == 7, "\(gone)")
            #expect(modest.state.withLock { $0.gone } == [])
        }
    }

    /// Returns queries of changes and of results, each of another form.
    private static func forms(of count: Int, for owner: String) -> [String: LiveQuery] {
        let prices = 2..<(2 + count)
        return [LiveQuery.Kind.changes, .result].reduce(into: [:]) { queries, kind in
            for price in prices {
                queries["\(kind) \(price)"] = LiveScenario.query(
                    kind, where: "price < \(price)", owner: owner)
            }
        }
    }

    @Test("a returning client with too many forms begins anew, and others go on")
    func boundsForms() async throws {
        let scenario = try await LiveScenario()
        try await Self.add(0...0, scenario)
        var settings = LiveSettings()
        // There is room for the changes, and for a few forms of them.
        settings.bytesPerResume = 4000
        let modest = ModelClient.of(1, "alice")
        let greedy = ModelClient.of(2, "bob")
        let one = ["new": LiveScenario.query(.changes)]
        let many = Self.forms(of: 40, for: "bob")
        try await scenario.withEngine(settings) { engine in
            try await Self.comeBack(
                greedy: (greedy, many), modest: (modest, one), after: 1...3, scenario, to: engine)
            #expect(modest.state.withLock { $0.resets } == [])
            #expect(modest.state.withLock { $0.changes["new"]?.count } == 3)
            let resets = greedy.state.withLock { $0.resets }
            #expect((1..<many.count).contains(resets.count) && Set(resets) == ["tooFar"])
            // A result that begins anew is shown whole.
            let shown = greedy.state.withLock { $0.shown }
            #expect(many.keys.allSatisfy { $0.hasPrefix("changes") || shown[$0]?.count == 4 })
            await engine.disconnect(2)
            try await Self.add(4...4, scenario)
            try await engine.reachHead()
            greedy.state.withLock { $0.resets = [] }
            // Once everything was told, there is as much room again.
            try await greedy.come(
                many.filter { $0.key.hasSuffix(" 3") }, version: 3, to: engine)
            #expect(greedy.state.withLock { $0.resets } == [])
        }
    }

    @Test("a client that is told much in several turns gets each change once")
    func tellsInTurns() async throws {
        let scenario = try await LiveScenario()
        try await Self.add(0...0, scenario)
        let queries = Self.forms(of: 4, for: "alice")
        let client = ModelClient.of(1)
        try await scenario.withEngine { engine in
            try await client.come(queries, to: engine)
            await engine.disconnect(1)
            // The records are more than one turn writes.
            let text = String(repeating: "a", count: 900_000)
            for name in ["long", "longer"] {
                try await scenario.modify([
                    LiveScenario.edit(
                        .create, name, ["price": .integer(1), "text": .string(text)])
                ])
            }
            try await engine.reachHead()
            try await client.come(queries, version: 2, to: engine)
            let state = client.state.withLock { $0 }
            #expect(state.resets == [])
            for name in queries.keys {
                let count =
                    name.hasPrefix("changes")
                    ? state.changes[name]?.count : state.shown[name]?.count
                #expect(count == (name.hasPrefix("changes") ? 2 : 3), "\(name)")
            }
        }
    }

    @Test("a client that leaves while the log is read for it leaves nothing behind")
    func goesWhileResuming() async throws {
        let scenario = try await LiveScenario()
        try await Self.add(0...0, scenario)
        let queries = ["all": LiveScenario.query(.result), "new": LiveScenario.query(.changes)]
        let client = ModelClient.of(1)
        let other = ModelClient.of(2)
        try await scenario.withEngine { engine in
            try await client.come(queries, to: engine)
            try await other.come(queries, to: engine)
            await engine.disconnect(1)
            await engine.disconnect(2)
            try await Self.add(1...3, scenario)
            try await engine.reachHead()
            await engine.connect(1, at: client, of: Fixtures.container, as: client.reader)
            try await engine.declare(queries, version: 2, by: client)
            await engine.disconnect(1)
            try await other.come(queries, version: 2, to: engine)
            #expect(other.state.withLock { $0.changes["new"]?.count } == 3)
            let waiting = await engine.returning
            #expect(waiting.values.allSatisfy { $0.isEmpty })
        }
    }

    @Test("after a schema change no client stays in results of the old schema")
    func forgetsBySchema() async throws {
        let scenario = try await LiveScenario()
        try await Self.add(0...0, scenario)
        let queries = ["all": LiveScenario.query(.result), "new": LiveScenario.query(.changes)]
        let client = ModelClient.of(1)
        try await scenario.withEngine { engine in
            try await client.come(queries, to: engine)
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

    @Test("a query that ended without the client's knowledge is declared again")
    func declaresUnheardEnds() async throws {
        let scenario = try await LiveScenario()
        try await Self.add(0...0, scenario)
        var settings = LiveSettings()
        settings.recordsPerResult = 1
        var once = LiveScenario.query(.result, where: "price < 0")
        once.isOnce = true
        let queries = ["all": LiveScenario.query(.result), "once": once]
        let client = ModelClient.of(1)
        try await scenario.withEngine(settings) { engine in
            func names(_ place: LogPosition?, _ version: Int64) async -> [String] {
                let set = await engine.declared(by: 1, after: place, told: version)
                return (set?.queries ?? []).map(\.id).sorted()
            }
            try await client.come(queries, to: engine)
            let before = try await scenario.store.head()
            #expect(await names(before, 1) == ["all"])
            // A client that was told nothing of this version has not heard the one change of its
            // once query.
            #expect(await names(before, 0) == ["all", "once"])
            #expect(await names(nil, 0) == ["all", "once"])
            // The additional record exceeds the bound, so the result ends.
            try await Self.add(1...1, scenario)
            try await engine.reachHead()
            #expect(await names(before, 1) == ["all"])
            let after = try await scenario.store.head()
            #expect(await names(after, 1) == [])
        }
    }

    @Test("a set declared under one schema is refused under another")
    func forgetsSetsBySchema() async throws {
        let scenario = try await LiveScenario()
        try await Self.add(0...0, scenario)
        let (client, other) = (ModelClient.of(1), ModelClient.of(2))
        try await scenario.withEngine { engine in
            try await client.come(["all": LiveScenario.query(.result)], to: engine)
            let early = try #require(await engine.declared(by: 1, after: nil))
            await engine.noteSchemaChange(of: Fixtures.container)
            let late = try #require(await engine.declared(by: 1, after: nil))
            await engine.connect(2, at: other, of: Fixtures.container, as: other.reader)
            for set in [early, late] {
                await #expect(throws: APIError.self) { try await engine.declare(set, by: 2) }
            }
            // An edit of a set whose queries show nothing any more is refused as well.
            let now = await engine.schema(of: Fixtures.container)
            let edit = LiveSet(version: 2, [], removing: [], under: now)
            await #expect(throws: APIError.self) { try await engine.declare(edit, by: 1) }
            #expect(await engine.counts.groups == 0)
        }
    }

    @Test("a once query that ends does not affect the client's other query")
    func endsOneOfTwo() async throws {
        let scenario = try await LiveScenario()
        try await Self.add(0...0, scenario)
        var once = LiveScenario.query(.changes)
        once.isOnce = true
        let queries = ["once": once, "new": LiveScenario.query(.changes)]
        let client = ModelClient.of(1)
        try await scenario.withEngine { engine in
            try await client.come(queries, to: engine)
            try await Self.add(1...1, scenario)
            try await engine.fence("f", of: 1)
            try await Self.add(2...3, scenario)
            try await engine.fence("g", of: 1)
            #expect(client.state.withLock { $0.changes["new"]?.count } == 3)
        }
    }

    @Test("a change is judged again without conditions that take too many steps")
    func asksAgain() async throws {
        let scenario = try await LiveScenario()
        let modest = ModelClient.of(1, "alice")
        let greedy = ModelClient.of(2, "bob")
        let one = ["new": LiveScenario.query(.changes)]
        let dear = ["dear": LiveScenario.query(.changes, where: "price < 9", owner: "bob")]
        try await scenario.withEngine { engine in
            try await modest.come(one, to: engine)
            try await greedy.come(dear, to: engine)
            let asked = await engine.ask(endingThoseOf: "bob")
            #expect(asked == 2)
            for number: UInt64 in 1...2 { try await engine.fence("f", of: number) }
            #expect(greedy.state.withLock { $0.gone } == ["dear"])
            #expect(modest.state.withLock { $0.gone } == [])
        }
    }

    @Test("a once query gets one change, and no request is divided for it")
    func dividesNothing() async throws {
        let scenario = try await LiveScenario()
        var once = LiveScenario.query(.changes, owner: "bob")
        once.isOnce = true
        let hasty = ModelClient.of(2, "bob")
        let patient = ModelClient.of(1)
        let (first, all) = (["once": once], ["new": LiveScenario.query(.changes)])
        let changes = (1...3).map { number in
            var change = RecordChange(
                .create, of: LiveScenario.type,
                RecordID(recordName: Fixtures.identifier("r\(number)")))
            change.after = RecordImage(["price": .integer(Int64(number))])
            return change
        }
        try await scenario.withEngine { engine in
            try await hasty.come(first, to: engine)
            try await patient.come(all, to: engine)
            try await scenario.append(changes)
            try await engine.reachHead()
            #expect(hasty.state.withLock { $0.changes["once"]?.count } == 1)
            #expect(patient.state.withLock { $0.changes["new"]?.count } == 3)
            // There are no changes when the set was told, and then all of the request at once.
            #expect(patient.state.withLock { $0.ends } == [0, 3])
        }
    }

    @Test("a coalescing query divides no request, and gets the last change")
    func dividesNothingTogether() async throws {
        let scenario = try await LiveScenario()
        var last = LiveScenario.query(.changes, owner: "carol")
        last.coalesces = true
        var once = last
        once.isOnce = true
        let hasty = ModelClient.of(2, "bob")
        let together = ModelClient.of(3, "carol")
        let patient = ModelClient.of(1)
        let sets = (["once": once], ["last": last], ["new": LiveScenario.query(.changes)])
        let changes = (1...3).map { number in
            var change = RecordChange(
                number == 1 ? .create : .update, of: LiveScenario.type,
                RecordID(recordName: Fixtures.identifier("r")))
            change.after = RecordImage(["price": .integer(Int64(number))])
            return change
        }
        try await scenario.withEngine { engine in
            try await hasty.come(sets.0, to: engine)
            try await together.come(sets.1, to: engine)
            try await patient.come(sets.2, to: engine)
            try await scenario.append(changes)
            try await engine.reachHead()
            let all = patient.state.withLock { $0.changes["new"] ?? [] }
            #expect(all.count == 3)
            #expect(patient.state.withLock { $0.ends } == [0, 3])
            #expect(hasty.state.withLock { $0.changes["once"] } == Array(all.prefix(1)))
            #expect(together.state.withLock { $0.changes["last"] } == Array(all.suffix(1)))
        }
    }
}

private extension LiveEngine {
    /// Judges a change for which the conditions of one user take too many steps; returns how often
    /// it was judged.
    func ask(endingThoseOf owner: String) -> Int? {
        guard let container = containers[Fixtures.container] else { return nil }
        var asked = 0
        return asking(in: container) { () throws(DearChange) -> Int in
            asked += 1
            let dear = container.groups.values.filter {
                $0.query.subscription.owner.rawValue == owner
            }
            guard dear.isEmpty else {
                let costs = dear.map { DearChange.Cost(serial: UInt64($0.number), steps: 9) }
                throw DearChange(steps: 9, costs: costs)
            }
            return asked
        } of: {
            Array(container.groups.values)
        }
    }
}
