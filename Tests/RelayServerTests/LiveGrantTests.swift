import RelayModel
import RelayTestKit
import Testing

@testable import RelayServer

/// Clients that are disconnected while it changes who may read the records that they were shown.
@Suite(.serialized, .timeLimit(.minutes(30))) struct LiveGrantTests {
    typealias Live = LiveScenarioTests

    private static func grant(_ role: String, in relay: RunningRelay) async throws {
        let type: JSONValue = [
            "name": "Artwork", "shadow": true, "fields": [["name": "price", "type": "INT64"]],
            "grants": [["permission": "READ", "role": .string(role)]],
        ]
        try await relay.client.administer(
            "PUT", "\(relay.container.path)/schema", ["recordTypes": [type]]
        ).expect(200)
    }

    private static func set(_ place: JSONObject = [:]) -> JSONValue {
        var query: JSONObject = ["id": "all", "recordType": "Artwork"]
        query.members += place.members
        return ["type": "set", "version": 1, "queries": [.object(query)]]
    }

    @Test func `a record deleted while hidden is not shown afterwards`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await Self.grant("_world", in: relay)
            try await relay.container.post(Live.artwork("create", "a0", ["price": 5]))
            let page = try await Live.open(relay)
            try await page.send(Self.set())
            let shown = await page.frames(until: "at")
            #expect(
                shown.first { $0["type"] == "result" }?["records"]?
                    .value(at: ["0", "recordName"]) == "a0")
            let print = shown.first?["queries"]?.value(at: ["0", "fingerprint"]) ?? .null
            let token = shown.last?["at"] ?? .null
            try await page.close()

            try await Self.grant("_creator", in: relay)
            try await relay.container.post([
                "operation": "delete", "recordType": "Artwork", "recordName": "a0",
            ])
            try await Self.grant("_world", in: relay)

            let again = try await Live.open(relay)
            try await again.send(Self.set(["since": token, "fingerprint": print]))
            let told = await again.frames(until: "at")
            #expect(told.first { $0["type"] == "reset" }?["reason"] == "changed", "\(told)")
            let result = told.first { $0["type"] == "result" }
            #expect(result != nil && result?["records"]?.value(at: ["0"]) == nil)
            try await again.close()
        }
    }

    @Test func `a change of write permissions lets clients resume`() async throws {
        try await RunningRelay.with { relay in
            try await Self.grant("_world", in: relay)
            let page = try await Live.open(relay)
            try await page.send(Self.set())
            let shown = await page.frames(until: "at")
            let print = shown.first?["queries"]?.value(at: ["0", "fingerprint"]) ?? .null
            let token = shown.last?["at"] ?? .null
            try await page.close()
            let type: JSONValue = [
                "name": "Artwork", "shadow": true,
                "grants": [
                    ["permission": "READ", "role": "_world"],
                    ["permission": "WRITE", "role": "_icloud"],
                ],
            ]
            try await relay.client.administer(
                "PUT", "\(relay.container.path)/schema", ["recordTypes": [type]]
            ).expect(200)
            let again = try await Live.open(relay)
            try await again.send(Self.set(["since": token, "fingerprint": print]))
            let told = await again.frames(until: "at")
            #expect(!told.contains { $0["type"] == "reset" || $0["type"] == "result" }, "\(told)")
            try await again.close()
        }
    }
}
