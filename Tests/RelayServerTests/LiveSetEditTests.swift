import RelayModel
import RelayServer
import RelayTestKit
import Testing

/// What happens to queries that a set declares again, or under another name.
@Suite(.serialized, .timeLimit(.minutes(30))) struct LiveSetEditTests {
    typealias Live = LiveScenarioTests

    private static func query(_ id: JSONValue, _ members: JSONObject = [:]) -> JSONValue {
        var query: JSONObject = ["id": id, "recordType": "Artwork"]
        query.members += members.members
        return .object(query)
    }

    /// Sends a set, and returns the frames until it is complete or refused.
    private static func send(
        _ page: LiveConnection, _ version: Int64, _ members: JSONObject
    ) async throws -> [JSONObject] {
        var set: JSONObject = ["type": "set", "version": .integer(version)]
        set.members += members.members
        try await page.send(.object(set))
        var frames: [JSONObject] = []
        while let frame = await page.frame() {
            // A position after an earlier state, or a change, may still come.
            if frames.isEmpty, frame["version"] != .integer(version) { continue }
            frames.append(frame)
            if frame["state"] == "complete" || frame["state"] == "error" { break }
        }
        return frames
    }

    @Test func `a query that is listed again continues silently`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            try await relay.container.post(Live.artwork("create", "a0", ["price": 5]))
            let page = try await Live.open(relay)
            let first = try await Self.send(page, 1, ["queries": [Self.query("all")]])
            #expect(first[0]["queries"]?.value(at: ["0", "isResumed"]) == false)
            #expect(first.contains { $0["type"] == "result" })
            let again = try await Self.send(
                page, 2, ["queries": [Self.query("all"), Self.query("new", ["kind": "changes"])]])
            #expect(again[0]["queries"]?.value(at: ["0", "id"]) == "all")
            #expect(again[0]["queries"]?.value(at: ["0", "isResumed"]) == nil)
            #expect(again[0]["queries"]?.value(at: ["1", "isResumed"]) == false)
            #expect(!again.contains { $0["type"] == "result" })
            // A query with `once` is another query than one without.
            let once = try await Self.send(
                page, 3, ["queries": [Self.query("all", ["once": true])]])
            #expect(once[0]["queries"]?.value(at: ["0", "isResumed"]) == false)
            #expect(once.contains { $0["type"] == "result" })
            try await relay.container.post(Live.artwork("create", "a1", ["price": 5]))
            try await page.send(["type": "fence", "id": "f"])
            #expect(!(await page.frames(until: "fenced")).contains { $0["type"] == "items" })
            let none: JSONObject = ["initial": "none"]
            let quiet = try await Self.send(page, 4, ["queries": [Self.query("all", none)]])
            #expect(!quiet.contains { $0["type"] == "result" })
            let told = try await Self.send(page, 5, ["queries": [Self.query("all")]])
            #expect(told.contains { $0["type"] == "result" })
            try await page.close()
        }
    }

    @Test func `a query can be renamed although no two may be equal`() async throws {
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            let page = try await Live.open(relay)
            _ = try await Self.send(page, 1, ["queries": [Self.query("one")]])
            let beside = try await Self.send(
                page, 2, ["base": 1, "ifExists": "error", "add": [Self.query("two")]])
            #expect(
                beside.last?["queries"]?.value(at: ["0", "error", "liveError"])
                    == "duplicateQuery", "\(beside)")
            let renamed = try await Self.send(
                page, 2,
                [
                    "base": 1, "ifExists": "error", "remove": ["one"],
                    "add": [Self.query("two")],
                ])
            #expect(renamed.last?["state"] == "complete", "\(renamed)")
            let listed = try await Self.send(
                page, 3, ["ifExists": "error", "queries": [Self.query("three")]])
            #expect(listed.last?["state"] == "complete", "\(listed)")
            try await page.close()
        }
    }
}
