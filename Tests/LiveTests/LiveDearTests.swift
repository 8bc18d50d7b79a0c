import RelayModel
import RelayTestKit
import SimulationKit
import Storage
import Synchronization
import Testing

@testable import Live

/// Conditions that take too many steps end, and cost no other user a change or a record.
@Suite struct LiveDearTests {
    /// Settings under which one dear condition on one heavy record exceeds the steps of a change.
    private static var settings: LiveSettings {
        var settings = LiveSettings()
        settings.stepsPerChange = 100_000
        return settings
    }

    private static let heavy: RecordFields = [
        "price": .integer(1), "a": .list((0..<100).map { .integer($0) }),
    ]

    private static func dear(
        _ kind: LiveQuery.Kind, _ number: Int = 0, owner: String = "bob"
    ) -> LiveQuery {
        LiveScenario.query(
            kind,
            where: "SUBQUERY(a, $x, SUBQUERY(a, $y, $x == $y).@count > 0).@count > \(number)",
            owner: owner)
    }

    /// Returns a query whose condition alone is far from the bound.
    private static func modest(
        _ kind: LiveQuery.Kind, _ number: Int, owner: String
    ) -> LiveQuery {
        LiveScenario.query(
            kind, where: "SUBQUERY(a, $x, $x > \(number)).@count > 0", owner: owner)
    }

    @Test(
        "a record too dear for one result is in the others that are read with it",
        arguments: [1, 1000])
    func reads(manyWaiting: Int) async throws {
        let scenario = try await LiveScenario()
        try await scenario.modify([
            LiveScenario.edit(.create, "heavy", Self.heavy),
            LiveScenario.edit(.create, "light", ["price": .integer(2)]),
        ])
        let client = ModelClient.of(1)
        let queries = [
            "dear": Self.dear(.result), "one": LiveScenario.query(.result, where: "price < 10"),
        ]
        var settings = Self.settings
        settings.manyWaiting = manyWaiting
        try await scenario.withEngine(settings) { engine in
            try await client.come(queries, to: engine)
            let state = client.state.withLock { $0 }
            #expect(state.gone == ["dear"])
            #expect(state.shown["one"]?.keys.sorted() == ["heavy", "light"])
        }
    }

    @Test("a dear result ends even if the store repeats the reading")
    func readsAnew() async throws {
        let scenario = try await LiveScenario()
        try await scenario.modify([LiveScenario.edit(.create, "heavy", Self.heavy)])
        let client = ModelClient.of(1)
        let queries = [
            "dear": Self.dear(.result), "one": LiveScenario.query(.result, where: "price < 10"),
        ]
        let shadow = RepeatedReads(store: scenario.store)
        try await scenario.withEngine(Self.settings, shadow: shadow) { engine in
            try await client.come(queries, to: engine)
            let state = client.state.withLock { $0 }
            #expect(state.gone == ["dear"])
            #expect(state.shown["one"]?.keys.sorted() == ["heavy"])
        }
    }

    @Test("many waiting results are read by the index of all results")
    func readsByAll() async throws {
        let scenario = try await LiveScenario()
        for (name, price) in [("low", 1), ("middle", 5), ("high", 9)] as [(String, Int64)] {
            try await scenario.modify([
                LiveScenario.edit(.create, name, ["price": .integer(price)])
            ])
        }
        var settings = LiveSettings()
        settings.manyWaiting = 1
        let first = ModelClient.of(1)
        let second = ModelClient.of(2, "bob")
        try await scenario.withEngine(settings) { engine in
            try await first.come(
                ["cheap": LiveScenario.query(.result, where: "price < 6")], to: engine)
            try await second.come(
                [
                    "dear": LiveScenario.query(.result, where: "price > 4"),
                    "two": LiveScenario.query(
                        .result, order: [LiveSortKey("price")], limit: .first(2)),
                ], to: engine)
            try await scenario.modify([
                LiveScenario.edit(.forceReplace, "low", ["price": .integer(7)])
            ])
            for number: UInt64 in 1...2 { try await engine.fence("f", of: number) }
            let cheap = first.state.withLock { $0.shown["cheap"] ?? [:] }
            #expect(cheap.keys.sorted() == ["middle"])
            let shown = second.state.withLock { $0.shown }
            #expect(shown["dear"]?.keys.sorted() == ["high", "low", "middle"])
            #expect(shown["two"]?.keys.sorted() == ["low", "middle"])
        }
    }

