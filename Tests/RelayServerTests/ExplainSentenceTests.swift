import RelayModel
import RelayTestKit
import Testing

@testable import RelayServer

/// The one sentence with which explain summarises several changes, or says that it found nothing.
@Suite(.serialized, .timeLimit(.minutes(30))) struct ExplainSentenceTests {
    private typealias Scenario = ExplainScenarioTests

    @Test func `several changes are summarised by changes, and one change by subscriptions`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await relay.container.save(
                .query("q", "price < 100", firesOn: ["create", "update"]))
            _ = try await Scenario.post(.change("create", "a1", ["price": 120]), relay)
            let last = try await Scenario.post(.change("update", "a1", ["price": 20]), relay)
            try await relay.relay.waitUntilSettled(within: .patience)
            let record: JSONObject = ["recordType": "Artwork", "recordName": "a1"]
            let all = try await Scenario.ask(.object(record), relay)
            #expect(all["sentence"] == "Of 2 changes, 1 fired a subscription.", "\(all.text)")
            var named = record
            named["subscriptionID"] = "q"
            let one = try await Scenario.ask(.object(named), relay)
            #expect(one["sentence"] == "Of 2 changes, 1 fired it.", "\(one.text)")
            try await relay.container.save(
                .query("dear", "price > 100", firesOn: ["create", "update"]))
            let next = try await Scenario.post(.change("update", "a1", ["price": 30]), relay)
            try await relay.relay.waitUntilSettled(within: .patience)
            let both = try await Scenario.ask(["position": .string(next)], relay)
            #expect(both["sentence"] == "1 of 2 subscriptions fired.", "\(both.text)")
            // The question names the wrong database.
            let other = try await Scenario.ask(
                ["position": .string(last)], relay, in: "private")
            #expect(
                other["sentence"]
                    == .string(
                        "The change was in the public database, and alice had no subscription in "
                            + "the private one when it came."),
                "\(other.text)")
        }
    }

    @Test func `records with one name in two zones are distinguished`() async throws {
        try await RunningRelay.with { relay in
            try await relay.container.save(.query("q"))
            let plain = try await Scenario.post(.change("create", "a1"), relay)
            let gallery = try await Scenario.post(
                .change("create", "a1", adding: ["zoneID": "gallery"]), relay)
            try await relay.relay.waitUntilSettled(within: .patience)
            for (zone, positions) in [
                ("gallery", [gallery]), ("_defaultZone", [plain]), ("other", []),
            ] as [(String, [String])] {
                let reply = try await Scenario.ask(
                    [
                        "recordType": "Artwork", "recordName": "a1",
                        "zoneID": ["zoneName": .string(zone)],
                    ], relay)
                guard case .array(let found)? = reply["explanations"] else {
                    Issue.record("\(reply.text)")
                    continue
                }
                #expect(
                    found.compactMap { $0.value(at: ["position"]) }
                        == positions.map { JSONValue.string($0) },
                    "\(zone): \(reply.text)")
            }
        }
    }

    @Test func `a question with only a subscription covers its former versions too`() async throws {
        try await RunningRelay.with { relay in
            try await relay.container.save(.query("q"))
            let fired = try await Scenario.post(.change("create", "a1"), relay)
            try await relay.relay.waitUntilSettled(within: .patience)
            _ = try await relay.container.call(
                "subscriptions/modify",
                [
                    "operations": [
                        [
                            "operationType": "update",
                            "subscription": .query(
                                "q", adding: ["query": ["recordType": "Artist"]]),
                        ]
                    ]
                ], as: "alice", in: "public"
            ).expect(200)
            _ = try await Scenario.post(
                .change("create", "b1", adding: ["recordType": "Gallery"]), relay)
            try await relay.relay.waitUntilSettled(within: .patience)
            let reply = try await Scenario.ask(["subscriptionID": "q"], relay)
            #expect(
                reply["sentence"]
                    == .string(
                        "Of the last change that it could watch, 1 fired it, and 0 missed by one "
                            + "comparison."),
                "\(reply.text)")
            #expect(reply["explanations", "0", "position"] == .string(fired))
        }
    }

    @Test func `a condition that never holds has no near misses, and a lack of changes is said`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await relay.container.save(.query("never", "FALSEPREDICATE"))
            let none = try await Scenario.ask(["subscriptionID": "never"], relay)
            let sentence = none["sentence"]?.string ?? ""
            #expect(
                sentence.hasPrefix("The log has no change that it could watch from "),
                "\(none.text)")
            _ = try await Scenario.post(.change("create", "a1", ["price": 1]), relay)
            try await relay.relay.waitUntilSettled(within: .patience)
            let reply = try await Scenario.ask(["subscriptionID": "never"], relay)
            #expect(
                reply["sentence"]
                    == .string(
                        "Of the last change that it could watch, 0 fired it, and 0 missed by one "
                            + "comparison."),
                "\(reply.text)")
            #expect(reply["others"] == 1)
        }
    }

    @Test func `without a database the operator gets the one that has the subscription`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await relay.container.save(.query("mine", "price < 100"), in: "private")
            let own: JSONObject = ["database": "private", "owner": "alice"]
            _ = try await Scenario.post(.change("create", "a1", ["price": 120], adding: own), relay)
            try await relay.relay.waitUntilSettled(within: .patience)
            let path = "\(relay.container.path)/explain?subscription=mine&user=alice"
            let reply = try await relay.client.administer("GET", path).expect(200)
            #expect(
                reply["explanations", "0", "sentence"]
                    == "Did not fire: price was 120, and the condition asks for price < 100.",
                "\(reply.text)")
            // Of several subscriptions with this ID, the one that still exists is meant.
            try await relay.container.save(.query("mine", "price < 7"))
            _ = try await relay.container.call(
                "subscriptions/modify",
                [
                    "operations": [
                        ["operationType": "delete", "subscription": ["subscriptionID": "mine"]]
                    ]
                ], as: "alice", in: "public"
            ).expect(200)
            let again = try await relay.client.administer("GET", path).expect(200)
            #expect(again["explanations"] == reply["explanations"], "\(again.text)")
        }
    }

    @Test func `a parked change belongs to a record only by its full name`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await relay.container.set(
                source: "shop",
                [
                    "preset": "belfry", "verification": ["scheme": "none"],
                    "onUnmappable": "park",
                ])
            for (id, name) in [("m1", "abc"), ("m2", "a")] {
                try await relay.container.post(
                    ["operation": "create", "recordName": .string(name)], to: "shop",
                    headers: ["webhook-id": id])
            }
            let reply = try await relay.client.administer(
                "GET",
                "\(relay.container.path)/explain?recordType=Whatever&recordName=a&user=alice")
            #expect(reply["parked"] == ["2"], "\(reply.text)")
            let sentence = reply["sentence"]?.string ?? ""
            #expect(sentence.hasSuffix(" 1 parked change may belong to it."), "\(sentence)")
        }
    }
}
