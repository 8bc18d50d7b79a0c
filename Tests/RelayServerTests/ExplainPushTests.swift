import GatewaySimulator
import RelayModel
import RelayServer
import RelayTestKit
import Testing

/// What `subscriptions/explain` reports about devices, and about what intervened between a change
/// and its push.
@Suite(.serialized, .timeLimit(.minutes(30))) struct ExplainPushTests {
    private typealias Scenario = ExplainScenarioTests

    @Test func `a forgotten token is explained by the gateway's answer`() async throws {
        let tablet = SampleDevice.usual[1]
        let script = AnswerScript([
            ScriptRule(
                .device(tablet.token),
                [ScriptedAnswer(.refuse(.init(status: 410, reason: "Unregistered")))])
        ])
        try await RunningRelay.with(script: script) { relay in
            try await relay.container.save(.query("q", "price < 100"))
            let first = try await Scenario.post(.change("create", "a1", ["price": 1]), relay)
            try await relay.relay.waitUntilSettled(within: .patience)
            let second = try await Scenario.post(.change("create", "a2", ["price": 1]), relay)
            try await relay.relay.waitUntilSettled(within: .patience)
            let refused = try await Self.tablet(first, relay)
            #expect(refused?.value(at: ["standing"]) == "dead", "\(refused?.text ?? "")")
            #expect(
                refused?.value(at: ["sentence"])
                    == "The gateway refused it: 410 Unregistered.")
            let forgotten = try await Self.tablet(second, relay)
            #expect(forgotten?.value(at: ["step"]) == "registered")
            let sentence = forgotten?.value(at: ["sentence"])?.text ?? ""
            #expect(sentence.contains("Its token was forgotten at position"), "\(sentence)")
            #expect(sentence.contains("answered 410 Unregistered to the delivery"), "\(sentence)")
            #expect(sentence.contains("of the change at \(first)."), "\(sentence)")
            // A new registration gets nothing for earlier changes.
            try await relay.container.register(tablet)
            let early = try await Self.tablet(second, relay)
            #expect(early?.value(at: ["step"]) == "registered", "\(early?.text ?? "")")
        }
    }

    private static func tablet(
        _ position: String, _ relay: RunningRelay
    ) async throws -> JSONValue? {
        let reply = try await Scenario.ask(
            ["position": .string(position), "deviceID": "tablet"], relay)
        return reply["explanations", "0", "devices", "0"]
    }

    @Test func `a waiting delivery is explained with its reason and its end`() async throws {
        let script = AnswerScript.all(
            ScriptedAnswer(.refuse(.init(status: 503, reason: "ServiceUnavailable"))))
        try await RunningRelay.with(script: script) { relay in
            try await relay.container.save(.query("q", "price < 100"))
            let position = try await Scenario.post(.change("create", "a1", ["price": 1]), relay)
            try await relay.relay.waitUntilSettled(within: .patience)
            let reply = try await Scenario.ask(["position": .string(position)], relay)
            let device = reply["explanations", "0", "devices", "1"]
            #expect(device?.value(at: ["standing"]) == "waiting", "\(reply.text)")
            let sentence = device?.value(at: ["sentence"])?.text ?? ""
            #expect(sentence.contains("It waits until 2"), "\(sentence)")
            #expect(sentence.contains("ServiceUnavailable"), "\(sentence)")
        }
    }

    @Test func `a halt that holds a push is named`() async throws {
        let script = AnswerScript.all(
            ScriptedAnswer(.refuse(.init(status: 403, reason: "BadCertificateEnvironment"))))
        try await RunningRelay.with(script: script) { relay in
            try await relay.container.save(.query("q"))
            let position = try await Scenario.post(.change("create", "a1"), relay)
            try await relay.relay.waitUntilSettled(within: .patience)
            let reply = try await Scenario.ask(["position": .string(position)], relay)
            let sentence =
                reply["explanations", "0", "devices", "0", "sentence"]?.string ?? ""
            #expect(
                sentence.hasSuffix(
                    ": the container's credential (development) is halted: "
                        + "BadCertificateEnvironment."),
                "\(reply.text)")
        }
    }

    @Test func `stale, merged and hidden changes each have their own step`() async throws {
        try await RunningRelay.with { relay in
            let silent: JSONObject = ["shouldSendContentAvailable": true]
            try await relay.container.save(
                .query("s1", firesOn: ["create", "update"], info: silent),
                .query("s2", "price > 0", firesOn: ["create", "update"], info: silent))
            let fresh = try await Scenario.post(
                .change("create", "a1", ["price": 1], adding: ["version": 5]), relay)
            let stale = try await Scenario.post(
                .change("update", "a1", ["price": 2], adding: ["version": 4]), relay)
            for price in 3..<7 as Range<Int64> {
                try await relay.container.post(
                    .change(
                        "update", "a1", ["price": .integer(price)],
                        adding: ["readers": ["bob"]]))
            }
            try await relay.relay.waitUntilSettled(within: .patience)
            let second = try await Scenario.ask(
                ["position": .string(fresh), "subscriptionID": "s2"], relay)
            #expect(second["explanations", "0", "devices", "0", "step"] == "merged")
            #expect(second["explanations", "0", "devices", "0", "deliveryID"] == nil)
            let old = try await Scenario.ask(
                ["position": .string(stale), "subscriptionID": "s1"], relay)
            #expect(
                old["sentence"]
                    == .string(
                        "Did not fire: the change was stale: a newer version of the record had "
                            + "been applied before it."), "\(old.text)")
            // Hidden changes do not count towards the limit of the list.
            let record = try await Scenario.ask(
                [
                    "recordType": "Artwork", "recordName": "a1", "subscriptionID": "s1",
                    "limit": 2,
                ], relay)
            #expect(
                record["explanations", "0", "position"] == .string(stale), "\(record.text)")
            #expect(record["explanations", "1", "position"] == .string(fresh))
        }
    }

    @Test func `the device that made a change is only named to its user and the operator`()
        async throws
    {
        try await RunningRelay.with { relay in
            let silent: JSONObject = ["shouldSendContentAvailable": true]
            try await relay.container.save(
                .query("s1", info: silent), .query("s2", "price > 0", info: silent))
            for (origin, mayKnow) in [
                (["deviceID": "a-device", "userRecordName": "bob"], false),
                (["deviceID": "a-device"], false),
                (["deviceID": "tablet", "userRecordName": "alice"], true),
            ] as [(JSONValue, Bool)] {
                let name = try #require(origin.value(at: ["deviceID"]))
                let position = try await Scenario.post(
                    .change("create", "a1", ["price": 1], adding: ["origin": origin]), relay)
                try await relay.relay.waitUntilSettled(within: .patience)
                let reply = try await Scenario.ask(
                    [
                        "position": .string(position), "subscriptionID": "s2",
                        "deviceID": "phone",
                    ], relay)
                #expect(
                    reply["explanations", "0", "devices", "0", "step"] == "merged",
                    "\(reply.text)")
                let device = reply["explanations", "0", "devices", "0"]
                let told: JSONValue? = mayKnow ? name : nil
                #expect(
                    device?.value(at: ["steps", "1", "facts", "originDevice"]) == told,
                    "\(reply.text)")
                let operatorsView = try await relay.client.administer(
                    "GET",
                    "\(relay.container.path)/explain?position=\(position)&subscription=s2"
                        + "&user=alice&device=phone")
                let seen = operatorsView["explanations", "0", "devices", "0"]
                #expect(
                    seen?.value(at: ["steps", "1", "facts", "originDevice"]) == name,
                    "\(operatorsView.text)")
            }
        }
    }

    @Test func `a device registered too late gets its own reason`() async throws {
        try await RunningRelay.with { relay in
            try await relay.container.save(.query("q"))
            let position = try await Scenario.post(.change("create", "a1"), relay)
            try await relay.relay.waitUntilSettled(within: .patience)
            try await relay.container.register(SampleDevice(name: "late", owner: "alice"))
            let reply = try await Scenario.ask(
                ["position": .string(position), "deviceID": "late"], relay)
            let sentence = reply["sentence"]?.string ?? ""
            #expect(
                sentence.hasPrefix("Fired. late: it was registered after the change, at position"),
                "\(reply.text)")
            #expect(reply.text.contains("alice had 2 devices"), "\(reply.text)")
            let one = try await Scenario.ask(
                ["position": .string(position), "deviceID": "phone"], relay)
            #expect(one.text.contains("alice had 2 devices"), "\(one.text)")
        }
    }

    @Test func `questions beyond the places are refused`() async throws {
        try await RunningRelay.with(["--queries-per-container", "1"]) { relay in
            try await relay.container.save(.query("q"))
            let position = try await Scenario.post(.change("create", "a1"), relay)
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<40 {
                    group.addTask {
                        try await Scenario.ask(["position": .string(position)], relay).status
                    }
                }
                return try await group.reduce(into: Set<Int>()) { $0.insert($1) }
            }
            #expect(statuses.isSubset(of: [200, 429]), "\(statuses)")
            #expect(statuses.contains(200))
        }
    }
}
