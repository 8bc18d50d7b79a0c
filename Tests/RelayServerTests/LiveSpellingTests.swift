import RelayModel
import RelayTestKit
import Testing

/// Texts that look alike and differ in their bytes.
///
/// Swift considers them equal. For the relay they are two users, two conditions and two records.
@Suite(.serialized, .timeLimit(.minutes(30))) struct LiveSpellingTests {
    typealias Live = LiveScenarioTests

    /// A precomposed letter, and the same letter with a combining accent.
    private static let spellings = ["zo\u{E9}", "zoe\u{301}"]

    private static func artwork(
        _ name: String, _ fields: JSONObject = [:], _ members: JSONObject = [:]
    ) -> JSONValue {
        guard case .object(var change) = Live.artwork("create", name, fields) else { return .null }
        change.members += members.members
        return .object(change)
    }

    /// Returns the names that each query shows, by the query's `id`.
    private static func shown(_ page: LiveConnection) async -> [String: [String]] {
        var groups: [String: JSONValue] = [:]
        var shown: [String: [String]] = [:]
        for frame in await page.frames(until: "at") {
            // With readers, the group of a window may be replaced by another one.
            if case .array(let queries)? = frame["queries"] {
                for query in queries {
                    guard case .string(let id)? = query.value(at: ["id"]) else { continue }
                    groups[id] = query.value(at: ["group"])
                }
            }
            guard frame["type"] == "result", case .array(let records)? = frame["records"] else {
                continue
            }
            for (id, group) in groups where group == frame["group"] {
                shown[id] = records.compactMap {
                    if case .string(let name)? = $0.value(at: ["recordName"]) { name } else { nil }
                }
            }
        }
        return shown
    }

    @Test func `a user sees nothing of a user whose name looks the same`() async throws {
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            let owner = Self.spellings[0]
            try await relay.container.post(
                Self.artwork("own", [:], ["database": "private", "owner": .string(owner)]))
            try await relay.container.post(
                Self.artwork("secret", ["rank": 1], ["readers": [.string(owner)]]))
            let set: JSONValue = [
                "type": "set", "version": 1,
                "queries": [
                    ["id": "private", "recordType": "Artwork", "database": "private"],
                    ["id": "public", "recordType": "Artwork"],
                    [
                        "id": "window", "recordType": "Artwork", "limit": ["first": 5],
                        "sortBy": [["fieldName": "rank"]],
                    ],
                ],
            ]
            var pages: [LiveConnection] = []
            for (index, user) in Self.spellings.enumerated() {
                let page = try await Live.open(relay, as: user)
                try await page.send(set)
                let shown = await Self.shown(page)
                #expect(shown["private"] == (index == 0 ? ["own"] : []), "\(index)")
                #expect(shown["public"] == (index == 0 ? ["secret"] : []), "\(index)")
                #expect(shown["window"] == (index == 0 ? ["secret"] : []), "\(index)")
                pages.append(page)
            }
            for page in pages { try await page.close() }
        }
    }

    /// NSPredicate compares texts in their composed form; Realm's queries and orders compare bytes.
    @Test func `conditions, orders and bounds that look the same are distinguished`() async throws {
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            for (index, text) in Self.spellings.enumerated() {
                try await relay.container.post(Self.artwork("a\(index)", ["title": .string(text)]))
            }
            let page = try await Live.open(relay)
            var queries: [JSONValue] = []
            for (index, text) in Self.spellings.enumerated() {
                queries.append([
                    "id": .string("condition \(index)"), "recordType": "Artwork",
                    "query": ["rql": "title == $0", "rqlArguments": [.string(text)]],
                ])
                queries.append([
                    "id": .string("bound \(index)"), "recordType": "Artwork",
                    "sortBy": [["fieldName": "title"]], "start": ["value": .string(text)],
                    "end": ["value": .string(text)],
                ])
            }
            try await page.send(["type": "set", "version": 1, "queries": .array(queries)])
            let shown = await Self.shown(page)
            for index in Self.spellings.indices {
                #expect(shown["condition \(index)"] == ["a\(index)"])
                #expect(shown["bound \(index)"] == ["a\(index)"])
            }
            try await page.close()
        }
    }

    @Test func `a text whose spelling changes is reported`() async throws {
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            try await relay.container.post(
                Self.artwork("a", ["title": .string(Self.spellings[0])]))
            let page = try await Live.open(relay)
            try await page.send([
                "type": "set", "version": 1, "queries": [["id": "all", "recordType": "Artwork"]],
            ])
            _ = await Self.shown(page)
            try await relay.container.post([
                "operation": "update", "recordType": "Artwork", "recordName": "a",
                "after": ["title": .string(Self.spellings[1])],
            ])
            try await page.send(["type": "fence", "id": "f"])
            let items = await page.frames(until: "fenced").first { $0["type"] == "items" }
            #expect(items?["items"]?.value(at: ["0", "changedKeys"]) == ["title"])
            let title = items?["items"]?.value(at: ["0", "record", "fields", "title"])
            guard case .string(let text)? = title else {
                Issue.record("nothing was told")
                return
            }
            #expect(text.utf8.elementsEqual(Self.spellings[1].utf8))
            try await page.close()
        }
    }

    @Test func `a set with far too many queries is refused before they are parsed`() async throws {
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            let page = try await Live.open(relay)
            let queries = (0..<5000).map { number -> JSONValue in
                [
                    "id": .string("q\(number)"), "recordType": "Artwork",
                    "query": ["predicate": "rank >"],
                ]
            }
            try await page.send(["type": "set", "version": 1, "queries": .array(queries)])
            let refused = await page.frame("state")
            #expect(refused?["serverErrorCode"] == "QUOTA_EXCEEDED")
            #expect(refused?["queries"] == nil)
            try await page.close()
        }
    }
}
