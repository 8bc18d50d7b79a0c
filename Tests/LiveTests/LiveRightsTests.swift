import RelayModel
import RelayTestKit
import SimulationKit
import Storage
import StorageSQL
import Synchronization
import Testing

@testable import Live

/// Each client is shown what it may read, also if this changes while it looks or is away.
@Suite struct LiveRightsTests {
    private static let price = [LiveSortKey("price")]
    private static let queries: [String: LiveQuery] = [
        "all": LiveScenario.query(.result),
        "cheap": LiveScenario.query(.result, where: "price < 5"),
        "sorted": LiveScenario.query(.result, where: "price < 8", order: price),
        "first": LiveScenario.query(.result, where: "price < 8", order: price, limit: .first(2)),
        "last": LiveScenario.query(.result, order: price, limit: .last(3)),
    ]

    private static func fits(_ id: String) -> (RecordFields) -> Bool {
        let most: Int64 =
            switch id {
            case "cheap": 5
            case "sorted", "first": 8
            default: .max
            }
        return { fields in
            guard case .integer(let price)? = fields["price"] else { return false }
            return price < most
        }
    }

    /// An action on one record.
    private enum Act: Sendable {
        /// A client writes or deletes a record; its readers are set once, at the creation.
        case edit(RecordEdit)
        /// A source reports a change, which may have other readers.
        case change(RecordChange)
    }

    private static func acts(_ count: Int, _ generator: inout SeededGenerator) -> [Act] {
        let lists: [[String]?] = [
            nil, nil, nil, ["alice"], ["bob"], ["bob", "alice"], [], ["bob", "world"],
        ]
        return (0..<count).map { _ in
            let name = "r\(Int.random(in: 0..<6, using: &generator))"
            let fields: RecordFields = ["price": .integer(.random(in: 0..<10, using: &generator))]
            let readers = lists[Int.random(in: 0..<lists.count, using: &generator)]
            switch Int.random(in: 0..<5, using: &generator) {
            case 0, 1: return .edit(LiveScenario.edit(.forceDelete, name))
            case 2:
                var change = RecordChange(
                    .update, of: LiveScenario.type,
                    RecordID(recordName: Fixtures.identifier(name)))
                change.after = RecordImage(fields)
                change.readers = readers
                return .change(change)
            default:
                return .edit(LiveScenario.edit(.forceReplace, name, fields, readers: readers))
            }
        }
    }

    private static func perform(_ acts: [Act], in scenario: LiveScenario) async throws {
        for act in acts {
            switch act {
            case .edit(let edit): try await scenario.modify([edit])
            case .change(let change): try await scenario.append(change)
            }
        }
    }

    private static func check(
        _ client: ModelClient, _ scenario: LiveScenario, _ comment: Comment,
        of queries: [String: LiveQuery] = Self.queries
    ) async throws {
        let shown = client.state.withLock { $0.shown }
        for (id, query) in queries {
            let oracle = try await scenario.oracle(query, for: client.reader, fits: fits(id))
            #expect(shown[id] ?? [:] == oracle, "\(id) of \(client.number) \(comment)")
        }
    }

    @Test("a client sees the fitting records that it may read, at every stop", arguments: 0..<16)
    func showsEachTheirOwn(seed: Int) async throws {
        let scenario = try await LiveScenario()
        try await scenario.modify([LiveScenario.edit(.forceReplace, "r0", ["price": .integer(1)])])
        let clients = [
            ModelClient.of(1), ModelClient.of(2, "bob"), ModelClient(3, as: .server),
        ]
        var generator = SeededGenerator(seed: UInt64(seed) &+ 7_000)
        for life in 1...6 {
            // In the last life all clients connect.
            let coming = clients.filter { _ in life == 6 || Bool.random(using: &generator) }
            let rounds = (0..<Int.random(in: 0...3, using: &generator)).map { _ in
                Self.acts(Int.random(in: 1...4, using: &generator), &generator)
            }
            try await scenario.withEngine { engine in
                for client in coming {
                    try await client.come(Self.queries, version: Int64(life), to: engine)
                    try await Self.check(client, scenario, "as life \(life) begins")
                }
                for acts in rounds {
                    try await Self.perform(acts, in: scenario)
                    for client in coming {
                        // Where the reader decides, each client gets a result of its own.
                        try await engine.fence("f", of: client.number)
                        await client.wait { $0.isComplete }
                        try await engine.fence("g", of: client.number)
                        try await Self.check(client, scenario, "in life \(life)")
                    }
                }
            }
            // These actions happen while no engine follows.
            try await Self.perform(Self.acts(3, &generator), in: scenario)
        }
        for client in clients {
            let resets = client.state.withLock { $0.resets }
            #expect(resets.allSatisfy { $0 == "readers" }, "\(resets)")
        }
    }

