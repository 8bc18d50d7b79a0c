import RelayModel
import RelayTestKit
import Testing

/// A client that comes back to a large result gets all that it missed in one frame.
@Suite(.serialized, .timeLimit(.minutes(30))) struct LiveLargeFrameTests {
    private static func set(
        _ version: Int64, since: JSONValue? = nil, _ fingerprint: JSONValue? = nil
    ) -> JSONValue {
        var query: JSONObject = ["id": "all", "recordType": "Artwork"]
        query["since"] = since
        query["fingerprint"] = fingerprint
        return ["type": "set", "version": .integer(version), "queries": [.object(query)]]
    }

    @Test func `a client that reads is not ended by a frame that the connection has no room for`()
        async throws
    {
        try await RunningRelay.with(["--live-result-megabytes", "64"]) { relay in
            try await LiveScenarioTests.keep(relay)
            let page = try await LiveScenarioTests.open(relay)
            try await page.send(Self.set(1))
            let frames = await page.frames(until: "at")
            let fingerprint = frames.first { $0["type"] == "state" }?["queries"]?
                .value(at: ["0", "fingerprint"])
            let at = frames.last?["at"]
            try await page.close()
            // Far more than the operating system buffers for a connection.
            let long = String(repeating: "x", count: 120_000)
            let count = 100
            for number in 0..<count {
                try await relay.container.post(
                    LiveScenarioTests.artwork("create", "r\(number)", ["text": .string(long)]))
            }
            let again = try await LiveScenarioTests.open(relay)
            try await again.send(Self.set(2, since: at, fingerprint))
            let told = await again.frames(until: "at")
            #expect(told.first?["queries"]?.value(at: ["0", "isResumed"]) == true)
            let types: [JSONValue] = ["state", "items", "state", "at"]
            #expect(told.compactMap { $0["type"] } == types)
            let items = told.first { $0["type"] == "items" }?["items"]
            #expect(items?.value(at: ["\(count - 1)", "op"]) == "added")
            #expect(items?.value(at: ["\(count)"]) == nil)
            try await again.send(["type": "fence", "id": "f"])
            #expect(await again.frame("fenced") != nil)
            try await again.close()
        }
    }
}
