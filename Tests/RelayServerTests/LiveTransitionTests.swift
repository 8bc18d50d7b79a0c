import RelayModel
import RelayTestKit
import Testing

/// How updates move records into and out of results, over real sockets.
@Suite(.serialized, .timeLimit(.minutes(30))) struct LiveTransitionTests {
    typealias Live = LiveScenarioTests

    private static func set(since token: JSONValue? = nil, _ print: JSONValue? = nil) -> JSONValue {
        var query: JSONObject = [
            "id": "cheap", "kind": "changes", "recordType": "Artwork",
            "query": ["predicate": "price < 100"],
        ]
        query["since"] = token
        query["fingerprint"] = print
        return ["type": "set", "version": 1, "queries": [.object(query)]]
    }

    private static func transitions(_ frames: [JSONObject]) -> [JSONValue?] {
        frames.filter { $0["type"] == "change" }.map { $0["transition"] }
    }

    @Test func `an update says whether the record matched before, also after reconnecting`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            try await relay.container.post(Live.artwork("create", "a0", ["price": 50]))
            try await relay.container.post(Live.artwork("create", "a1", ["price": 500]))
            let page = try await Live.open(relay)
            try await page.send(Self.set())
            var frames = await page.frames(until: "at")
            let print = frames[0]["queries"]?.value(at: ["0", "fingerprint"])
            let steps: [(JSONValue, JSONValue?)] = [
                (Live.artwork("update", "a0", ["price": 7]), "stayed"),
                (Live.artwork("update", "a1", ["price": 5]), "entered"),
                (Live.artwork("update", "never-seen", ["price": 5]), "unknown"),
                (Live.artwork("create", "a2", ["price": 5]), nil),
            ]
            for (change, expected) in steps {
                try await relay.container.post(change)
                frames = await page.frames(until: "at")
                #expect(Self.transitions(frames) == [expected], "\(change.text)")
            }
            let token = frames.last?["at"]
            try await page.close()
            try await relay.container.post(Live.artwork("update", "a0", ["price": 500]))
            try await relay.container.post(Live.artwork("update", "a0", ["price": 8]))
            try await relay.container.post(Live.artwork("update", "a0", ["price": 9]))
            let again = try await Live.open(relay)
            try await again.send(Self.set(since: token, print))
            #expect(Self.transitions(await again.frames(until: "at")) == ["entered", "stayed"])
            try await again.close()
        }
    }

    /// Returns what an update says of a record after it and before it.
    private static func update(_ relay: RunningRelay) async throws -> (JSONObject, JSONObject) {
        let page = try await Live.open(relay)
        let query: JSONValue = [
            "id": "all", "kind": "changes", "recordType": "Artwork", "before": true,
        ]
        try await page.send(["type": "set", "version": 1, "queries": [query]])
        _ = await page.frames(until: "at")
        let change: JSONValue = [
            "operation": "update", "recordType": "Artwork", "recordName": "a0",
            "before": ["price": 5], "after": ["price": 7], "origin": ["userRecordName": "bob"],
        ]
        try await relay.container.post(change)
        let frame = await page.frame("change")
        try await page.close()
        guard case .object(let record)? = frame?["record"],
            case .object(let before)? = frame?["before"]
        else {
            Issue.record("\(String(describing: frame))")
            return ([:], [:])
        }
        return (record, before)
    }

    @Test func `the former tag of a record is sent where it is known`() async throws {
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            try await relay.container.post(Live.artwork("create", "a0", ["price": 5]))
            func set(_ members: JSONObject) -> JSONValue {
                var query: JSONObject = ["id": "all", "recordType": "Artwork", "before": true]
                query.members += members.members
                return ["type": "set", "version": 1, "queries": [.object(query)]]
            }
            let page = try await Live.open(relay)
            try await page.send(set([:]))
            let shown = await page.frames(until: "at")
            let tag = shown.first { $0["type"] == "result" }?["records"]?
                .value(at: ["0", "recordChangeTag"])
            let print = shown[0]["queries"]?.value(at: ["0", "fingerprint"])
            try await relay.container.post(Live.artwork("update", "a0", ["price": 6]))
            let item = await page.frame("items")?["items"]?.value(at: ["0", "before"])
            #expect(tag != nil && item?.value(at: ["recordChangeTag"]) == tag)
            let token = await page.frame("at")?["at"] ?? .null
            try await page.close()
            // The log has the former record, but not its version.
            try await relay.container.post(Live.artwork("update", "a0", ["price": 7]))
            let again = try await Live.open(relay)
            try await again.send(set(["since": token, "fingerprint": print ?? .null]))
            let missed = await again.frame("items")?["items"]?.value(at: ["0", "before"])
            #expect(missed?.value(at: ["fields", "price"]) == 6, "\(String(describing: missed))")
            #expect(missed?.value(at: ["recordChangeTag"]) == nil)
            try await again.close()
        }
    }

    @Test func `a change says no more of a record than is known`() async throws {
        try await RunningRelay.with { relay in
            try await relay.container.post(Live.artwork("create", "a0", ["price": 5]))
            let (record, before) = try await Self.update(relay)
            #expect(record["recordChangeTag"] != nil && record["created"] == nil)
            #expect(record["modified"]?.value(at: ["userRecordName"]) == "bob")
            #expect(before["fields"]?.value(at: ["price"]) == 5)
            for name in ["recordChangeTag", "created", "modified"] {
                #expect(before[name] == nil, "\(name)")
            }
        }
        // For a kept record, its creator and last modifier are known.
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            try await relay.container.post(Live.artwork("create", "a0", ["price": 5]))
            let (record, before) = try await Self.update(relay)
            #expect(record["created"] != nil && record["created"] == before["created"])
            #expect(before["modified"] != nil && before["modified"] != record["modified"])
            #expect(before["recordChangeTag"] == nil)
        }
    }
}