    @Test(
        "a record that its source creates again leaves its former creator's results",
        arguments: [false, true], ["all", "sorted"])
    func goesWithItsCreator(isAway: Bool, id: String) async throws {
        let scenario = try await LiveScenario()
        let own = RecordTypeDefinition(
            LiveScenario.type, grants: [RecordGrant(.read, to: .creator)], isInferred: true)
        _ = try await scenario.store.modify(
            [LiveScenario.edit(.create, "r", ["price": .integer(1)])], in: LiveScenario.place,
            by: RecordEditor(userID: Fixtures.identifier("alice"), isServer: true),
            atomicity: .independent, additions: [own], at: Fixtures.moment)
        let queries = Self.queries.filter { $0.key == id }
        let clients = [ModelClient.of(1), ModelClient.of(2, "bob")]
        @Sendable func names() -> [[String]] {
            clients.map { client in
                client.state.withLock { ($0.shown[id] ?? [:]).keys.sorted() }
            }
        }
        @Sendable func create() async throws {
            var change = RecordChange(
                .create, of: LiveScenario.type, RecordID(recordName: Fixtures.identifier("r")))
            change.after = RecordImage(["price": .integer(2)])
            change.origin = ChangeOrigin(userID: Fixtures.identifier("bob"))
            try await scenario.append(change)
        }
        try await scenario.withEngine { engine in
            for client in clients {
                try await client.come(queries, grant: .creator, to: engine)
            }
            #expect(names() == [["r"], []])
            guard !isAway else { return }
            try await create()
            for client in clients { try await engine.fence("f", of: client.number) }
        }
        if isAway {
            try await create()
            try await scenario.withEngine { engine in
                for client in clients {
                    try await client.come(queries, version: 2, grant: .creator, to: engine)
                }
            }
        }
        #expect(names() == [[], ["r"]])
        let resets = clients.flatMap { client in client.state.withLock { $0.resets } }
        #expect(resets == [])
    }

    @Test("a change from before a type was closed goes only to its readers of now")
    func tellsByTheGrantsOfNow() async throws {
        let scenario = try await LiveScenario()
        try await scenario.modify([LiveScenario.edit(.create, "r0", ["price": .integer(1)])])
        let queries = ["new": LiveScenario.query(.changes)]
        let clients = [ModelClient.of(1), ModelClient.of(2, "bob")]
        try await scenario.withEngine { engine in
            for client in clients {
                try await client.come(queries, to: engine)
                await engine.disconnect(client.number)
            }
            // Alice creates a record that all may read. Then the type is closed to all but the
            // creators. A client that returns with a token from before gets only what it may read
            // now.
            try await scenario.modify([LiveScenario.edit(.create, "r1", ["price": .integer(1)])])
            try await engine.reachHead()
            let told = try await Self.toldOnceClosed(clients, queries, by: engine)
            #expect(told == [1, 0])
        }
    }

    @Test("a user who renamed a record is not told of it as its creator")
    func tellsNobodyOfTheirMove() async throws {
        let scenario = try await LiveScenario()
        // From here on records of the type are kept.
        try await scenario.modify([LiveScenario.edit(.create, "other")])
        let queries = ["new": LiveScenario.query(.changes)]
        let clients = [ModelClient.of(1), ModelClient.of(2, "bob")]
        try await scenario.withEngine { engine in
            for client in clients {
                try await client.come(queries, to: engine)
                await engine.disconnect(client.number)
            }
            // The creator of the record that was called r0 is unknown.
            var change = RecordChange(
                .create, of: LiveScenario.type, RecordID(recordName: Fixtures.identifier("r1")))
            change.after = RecordImage(["price": .integer(1)])
            change.origin = ChangeOrigin(userID: Fixtures.identifier("bob"))
            change.movedFrom = RecordAddress(
                RecordID(recordName: Fixtures.identifier("r0")), database: .public, owner: nil)
            try await scenario.append(change)
            try await engine.reachHead()
            let told = try await Self.toldOnceClosed(clients, queries, by: engine)
            #expect(told == [0, 0])
        }
    }

