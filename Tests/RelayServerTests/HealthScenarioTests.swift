import GatewaySimulator
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

@testable import RelayServer

/// The health of subscriptions, as their users and the operator see it.
@Suite(.serialized, .timeLimit(.minutes(30))) struct HealthScenarioTests {
    /// Returns the health of a user's subscription from a look-up.
    private static func health(
        _ id: String, of user: String, _ relay: RunningRelay
    ) async throws -> JSONValue {
        let found = try await relay.container.call(
            "subscriptions/lookup", ["subscriptions": [["subscriptionID": .string(id)]]],
            as: user, in: "public"
        ).expect(200)
        let looked = try #require(found["subscriptions", "0", "health"], "\(found.text)")
        // Lists report the same, to the user and to the operator.
        let listed = try await relay.container.call(
            "subscriptions/list", nil, as: user, in: "public"
        ).expect(200)
        #expect(entry(id, in: listed) == looked, "\(listed.text)")
        let administered = try await relay.client.administer(
            "GET", "\(relay.container.path)/subscriptions?user=\(user)"
        ).expect(200)
        #expect(entry(id, in: administered) == looked, "\(administered.text)")
        return looked
    }

    private static func entry(_ id: String, in reply: RelayClient.Reply) -> JSONValue? {
        guard case .array(let entries)? = reply["subscriptions"] else { return nil }
        return entries.first { $0.value(at: ["subscriptionID"]) == .string(id) }?
            .value(at: ["health"])
    }

    /// Removes moments, which differ from run to run.
    private static func timeless(_ value: JSONValue?) -> JSONValue? {
        guard case .object(let object)? = value else { return value }
        var rest = JSONObject()
        for (name, value) in object.members where name != "at" { rest[name] = timeless(value) }
        return .object(rest)
    }

    @Test func `firings are counted with the last change and the reasons for unreached ones`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await relay.container.save(.query("q", "price < 100"))
            for user in ["bob", "carol"] {
                try await relay.container.save(.query("q", "price < 100"), as: user)
            }
            #expect(try await Self.health("q", of: "alice", relay) == ["fired": 0])
            _ = try await ExplainScenarioTests.post(
                .change("create", "a1", ["price": 1]), relay)
            _ = try await ExplainScenarioTests.post(
                .change("create", "a2", ["price": 120]), relay)
            let last = try await ExplainScenarioTests.post(
                .change(
                    "create", "a3", ["price": 2],
                    adding: ["origin": ["deviceID": "bobs", "userRecordName": "bob"]]), relay)
            try await relay.relay.waitUntilSettled(within: .patience)
            for isAddedUp in [false, true] {
                if isAddedUp { while try await relay.relay.store.addUpFirings() {} }
                let place: JSONValue = ["position": .string(last)]
                let alice = try await Self.health("q", of: "alice", relay)
                #expect(Self.timeless(alice) == ["fired": 2, "lastFired": place])
                let bob = try await Self.health("q", of: "bob", relay)
                #expect(
                    Self.timeless(bob) == [
                        "fired": 2, "lastFired": place,
                        "unreached": [
                            "count": 1, "noDevice": 0, "origin": 1, "merged": 0,
                            "last": [
                                "position": .string(last), "reason": "origin",
                                "says": "the change was made on the owner's own devices",
                            ],
                        ],
                    ])
                let carol = try await Self.health("q", of: "carol", relay)
                #expect(carol.value(at: ["unreached", "noDevice"]) == 2)
                #expect(
                    carol.value(at: ["unreached", "last", "says"])
                        == "the owner had no device registered")
            }
            // A new version starts without any health.
            _ = try await relay.container.call(
                "subscriptions/modify",
                [
                    "operations": [
                        [
                            "operationType": "update",
                            "subscription": .query("q", "price < 101"),
                        ]
                    ]
                ], as: "alice", in: "public"
            ).expect(200)
            #expect(try await Self.health("q", of: "alice", relay) == ["fired": 0])
        }
    }

    @Test func `an error is reported with its comparison, place and both values`() async throws {
        try await RunningRelay.with { relay in
            try await relay.container.save(
                .query("q", "artist = \"artist-1\" AND price > title"))
            for name in ["a1", "a2"] {
                _ = try await ExplainScenarioTests.post(
                    .change(
                        "create", name,
                        ["artist": "artist-1", "price": 120, "title": "Water Lilies"]), relay)
            }
            try await relay.relay.waitUntilSettled(within: .patience)
            let health = try await Self.health("q", of: "alice", relay)
            #expect(health.value(at: ["fired"]) == 0)
            #expect(health.value(at: ["errors", "count"]) == 2)
            let last = health.value(at: ["errors", "last"])
            #expect(
                last?.value(at: ["says"])?.text.contains("in price > title") == true,
                "\(health.text)")
            #expect(
                last?.value(at: ["comparison", "place"]) == ["offset": 25, "length": 13],
                "\(health.text)")
            #expect(last?.value(at: ["comparison", "left"]) == 120)
            #expect(last?.value(at: ["comparison", "leftKind"]) == "a number")
            #expect(last?.value(at: ["comparison", "right"]) == "Water Lilies")
            #expect(last?.value(at: ["comparison", "rightKind"]) == "a text")
            // A client may send back what it received.
            let listed = try await relay.container.call(
                "subscriptions/list", nil, as: "alice", in: "public")
            let entry = try #require(listed["subscriptions", "0"])
            _ = try await relay.container.call(
                "subscriptions/modify",
                ["operations": [["operationType": "update", "subscription": entry]]],
                as: "alice", in: "public"
            ).expect(200)
        }
    }

    /// For each error the log is read, and the condition is evaluated.
    @Test func `the last twenty errors of an answer are reported with their comparison`()
        async throws
    {
        try await RunningRelay.with { relay in
            let ids = (1...25).map { "q\($0)" }
            for (number, id) in ids.enumerated() {
                try await relay.container.save(
                    .query(id, "artist = \"artist-1\" AND price > \(number) AND price > title"))
            }
            _ = try await ExplainScenarioTests.post(
                .change(
                    "create", "a1",
                    ["artist": "artist-1", "price": 120, "title": "Water Lilies"]), relay)
            try await relay.relay.waitUntilSettled(within: .patience)
            let found = try await relay.container.call(
                "subscriptions/lookup", ["subscriptions": .array(ids.map { .string($0) })],
                as: "alice", in: "public"
            ).expect(200)
            let errors = ids.indices.compactMap { index in
                found["subscriptions", "\(index)", "health", "errors"]
            }
            #expect(errors.count == 25, "\(found.text)")
            let told = errors.filter { $0.value(at: ["last", "comparison"]) != nil }
            #expect(told.count == 20)
        }
    }

    @Test func `a change that the owner may not read does not affect the health`() async throws {
        try await RunningRelay.with { relay in
            try await relay.container.save(.query("q", "price > title"))
            try await relay.container.save(.query("q", "price > title"), as: "bob")
            let hidden = try await ExplainScenarioTests.post(
                .change(
                    "create", "a1", ["price": 120, "title": "secret"],
                    adding: ["readers": ["bob"]]), relay)
            _ = try await ExplainScenarioTests.post(
                .change(
                    "create", "a2", ["price": 120, "title": "secret"],
                    adding: ["database": "private", "owner": "bob"]), relay)
            try await relay.relay.waitUntilSettled(within: .patience)
            #expect(try await Self.health("q", of: "alice", relay) == ["fired": 0])
            let bob = try await Self.health("q", of: "bob", relay)
            #expect(bob.value(at: ["errors", "count"]) == 1)
            #expect(bob.value(at: ["errors", "last", "position"]) == .string(hidden))
        }
    }

    @Test func `a failed delivery is reported with its reason`() async throws {
        let script = AnswerScript([
            ScriptRule(
                .device(SampleDevice(name: "bobs", owner: "bob").token),
                [
                    ScriptedAnswer(
                        .refuse(.init(status: 400, reason: "BadExpirationDate")), times: 1)
                ])
        ])
        try await RunningRelay.with(script: script) { relay in
            try await relay.container.save(.query("q"), as: "bob")
            let position = try await ExplainScenarioTests.post(.change("create", "a1"), relay)
            try await relay.relay.waitUntilSettled(within: .patience)
            let health = try await Self.health("q", of: "bob", relay)
            #expect(health.value(at: ["fired"]) == 1)
            #expect(health.value(at: ["undelivered", "count"]) == 1)
            #expect(
                Self.timeless(health.value(at: ["undelivered", "last"])) == [
                    "position": .string(position), "reason": "BadExpirationDate",
                ])
        }
    }

    @Test func `firings before the examined changes are found by explain`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await relay.container.save(.query("q", "price < 100"))
            var positions: [String] = []
            for number in 1...4 {
                positions.append(
                    try await ExplainScenarioTests.post(
                        .change("create", "a\(number)", ["price": number < 3 ? 1 : 120]), relay))
            }
            try await relay.relay.waitUntilSettled(within: .patience)
            let reply = try await ExplainScenarioTests.ask(
                ["subscriptionID": "q", "limit": 2], relay)
            let sentence = reply["sentence"]?.text ?? ""
            #expect(sentence.contains("0 fired it"), "\(sentence)")
            #expect(
                sentence.contains(
                    "Since it was saved it has fired 2 times, the last time by the change at "
                        + "position \(positions[1])"), "\(sentence)")
        }
    }
}
