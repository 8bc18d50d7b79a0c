import RelayModel
import RelayTestKit
import SimulationKit
import Storage
import Synchronization
import Testing

@testable import Live

/// What a condition costs on a record tells nothing to those who may not read the record.
@Suite struct LiveHiddenTests {
    private static let hidden = LiveScenario.edit(
        .create, "hidden",
        ["price": .integer(1), "a": .list((0..<100).map { .integer($0) })], readers: ["bob"])

    /// Returns a query that takes many steps on a record if its price is one.
    private static func dear(_ kind: LiveQuery.Kind) -> LiveQuery {
        LiveScenario.query(
            kind,
            where: "price == 1 AND SUBQUERY(a, $x, SUBQUERY(a, $y, $x == $y).@count > 0).@count > 0"
        )
    }

    @Test(
        "a query does not end because of a record that its user may not read",
        arguments: [false, true], [1, 1000])
    func goesOn(isThereBefore: Bool, manyWaiting: Int) async throws {
        let scenario = try await LiveScenario()
        if isThereBefore { try await scenario.modify([Self.hidden]) }
        var settings = LiveSettings()
        settings.stepsPerChange = 100_000
        settings.manyWaiting = manyWaiting
        let stranger = ModelClient.of(1)
        let reader = ModelClient.of(2, "bob")
        let queries = ["result": Self.dear(.result), "changes": Self.dear(.changes)]
        try await scenario.withEngine(settings) { engine in
            try await stranger.come(queries, to: engine)
            if !isThereBefore { try await scenario.modify([Self.hidden]) }
            try await engine.fence("f", of: 1)
            #expect(stranger.state.withLock { $0.gone } == [])
            // The same query ends for the user who may read the record.
            try await reader.come(["result": Self.dear(.result)], to: engine)
            #expect(reader.state.withLock { $0.gone } == ["result"])
            try await engine.fence("g", of: 1)
            #expect(stranger.state.withLock { $0.gone } == [])
        }
    }

    /// The conditions of a user take too long together, and none of them does alone.
    private static func modest(_ numbers: Range<Int>, of owner: String) -> [String: LiveQuery] {
        var queries: [String: LiveQuery] = [:]
        for number in numbers {
            for kind in [LiveQuery.Kind.result, .changes] {
                queries["\(kind.rawValue) \(number)"] = LiveScenario.query(
                    kind, where: "SUBQUERY(a, $x, $x > \(number)).@count > 0", owner: owner)
            }
        }
        return queries
    }

    @Test("the user with the most queries keeps them where others' take long on a hidden record")
    func keepsTheMost() async throws {
        let scenario = try await LiveScenario()
        var settings = LiveSettings()
        settings.stepsPerChange = 200_000
        let stranger = ModelClient.of(1)
        let reader = ModelClient.of(2, "bob")
        try await scenario.withEngine(settings) { engine in
            try await stranger.come(Self.modest(0..<90, of: "alice"), to: engine)
            try await reader.come(Self.modest(100..<160, of: "bob"), to: engine)
            try await scenario.modify([Self.hidden])
            for number: UInt64 in 1...2 { try await engine.fence("f", of: number) }
            #expect(stranger.state.withLock { $0.gone } == [])
            #expect(reader.state.withLock { $0.gone.count } == 120)
        }
    }

    @Test("a user to whom a record is opened is told of it, whatever the condition costs")
    func tellsOfWhatIsOpened() async throws {
        let scenario = try await LiveScenario()
        try await scenario.modify([Self.hidden])
        let stranger = ModelClient.of(1)
        try await scenario.withEngine { engine in
            try await stranger.come(["changes": Self.dear(.changes)], to: engine)
            var change = RecordChange(
                .update, of: LiveScenario.type,
                RecordID(recordName: Fixtures.identifier("hidden")))
            change.after = RecordImage(Self.hidden.fields)
            change.readers = [RecordChange.everybody]
            try await scenario.append(change)
            try await engine.fence("f", of: 1)
            #expect(stranger.state.withLock { $0.changes["changes"]?.count } == 1)
        }
    }

    @Test(
        "records that a user may not read do not count towards an ordered result of theirs",
        arguments: [0, 2, 9])
    func countsWhatIsReadable(thereBefore: Int) async throws {
        let scenario = try await LiveScenario()
        let edits = (1...9).map { number in
            LiveScenario.edit(
                .create, "hidden\(number)", ["price": .integer(1)], readers: ["bob"])
        }
        if thereBefore > 0 { try await scenario.modify(Array(edits.prefix(thereBefore))) }
        let own = (1...3).map { LiveScenario.edit(.create, "r\($0)", ["price": .integer(1)]) }
        try await scenario.modify(own)
        var settings = LiveSettings()
        settings.recordsPerResult = 3
        let queries = [
            "sorted": LiveScenario.query(.result, order: [LiveSortKey("price")])
        ]
        let stranger = ModelClient.of(1)
        let reader = ModelClient.of(2, "bob")
        try await scenario.withEngine(settings) { engine in
            for client in [stranger, reader] { try await client.come(queries, to: engine) }
            for edit in edits.dropFirst(thereBefore) { try await scenario.modify([edit]) }
            for number: UInt64 in 1...2 { try await engine.fence("f", of: number) }
            await stranger.wait { $0.isComplete && $0.shown["sorted"]?.count == 3 }
            #expect(stranger.state.withLock { $0.gone } == [])
            #expect(reader.state.withLock { $0.gone } == ["sorted"])
        }
    }

    @Test(
        "a user who asks for the same later is shown what only they may read",
        arguments: [false, true])
    func showsWhoMayRead(isThereBefore: Bool) async throws {
        let scenario = try await LiveScenario()
        if isThereBefore { try await scenario.modify([Self.hidden]) }
        let stranger = ModelClient.of(1)
        let reader = ModelClient.of(2, "bob")
        let queries = ["all": Self.dear(.result)]
        try await scenario.withEngine { engine in
            try await stranger.come(queries, to: engine)
            if !isThereBefore { try await scenario.modify([Self.hidden]) }
            try await engine.fence("f", of: 1)
            try await reader.come(queries, to: engine)
            #expect(stranger.state.withLock { $0.shown["all"] ?? [:] }.isEmpty)
            #expect(reader.state.withLock { $0.shown["all"]?.keys.sorted() } == ["hidden"])
        }
    }
}
