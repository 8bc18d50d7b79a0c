import GatewaySimulator
import RelayModel
import RelayTestKit
import Testing

/// Read permissions hold for every way in which notifications are delivered: pushes of ranges, the
/// courier and the inbox.
@Suite(.serialized, .timeLimit(.minutes(30))) struct ReadingPlacesTests {
    private static let secret = "hush-hush"
    private static let curious: JSONObject = [
        "alertLocalizationKey": "%1$@", "alertLocalizationArgs": ["secret"],
        "desiredKeys": ["secret"],
    ]

    /// Keeps artworks; `role` may read those that name no readers.
    private static func furnish(
        _ relay: RunningRelay, reading role: String = "_world"
    ) async throws {
        let schema: JSONValue = [
            "recordTypes": [
                [
                    "name": "Artwork", "shadow": true,
                    "grants": [
                        ["permission": "READ", "role": .string(role)],
                        ["permission": "CREATE", "role": "_icloud"],
                    ],
                    "fields": [["name": "secret", "type": "STRING", "queryable": true]],
                ]
            ]
        ]
        try await relay.client.administer("PUT", relay.container.path + "/schema", schema)
            .expect(200)
        for user in ["alice", "bob"] {
            for name in ["q", "p"] {
                try await relay.container.save(
                    .query(
                        name, name == "q" ? #"secret BEGINSWITH "h""# : nil,
                        firesOn: ["create", "update", "delete"], info: curious), as: user)
            }
        }
    }

    private static func post(
        _ relay: RunningRelay, _ operation: String, _ members: JSONObject
    ) async throws {
        var change: JSONObject = ["operation": .string(operation), "recordType": "Artwork"]
        for member in members.members { change[member.name] = member.value }
        try await relay.container.post(.object(change))
    }

    /// Creates a record that only bob may read, changes it in part and deletes it.
    ///
    /// Only the first of the webhooks names its readers.
    private static func changeWhatIsBobs(_ relay: RunningRelay) async throws {
        try await post(
            relay, "create",
            ["recordName": "r", "after": ["secret": .string(secret)], "readers": ["bob"]])
        try await post(
            relay, "update",
            ["recordName": "r", "after": ["other": 1], "afterCompleteness": "partial"])
        try await post(relay, "delete", ["recordName": "r"])
    }

    /// Creates a record that everybody may read, so that there is a push to wait for.
    private static func changeWhatIsEverybodys(_ relay: RunningRelay) async throws {
        try await post(
            relay, "create",
            ["recordName": "w", "after": ["secret": "here"], "readers": ["world"]])
    }

    private static func list(
        _ relay: RunningRelay, of user: String
    ) async throws -> RelayClient.Reply {
        try await relay.container.call("notifications/list", [:], as: user, in: "public")
            .expect(200)
    }

    @Test(arguments: [1, 10_000])
    func `an inbox has nothing that its user may not read`(threshold: Int) async throws {
        try await RunningRelay.with(["--fanout-range-threshold", "\(threshold)"]) { relay in
            try await relay.client.administer(
                "PATCH", relay.container.path, ["keepsInbox": true]
            ).expect(200)
            try await Self.furnish(relay)
            try await Self.changeWhatIsBobs(relay)
            try await Self.changeWhatIsEverybodys(relay)
            // Three changes for two subscriptions and bob's device, and the public one for his
            // device and alice's two. Ranges are worked beside the progress.
            _ = try await relay.pushes(12)
            _ = try await relay.arrivals()
            let alices = try await Self.list(relay, of: "alice")
            #expect(!alices.text.contains(Self.secret) && !alices.text.contains(#""rid":"r""#))
            #expect(alices.text.contains("here"))
            let bobs = try await Self.list(relay, of: "bob")
            #expect(bobs.text.contains(Self.secret))
            // Three changes for two subscriptions each, and the public one.
            #expect(bobs["notifications", "7"] != nil && bobs["notifications", "8"] == nil)
        }
    }

    @Test func `an inbox has nothing that the schema hides from its user`() async throws {
        try await RunningRelay.with { relay in
            try await relay.client.administer(
                "PATCH", relay.container.path, ["keepsInbox": true]
            ).expect(200)
            try await Self.furnish(relay, reading: "_creator")
            let fields: JSONValue = ["secret": ["value": .string(Self.secret)]]
            try await relay.container.call(
                "records/modify",
                [
                    "operations": [
                        [
                            "operationType": "create",
                            "record": [
                                "recordName": "r", "recordType": "Artwork", "fields": fields,
                            ],
                        ]
                    ]
                ], as: "bob", in: "public"
            ).expect(200)
            _ = try await relay.arrivals()
            #expect(try await Self.list(relay, of: "alice")["notifications"] == [])
            #expect(try await Self.list(relay, of: "bob").text.contains(Self.secret))
        }
    }

    @Test(arguments: [1, 10_000])
    func `a courier delivers nothing that its user may not read`(threshold: Int) async throws {
        try await RunningRelay.with([
            "--courier-hold-seconds", "1", "--fanout-range-threshold", "\(threshold)",
        ]) { relay in
            try await Self.furnish(relay)
            var paths: [String: String] = [:]
            for user in ["alice", "bob"] {
                let made = try await relay.container.call(
                    "tokens/create",
                    ["apnsEnvironment": "development", "clientId": "page"], as: user, in: nil
                ).expect(200)
                guard case .string(let url)? = made["webcourierURL"] else { continue }
                paths[user] = String(url.dropFirst(relay.client.url.count))
            }
            try await Self.changeWhatIsBobs(relay)
            try await Self.changeWhatIsEverybodys(relay)
            _ = try await relay.pushes(12)
            func poll(_ user: String) async throws -> RelayClient.Reply {
                let path = try #require(paths[user])
                return try await relay.client.call("GET", path).expect(200)
            }
            for _ in 0..<2 {
                #expect(try await poll("alice")["ck", "qry", "rid"] == "w")
            }
            #expect(try await poll("alice").text.isEmpty)
            var bobs: [String] = []
            for _ in 0..<8 { bobs.append(try await poll("bob").text) }
            #expect(bobs.count { $0.contains(#""rid":"r""#) } == 6)
            #expect(bobs.contains { $0.contains(Self.secret) })
        }
    }

    @Test func `a range pushes nothing that its users may not read`() async throws {
        try await RunningRelay.with(["--fanout-range-threshold", "1"]) { relay in
            try await Self.furnish(relay)
            try await Self.changeWhatIsBobs(relay)
            try await Self.changeWhatIsEverybodys(relay)
            _ = try await relay.pushes(12)
            let arrivals = try await relay.arrivals().filter { $0.hasSuffix(" r") }
            #expect(arrivals.count == 6)
            #expect(arrivals.allSatisfy { $0.hasPrefix("bobs: ") }, "\(arrivals)")
            #expect(
                relay.gateway.simulated.pushes.contains {
                    $0.json.text.contains(Self.secret)
                })
        }
    }
}