    @Test(
        "texts that take long to read do not delay other containers",
        arguments: [false, true])
    func readsNoLongTexts(isAlone: Bool) async throws {
        let scenario = try await LiveScenario()
        let place = ContainerKey(
            container: Fixtures.identifier("iCloud.com.example.Other"), environment: .development)
        try await scenario.make(place)
        var settings = LiveSettings()
        // The settings act as if the conditions had taken much time before.
        settings.mostJudgingOwed = .seconds(-1)
        let client = ModelClient.of(1)
        let other = ModelClient.of(2)
        let queries = ["named": LiveScenario.query(.result, where: "name == \"x\"")]
        let theirs = LiveQuery(.result, Fixtures.subscription("live", in: place), form: LiveForm())
        // These characters do not fold one by one, so folding the text is slow.
        let slow = String(repeating: "e\u{323}\u{301}", count: 8000)
        try await scenario.withEngine(settings) { engine in
            if !isAlone {
                await engine.connect(2, at: other, of: place, as: other.reader)
                let declared = DeclaredQuery(
                    id: "all", theirs, grant: .world, fingerprint: "all")
                let set = LiveSet(
                    version: 1, [declared], removing: nil, under: await engine.schema(of: place))
                try await engine.declare(set, by: 2)
            }
            try await client.come(queries, to: engine)
            try await scenario.modify([
                LiveScenario.edit(.create, "slow", ["name": .string(slow)])
            ])
            try await engine.fence("f", of: 1)
            #expect(client.state.withLock { $0.gone } == (isAlone ? [] : ["named"]))
        }
    }

    @Test func `a container may use half of the time, and waits for what it used beyond`() {
        var share = JudgingShare()
        share.note(.seconds(1), at: .seconds(1))
        #expect(share.owed(at: .seconds(1)) == .seconds(1))
        #expect(share.owed(at: .seconds(2)) == .milliseconds(500))
        share.note(.seconds(2), at: .seconds(3))
        #expect(share.owed(at: .seconds(3)) == .seconds(2))
        #expect(share.owed(at: .seconds(9)) == .zero)
        // The debt has a maximum, however long the container has used all of the time.
        for second in 10...600 { share.note(.seconds(1), at: .seconds(second)) }
        #expect(share.owed(at: .seconds(600)) == .seconds(10))
        #expect(share.owed(at: .seconds(620)) == .zero)
    }

    @Test func `a record that changes often does not restart the reading`() {
        var loading = LiveContainer.Loading(groups: [])
        let often = RecordID(recordName: Fixtures.identifier("often"))
        for position: UInt64 in 1...9 {
            loading.note(often, LogPosition(position), nil, most: 2)
        }
        loading.note(
            RecordID(recordName: Fixtures.identifier("once")), LogPosition(10), nil, most: 2)
        let isTooFar = loading.isTooFar
        loading.note(
            RecordID(recordName: Fixtures.identifier("third")), LogPosition(11), nil, most: 2)
        #expect(!isTooFar && loading.isTooFar)
        #expect(loading.aside[often]?.position == LogPosition(9))
    }

    @Test("a returning client gets a change that was too dear for another query")
    func resumes() async throws {
        let scenario = try await LiveScenario()
        try await scenario.modify([LiveScenario.edit(.create, "first", ["price": .integer(1)])])
        let client = ModelClient.of(1)
        let queries = [
            "dear": Self.dear(.changes), "new": LiveScenario.query(.changes),
            "all": LiveScenario.query(.result),
        ]
        try await scenario.withEngine { engine in
            try await client.come(queries, to: engine)
        }
        try await scenario.modify([LiveScenario.edit(.create, "heavy", Self.heavy)])
        try await scenario.modify([LiveScenario.edit(.create, "light", ["price": .integer(2)])])
        try await scenario.withEngine(Self.settings) { engine in
            try await client.come(queries, version: 2, to: engine)
            let state = client.state.withLock { $0 }
            #expect(state.gone == ["dear"])
            #expect(state.resets == [])
            #expect(state.changes["new"]?.count == 2)
            #expect(state.shown["all"]?.count == 3)
        }
    }

