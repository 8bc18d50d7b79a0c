import RelayModel
import RelayTestKit
import Testing

/// Firebase's and Wilddog's orders of results, over real sockets.
@Suite(.serialized, .timeLimit(.minutes(30))) struct LiveOrderTests {
    typealias Live = LiveScenarioTests

    private static func set(_ members: JSONObject) -> JSONValue {
        var query: JSONObject = ["id": "q", "recordType": "Artwork"]
        query.members += members.members
        return ["type": "set", "version": 1, "queries": [.object(query)]]
    }

    /// Returns the names that a query shows, in its order.
    private static func names(
        _ relay: RunningRelay, _ members: JSONObject
    ) async throws -> [String] {
        let page = try await Live.open(relay)
        try await page.send(set(members))
        let frames = await page.frames(until: "at")
        try await page.close()
        guard
            case .array(let records)? = frames.first(where: { $0["type"] == "result" })?["records"]
        else { return ["\(frames)"] }
        return records.compactMap { $0.value(at: ["recordName"]) }.map { name in
            if case .string(let name) = name { name } else { "\(name)" }
        }
    }

    @Test func `records are ordered like Firebase's and Wilddog's children`() async throws {
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            for (name, fields): (String, JSONObject) in [
                ("10", ["rank": 3, "value": "x", "priority": 2]), ("9", ["rank": "b"]),
                ("b", ["rank": true, "deep": ["$map": ["x": 1]]]), ("a", ["rank": .number(1.5)]),
                ("c", [:]),
            ] {
                try await relay.container.post(Live.artwork("create", name, fields))
            }
            let child: JSONObject = ["orderBy": ["child": "rank"]]
            // The order is: nothing, false, true, numbers, strings.
            #expect(try await Self.names(relay, child) == ["c", "b", "a", "10", "9"])
            var bounded = child
            bounded["end"] = ["value": 2]
            #expect(try await Self.names(relay, bounded) == ["c", "b", "a"])
            bounded["rules"] = "wilddog"
            #expect(try await Self.names(relay, bounded) == ["a"])
            #expect(
                try await Self.names(relay, ["orderBy": "key"]) == ["9", "10", "a", "b", "c"])
            #expect(
                try await Self.names(
                    relay, ["orderBy": "key", "start": ["value": "10"], "end": ["value": "b"]])
                    == ["10", "a", "b"])
            #expect(
                try await Self.names(
                    relay,
                    [
                        "orderBy": "priority", "start": ["value": .null, "key": "b"],
                        "limit": ["first": 2],
                    ]) == ["b", "c"])
            #expect(
                try await Self.names(relay, ["orderBy": "value", "limit": ["first": 2]])
                    == ["10", "9"])
            // The type that a field had first does not restrict later values.
            #expect(
                try await Self.names(
                    relay, ["orderBy": ["child": "deep/x"], "start": ["value": 1]]) == ["b"])
        }
    }

    @Test func `a new record inside a limit pushes out the one at its boundary`() async throws {
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            for (name, rank) in [("a", 1), ("b", 2), ("c", 3)] {
                try await relay.container.post(
                    Live.artwork("create", name, ["rank": .integer(Int64(rank))]))
            }
            let page = try await Live.open(relay)
            try await page.send(
                Self.set(["orderBy": ["child": "rank"], "limit": ["last": 2]]))
            _ = await page.frames(until: "at")
            try await relay.container.post(Live.artwork("create", "d", ["rank": .number(2.5)]))
            let items = await page.frame("items")?["items"]
            #expect(items?.value(at: ["0", "op"]) == "removed")
            #expect(items?.value(at: ["0", "record", "recordName"]) == "b")
            #expect(items?.value(at: ["1", "record", "recordName"]) == "d")
            #expect(items?.value(at: ["1", "previous"]) == .null)
            try await relay.container.post(Live.artwork("update", "c", ["rank": "text"]))
            let moved = await page.frame("items")?["items"]
            #expect(moved?.value(at: ["0", "op"]) == "changed")
            #expect(moved?.value(at: ["0", "moved"]) == true)
            #expect(moved?.value(at: ["0", "previous"]) == "d")
            try await page.close()
        }
    }

    @Test func `a record that leaves the bounds or becomes hidden goes with that reason`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            func post(
                _ operation: String, _ name: String, _ rank: Int64, _ readers: JSONValue?
            ) async throws {
                let change = Live.artwork(operation, name, ["rank": .integer(rank)])
                guard case .object(var object) = change else { return }
                object["readers"] = readers
                try await relay.container.post(.object(object))
            }
            for (name, rank) in [("a", 1), ("b", 2)] {
                try await post("create", name, Int64(rank), nil)
            }
            let page = try await Live.open(relay)
            try await page.send(
                Self.set([
                    "sortBy": [["fieldName": "rank"]], "end": ["value": 5],
                    "query": ["predicate": "rank != 3"],
                ]))
            _ = await page.frames(until: "at")
            func why() async -> JSONValue? {
                await page.frame("items")?["items"]?.value(at: ["0", "why"])
            }
            try await post("update", "a", 9, nil)
            #expect(await why() == "left")
            // A source may send a creation of a record that exists already.
            try await post("create", "b", 3, nil)
            #expect(await why() == "left")
            try await post("create", "c", 1, ["alice", "bob"])
            #expect(await page.frame("reset")?["reason"] == "readers")
            _ = await page.frames(until: "result")
            try await post("update", "c", 1, ["bob"])
            #expect(await why() == "unreadable")
            try await post("update", "c", 1, ["alice"])
            #expect(await why() == "readable")
            try await page.close()
        }
    }

    private static let refused: [(JSONObject, String)] = [
        (["orderBy": "rank"], "orderBy: must be \"key\", \"value\", \"priority\" or"),
        (["orderBy": 5], "orderBy: must be \"key\", \"value\", \"priority\" or"),
        (["orderBy": ["child": ""]], "orderBy.child: a child path must be"),
        (["orderBy": ["child": "$key"]], "orderBy.child: $key is not a child"),
        (
            ["orderBy": "key", "sortBy": [["fieldName": "rank"]]],
            "sortBy: cannot be given together with orderBy"
        ),
        (["rules": "wilddog"], "rules: is allowed only with orderBy"),
        (["orderBy": "key", "rules": "parse"], "rules: \"parse\" is unknown"),
        (
            ["orderBy": "key", "start": ["value": 5]],
            "start: a bound of an ordering by key must be a single text"
        ),
        (["orderBy": "value", "start": [:]], "start.value: is required"),
        (
            ["orderBy": "value", "end": ["value": ["$map": [:]]]],
            "end: a bound must be a text, a number, a boolean or null"
        ),
        (
            [
                "orderBy": "value", "rules": "wilddog", "start": ["value": 5],
                "end": ["value": "a"],
            ], "end: the two bounds must be of the same kind"
        ),
        (
            ["orderBy": "value", "rules": "wilddog", "start": ["value": true]],
            "start: a boolean cannot bound a range"
        ),
        (
            [
                "orderBy": "value", "rules": "wilddog", "start": ["value": false],
                "end": ["value": true],
            ], "start: a boolean cannot bound a range"
        ),
        (
            [
                "sortBy": [["fieldName": "modificationDate"]],
                "start": ["value": 1_700_000_000_000],
            ], "start.value: a date and a number cannot be compared"
        ),
        (["kind": "changes", "orderBy": "key"], "orderBy: is allowed only for a result"),
        (
            ["once": true, "initial": "none"],
            "once: a result with \"once\" ends after its initial records"
        ),
        (
            ["query": ["recordType": "Room"]],
            "recordType: does not match the recordType in the query"
        ),
    ]

    @Test func `an invalid order is refused with its place`() async throws {
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            let page = try await Live.open(relay)
            for (members, reason) in Self.refused {
                try await page.send(Self.set(members))
                let state = await page.frame("state")
                #expect(state?["state"] == "error")
                guard
                    case .string(let text)? = state?["queries"]?.value(at: ["0", "error", "reason"])
                else {
                    Issue.record("\(reason): \(String(describing: state))")
                    continue
                }
                #expect(text.contains(reason), "\(text)")
            }
            try await page.send([
                "type": "get", "id": "g", "query": ["recordType": "Artwork", "initial": "none"],
            ])
            #expect(await page.frame("refused")?["id"] == "g")
            try await page.close()
        }
    }
}