    /// Returns how many changes each client is told when it returns after the type was closed to
    /// all but creators.
    private static func toldOnceClosed(
        _ clients: [ModelClient], _ queries: [String: LiveQuery], by engine: LiveEngine
    ) async throws -> [Int] {
        await engine.noteSchemaChange(of: Fixtures.container)
        for client in clients {
            try await client.come(queries, version: 2, grant: .creator, to: engine)
        }
        return clients.map { client in
            client.state.withLock { $0.changes["new"]?.count ?? 0 }
        }
    }

    private static func forAll(_ name: String, _ price: Int64) -> RecordEdit {
        LiveScenario.edit(
            .create, name, ["price": .integer(price)], readers: ["bob", RecordChange.everybody])
    }

    /// Parse names everybody in nearly all objects, and Appwrite in many documents.
    @Test("a record with everybody among its readers makes no result an own one")
    func namesEverybody() async throws {
        let scenario = try await LiveScenario()
        try await scenario.modify([Self.forAll("a", 3)])
        let first = Self.queries.filter { $0.key == "first" }
        let clients = [ModelClient.of(1), ModelClient.of(2, "bob")]
        try await scenario.withEngine { engine in
            for client in clients { try await client.come(first, to: engine) }
            try await scenario.modify([Self.forAll("b", 2)])
            for number: UInt64 in 1...2 { try await engine.fence("f", of: number) }
            let owners = await engine.owners
            #expect(owners == ["alice"])
        }
        // These edits happen while no engine follows.
        try await scenario.modify([
            LiveScenario.edit(.forceDelete, "a"), Self.forAll("c", 1),
        ])
        try await scenario.withEngine { engine in
            for client in clients { try await client.come(first, version: 2, to: engine) }
            let owners = await engine.owners
            #expect(owners == ["alice"])
        }
        for client in clients {
            try await Self.check(client, scenario, "in the end", of: first)
            let resets = client.state.withLock { $0.resets }
            #expect(resets == [])
        }
    }

    /// A `reset` that only came where the record fits would tell what the record holds.
    @Test(
        "a hidden record divides ordered results, whether it fits or not",
        arguments: [4, 9] as [Int64])
    func tellsNobodyWhatFits(price: Int64) async throws {
        let hidden = LiveScenario.edit(
            .create, "hidden", ["price": .integer(price)], readers: ["bob"])
        for isThereBefore in [true, false] {
            let scenario = try await LiveScenario()
            if isThereBefore { try await scenario.modify([hidden]) }
            let client = ModelClient.of(1)
            try await scenario.withEngine { engine in
                try await client.come(
                    Self.queries.filter { $0.key == "first" }, to: engine)
                try await engine.fence("f", of: 1)
                await client.wait { $0.isComplete }
                if !isThereBefore {
                    try await scenario.modify([hidden])
                    try await engine.fence("g", of: 1)
                    await client.wait { $0.resets.count == 1 && $0.isComplete }
                }
            }
            let (resets, shown) = client.state.withLock { ($0.resets, $0.shown["first"] ?? [:]) }
            #expect(resets == ["readers"])
            #expect(shown.isEmpty)
        }
    }

    @Test("an own result counts for its reader, whoever asked for the same first")
    func belongsToWhoLooks() async throws {
        let scenario = try await LiveScenario()
        let first = Self.queries.filter { $0.key == "first" }
        try await scenario.withEngine { engine in
            for client in [ModelClient.of(1), ModelClient.of(2, "bob")] {
                try await client.come(first, to: engine)
            }
            let shared = await engine.owners
            #expect(shared == ["alice"])
            try await scenario.modify([
                LiveScenario.edit(.create, "bobs", ["price": .integer(1)], readers: ["bob"])
            ])
            for number: UInt64 in 1...2 { try await engine.fence("f", of: number) }
            let owners = await engine.owners
            #expect(owners == ["alice", "bob"])
        }
    }

    @Test("a hidden record leaves nothing of a result that nobody looks at any more")
    func forgetsWhatNobodySees() async throws {
        let scenario = try await LiveScenario()
        try await scenario.withEngine { engine in
            try await ModelClient.of(1).come(
                Self.queries.filter { $0.key == "first" }, to: engine)
            await engine.disconnect(1)
            let before = await engine.heldContainers
            #expect(before == 1)
            try await scenario.modify([
                LiveScenario.edit(.create, "bobs", ["price": .integer(1)], readers: ["bob"])
            ])
            try await engine.reachHead()
            let after = await engine.heldContainers
            #expect(after == 0)
        }
    }
}

private extension LiveEngine {
    /// The owners of the groups.
    var owners: [String] {
        containers.values.flatMap(\.groups.values).map(\.owner.rawValue).sorted()
    }

    /// The number of containers of which something is kept.
    var heldContainers: Int { containers.count }
}