    @Test("a user's many dear conditions do not end the queries of others")
    func endsThoseOfOne() async throws {
        let scenario = try await LiveScenario()
        let greedy = ModelClient.of(2, "bob")
        let innocent = ModelClient.of(1)
        var settings = Self.settings
        settings.stepsPerChange = 200_000
        for kind in [LiveQuery.Kind.changes, .result] {
            let own = [
                "one": LiveScenario.query(kind, where: "price < 10"),
                "some": Self.modest(kind, 3, owner: "alice"),
            ]
            var dear: [String: LiveQuery] = [:]
            for number in 0..<6 { dear["dear \(number)"] = Self.dear(kind, number) }
            // None of these alone takes enough steps to be named.
            var cheap: [String: LiveQuery] = [:]
            for number in 4..<64 {
                cheap["cheap \(number)"] = Self.modest(kind, number, owner: "bob")
            }
            for (round, queries) in [dear, cheap].enumerated() {
                let name = "heavy-\(kind.rawValue)-\(round)"
                try await scenario.withEngine(settings) { engine in
                    try await innocent.come(own, to: engine)
                    try await greedy.come(queries, to: engine)
                    try await scenario.modify([
                        LiveScenario.edit(.create, name, Self.heavy)
                    ])
                    for number: UInt64 in 1...2 { try await engine.fence("f", of: number) }
                    #expect(greedy.state.withLock { $0.gone.count } == queries.count)
                    #expect(innocent.state.withLock { $0.gone } == [])
                }
                greedy.state.withLock { $0.gone = [] }
                let heavy = LiveScenario.edit(.forceDelete, name)
                try await scenario.modify([heavy])
            }
        }
        // Two changes came while the client was connected, and one while it was away.
        let state = innocent.state.withLock { $0 }
        #expect(state.changes["one"]?.count == 3 && state.changes["some"]?.count == 3)
    }

    @Test("a user's many dear conditions do not end the results that are read for others")
    func readsBesideMany() async throws {
        let scenario = try await LiveScenario()
        try await scenario.modify([LiveScenario.edit(.create, "heavy", Self.heavy)])
        var settings = Self.settings
        settings.stepsPerChange = 200_000
        // The results are read together.
        var queries = [
            "one": LiveScenario.query(.result, where: "price < 10"),
            "some": Self.modest(.result, 3, owner: "alice"),
        ]
        for number in 4..<64 {
            queries["cheap \(number)"] = Self.modest(.result, number, owner: "bob")
        }
        let all = queries
        let client = ModelClient.of(1)
        try await scenario.withEngine(settings) { engine in
            try await client.come(all, to: engine)
        }
        let state = client.state.withLock { $0 }
        #expect(state.gone.count == 60)
        #expect(!state.gone.contains("one") && !state.gone.contains("some"))
        #expect(state.shown["some"]?.keys.sorted() == ["heavy"])
    }

    @Test("a query that cannot be judged for the cost of others ends")
    func endsUnasked() async throws {
        let scenario = try await LiveScenario()
        let modest = ModelClient.of(1)
        let greedy = ModelClient.of(2, "bob")
        // These queries are of more users than one change may end queries of.
        var many: [String: LiveQuery] = [:]
        for number in 0..<6 {
            many["dear \(number)"] = Self.dear(.changes, number, owner: "user\(number)")
        }
        let queries = many
        let one = [
            "new": LiveScenario.query(.changes), "all": LiveScenario.query(.result),
        ]
        try await scenario.withEngine(Self.settings) { engine in
            try await modest.come(one, to: engine)
            try await greedy.come(queries, to: engine)
            try await scenario.modify([LiveScenario.edit(.create, "heavy", Self.heavy)])
            for number: UInt64 in 1...2 { try await engine.fence("f", of: number) }
            #expect(greedy.state.withLock { $0.gone.count } == queries.count)
            #expect(modest.state.withLock { $0.gone } == ["new"])
            // Conditions of queries of changes take nothing from results.
            #expect(modest.state.withLock { $0.shown["all"]?.keys.sorted() } == ["heavy"])
            await engine.disconnect(1)
            try await modest.come(one, version: 2, to: engine)
            try await scenario.modify([LiveScenario.edit(.create, "light")])
            try await engine.fence("g", of: 1)
            // The query resumes where it was last told, and misses nothing.
            #expect(modest.state.withLock { $0.changes["new"]?.count } == 2)
        }
    }
}
