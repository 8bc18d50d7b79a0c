import RelayModel
import RelayTestKit
import SimulationKit
import Storage
import Synchronization
import Testing

@testable import Live

/// Results that belong to one user each are found by a representative, and by the readers of a
/// record.
@Suite struct OwnResultsTests {
    private static let order = [LiveSortKey("price")]

    private static func user(_ name: String) -> LiveReader { .user(Fixtures.identifier(name)) }

    private static func group(
        _ number: UInt32, of reader: LiveReader?, where condition: String = "TRUEPREDICATE"
    ) -> LiveGroup {
        let query = LiveScenario.query(.result, where: condition, order: order)
        return LiveGroup(
            number, query, identity: query.identity(of: reader), grant: .creator, reader: reader)
    }

    @Test func `one filed result finds all equal ones`() {
        var own = OwnResults()
        let groups = [
            Self.group(1, of: Self.user("alice")), Self.group(2, of: Self.user("bob")),
            Self.group(3, of: Self.user("alice"), where: "price < 3"),
            Self.group(4, of: .server), Self.group(5, of: nil, where: "price < 4"),
        ]
        let areFiled = groups.map { own.insert($0) }
        #expect(areFiled == [true, false, true, false, true])
        #expect(own.results([1, 3, 5], readableBy: ["bob"]) == [2, 4, 5])
        #expect(own.results([1, 3, 5], readableBy: ["alice", "alice"]) == [1, 3, 4, 5])
        #expect(own.results([1, 3], readableBy: ["carol"]) == [4])
        #expect(own.results([1, 3, 5], readableBy: nil) == [1, 2, 3, 4, 5])
        #expect(own.results([1], readableBy: [RecordChange.everybody]) == [1, 2, 4])
        #expect(own.all(foundBy: 1) == [2, 4, 1])
        #expect(own.all(foundBy: 5) == [5])
    }

    @Test func `two spellings of one letter are two readers`() {
        var own = OwnResults()
        _ = own.insert(Self.group(1, of: Self.user("zo\u{e9}")))
        _ = own.insert(Self.group(2, of: Self.user("zoe\u{301}")))
        #expect(own.results([1], readableBy: ["zoe\u{301}"]) == [2])
    }

    @Test func `whether a record has a reader among the results of a query`() {
        var own = OwnResults()
        let names = ["alice", "bob", "zoe\u{301}"]
        for (index, name) in names.enumerated() {
            _ = own.insert(Self.group(UInt32(index + 1), of: Self.user(name)))
        }
        let many = (0..<100).map { "user\($0)" }
        let lists = [[], ["bob"], ["carol"], ["zo\u{e9}"], ["zoe\u{301}"], many, many + ["alice"]]
        for readers in lists {
            let isFound = own.hasReader(among: ReaderNames(readers), of: 1)
            #expect(isFound == !own.results([1], readableBy: readers).isEmpty, "\(readers)")
            let listeners = LiveListeners(names.map(Self.user))
            #expect(listeners.include(anyOf: ReaderNames(readers)) == isFound, "\(readers)")
        }
        #expect(own.hasReader(among: ReaderNames([RecordChange.everybody]), of: 1))
        #expect(LiveListeners([.server]).include(anyOf: ReaderNames([])))
        _ = own.insert(Self.group(4, of: .server))
        #expect(own.hasReader(among: ReaderNames([]), of: 1))
    }

    @Test func `another result is filed when the filed one is removed`() {
        var own = OwnResults()
        let names = ["alice", "bob", "carol"]
        let groups = names.enumerated().map { index, name in
            Self.group(UInt32(index + 1), of: Self.user(name))
        }
        for group in groups { _ = own.insert(group) }
        let afterBob = own.remove(groups[1])
        #expect(afterBob == nil)
        let afterAlice = own.remove(groups[0])
        #expect(afterAlice == 3)
        #expect(own.isFiled(3) && !own.isFiled(1))
        #expect(own.results([3], readableBy: ["carol", "alice"]) == [3])
        let isFiledAgain = own.insert(groups[1])
        #expect(!isFiledAgain)
        #expect(own.results([3], readableBy: ["bob"]) == [2])
        let afterCarol = own.remove(groups[2])
        #expect(afterCarol == 2)
        let afterAll = own.remove(groups[1])
        #expect(afterAll == nil && own.isEmpty)
    }

    private static func come(
        _ client: ModelClient, _ version: Int64, to engine: LiveEngine
    ) async throws {
        client.leave()
        client.state.withLock { $0.version = version }
        await engine.connect(client.number, at: client, of: Fixtures.container, as: client.reader)
        let query = LiveScenario.query(.result, order: order)
        let declared = DeclaredQuery(id: "own", query, grant: .creator, fingerprint: "")
        let schema = await engine.schema(of: Fixtures.container)
        try await engine.declare(
            LiveSet(version: version, [declared], removing: nil, under: schema), by: client.number)
        await client.wait { $0.isComplete }
    }

    private static func shown(_ client: ModelClient) -> [String] {
        client.state.withLock { $0.shown["own"]?.keys.sorted() ?? [] }
    }

    @Test("users see their own records, also after the filed result was removed")
    func ownRecords() async throws {
        let scenario = try await LiveScenario()
        let names = ["alice", "bob", "carol"]
        for name in names {
            try await scenario.modify([LiveScenario.edit(.create, "\(name)1")], by: name)
        }
        let clients = names.enumerated().map { index, name in
            ModelClient(UInt64(index + 1), as: Self.user(name))
        }
        try await scenario.withEngine { engine in
            for client in clients { try await Self.come(client, 1, to: engine) }
            #expect(clients.map(Self.shown) == [["alice1"], ["bob1"], ["carol1"]])
            await engine.disconnect(1)
            for _ in 0..<2 { await engine.lookAfterGroups() }
            for name in names {
                try await scenario.modify([LiveScenario.edit(.create, "\(name)2")], by: name)
            }
            for number: UInt64 in 2...3 { try await engine.fence("f", of: number) }
            let others = clients.dropFirst().map(Self.shown)
            #expect(others == [["bob1", "bob2"], ["carol1", "carol2"]])
            try await Self.come(clients[0], 2, to: engine)
            #expect(Self.shown(clients[0]) == ["alice1", "alice2"])
            let filed = await engine.resultsFiled
            #expect(filed == 1)
        }
    }
}

private extension LiveEngine {
    /// The number of results whose conditions the index of the container holds.
    var resultsFiled: Int? {
        containers[Fixtures.container].map { container in
            container.groups.values.count { container.own.isFiled($0.number) }
        }
    }
}
