import HTTPTypes
import RelayModel
import RelayServer
import RelayTestKit
import Storage
import Testing

/// Requests that are refused as a whole, each with its documented status, code and reason.
@Suite struct BadInputScenarioTests {
    private static func modify(
        _ description: String, _ body: String?, _ status: Int, _ code: String, _ reason: String
    ) -> HTTPScenario {
        .modify(description, body, status: status, code: code, reason: reason)
    }

    private static func register(
        _ description: String, _ body: String, _ status: Int, _ reason: String?
    ) -> HTTPScenario {
        HTTPScenario(
            testDescription: description,
            target: "/device/1/iCloud.com.example.Art/development/tokens/register"
                + TestRelay.query(),
            body: body, status: status, code: reason == nil ? nil : "BAD_REQUEST", reason: reason)
    }

    private static let token = String(repeating: "ab", count: 32)
    private static let manyOperations =
        #"{"operations":["# + Array(repeating: "{}", count: 201).joined(separator: ",") + "]}"

    static let scenarios = [
        modify(
            "no body", nil, 400, "BAD_REQUEST",
            "the body must be a JSON object, but it is empty"),
        modify(
            "malformed JSON", #"{"operations":[}"#, 400, "BAD_REQUEST",
            "not JSON at byte 15: a value is expected"),
        modify(
            "another kind of JSON", "[]", 400, "BAD_REQUEST",
            "an object is expected, found an array"),
        modify(
            "a wrong type", #"{"operations":{}}"#, 400, "BAD_REQUEST",
            "operations: an array is expected, found an object"),
        modify(
            "an unknown field", #"{"operations":[],"atomc":true}"#, 400, "BAD_REQUEST",
            "atomc: unknown field; allowed are operations, atomic, clientId, clientID, "
                + "zoneID, desiredKeys, numbersAsStrings, resultsLimit"),
        modify(
            "no operations", "{}", 400, "BAD_REQUEST", "operations: is required"),
        modify(
            "too many operations", manyOperations, 400, "BAD_REQUEST",
            "operations: 201 in one request; allowed are 200"),
        modify(
            "nesting without end", String(repeating: "[", count: 200), 400, "BAD_REQUEST",
            "not JSON at byte 129: nested deeper than 128 levels"),
        HTTPScenario.modify(
            "too many to look up",
            #"{"subscriptions":["#
                + Array(repeating: #""a""#, count: 201).joined(separator: ",") + "]}",
            status: 400, code: "BAD_REQUEST",
            reason: "subscriptions: 201 in one request; allowed are 200", action: "lookup"),
        HTTPScenario(
            testDescription: "a path that nobody knows", method: .get, target: "/database/2",
            status: 404, code: "NOT_FOUND", reason: "there is no call at /database/2"),
        HTTPScenario(
            testDescription: "a method that the path does not have", method: .put,
            target: TestRelay.path + "/public/subscriptions/list" + TestRelay.query(),
            status: 405, code: "BAD_REQUEST",
            reason: "PUT is not allowed here; allowed: GET, HEAD, OPTIONS, POST"),
        HTTPScenario(
            testDescription: "a method that no path has", method: .trace,
            target: TestRelay.path + "/public/subscriptions/list" + TestRelay.query(),
            status: 405, code: "BAD_REQUEST",
            reason: "TRACE is not allowed here; allowed: GET, HEAD, OPTIONS, POST"),
        HTTPScenario(
            testDescription: "a method that no path has, where there is none", method: .trace,
            target: "/database/2", status: 404, code: "NOT_FOUND",
            reason: "there is no call at /database/2"),
        register(
            "a token", #"{"apnsEnvironment":"development","apnsToken":"\#(token)"}"#, 200, nil),
        register(
            "a token that is not hex", #"{"apnsEnvironment":"development","apnsToken":"xyz"}"#, 400,
            "apnsToken: is not \(DeviceToken.rule), or 32 bytes in base64"),
        register(
            "an environment that is none",
            #"{"apnsEnvironment":"sandbox","apnsToken":"\#(token)"}"#,
            400,
            "apnsEnvironment: \"sandbox\" is unknown; allowed are \"development\", \"production\""),
        register(
            "no token", #"{"apnsEnvironment":"development"}"#, 400, "apnsToken: is required"),
        register(
            "a topic of another application",
            #"{"apnsEnvironment":"development","apnsToken":"\#(token)","topic":"com.evil"}"#, 400,
            "topic: \"com.evil\" is not one of this container's topics: com.example.Art, "
                + "com.example.Art.clip"),
        register(
            "a badge below nothing",
            #"{"apnsEnvironment":"development","apnsToken":"\#(token)","badge":-1}"#, 400,
            "badge: must be 0 to 1000000"),
    ]

    @Test func `each bad request is refused with its reason`() async throws {
        try await TestRelay.with { relay in
            for one in Self.scenarios { try await one.check(on: relay) }
        }
    }

    /// The gateway would refuse the topic, and all its pushes would wait.
    @Test func `a topic in another spelling is another topic`() async throws {
        try await TestRelay.with { relay in
            let saved = try await relay.admin(
                .patch, "containers/iCloud.com.example.Art/development",
                #"{"topics":["com.example.Kiosk"]}"#)
            #expect(saved.status == 200, "\(saved.text)")
            // The second topic begins with the Kelvin sign, U+212A, instead of a K.
            for (topic, status) in [("com.example.Kiosk", 200), ("com.example.\u{212A}iosk", 400)] {
                let answer = try await relay.call(
                    .post,
                    "/device/1/iCloud.com.example.Art/development/tokens/register"
                        + TestRelay.query(),
                    body: #"{"apnsEnvironment":"development","apnsToken":"\#(Self.token)","#
                        + #""topic":"\#(topic)"}"#)
                #expect(answer.status == status, "\(answer.text)")
            }
        }
    }

    @Test func `a body over the limit is refused before it is read`() async throws {
        let limits = RequestLimits(requestBytes: 100, webhookBytes: 100)
        try await TestRelay.with(limits: limits) { relay in
            let answer = try await relay.post(
                "subscriptions/modify", String(repeating: " ", count: 101))
            #expect(answer.status == 413)
            #expect(answer["serverErrorCode"] == "QUOTA_EXCEEDED")
            #expect(answer["reason"] == "the body is larger than 100 bytes")
        }
    }

    @Test func `limits for clients and sources do not apply to the operator`() async throws {
        let limits = RequestLimits(requestBytes: 100, webhookBytes: 100)
        let path = "containers/iCloud.com.example.Art/development"
        try await TestRelay.with(limits: limits) { relay in
            let blanks = String(repeating: " ", count: 101)
            let set = try await relay.admin(.patch, path, #"{"keepsInbox":true}"# + blanks)
            #expect(set.status == 200, "\(set.text)")
            let made = try await relay.admin(
                .put, "\(path)/sources/shop",
                #"{"preset":"belfry","verification":{"scheme":"none"},"maximumBodyBytes":4194304}"#
                    + blanks)
            #expect(made.status == 201, "\(made.text)")
            // The limit is that for webhooks, because the operator sends the change in place of the
            // source.
            let change = #"{"operation":"create","recordType":"Art","recordName":"a","after":{}}"#
            for (length, status) in [
                (Limits.maximumWebhookBytes, 200), (Limits.maximumWebhookBytes + 1, 413),
            ] {
                let sent = try await relay.admin(
                    .post, "\(path)/sources/shop/send",
                    change + String(repeating: " ", count: length - change.utf8.count))
                #expect(sent.status == status, "\(sent.text)")
            }
        }
    }

    @Test func `browsers learn which headers they may send and read`() async throws {
        try await TestRelay.with { relay in
            let answer = try await relay.call(
                .options, TestRelay.path + "/public/subscriptions/modify")
            #expect(answer.status == 204)
            #expect(answer.headers[.accessControlAllowMethods] == "OPTIONS, POST")
            #expect(
                answer.headers[.accessControlExposeHeaders]?.contains(
                    "X-Apple-CloudKit-Web-Auth-Token") == true)
        }
    }

    @Test func `no body makes the relay fail`() async throws {
        try await TestRelay.with { relay in
            var generator = SeededGenerator(seed: 2)
            let seeds = [
                SubscriptionScenarioTests.create(SubscriptionScenarioTests.query("q")),
                #"{"subscriptions":[{"subscriptionID":"a"},"b"]}"#,
                #"{"apnsEnvironment":"development","apnsToken":"\#(Self.token)"}"#,
            ]
            let targets = [
                TestRelay.path + "/public/subscriptions/modify",
                TestRelay.path + "/private/subscriptions/lookup",
                "/device/1/iCloud.com.example.Art/development/tokens/register",
                "/database/1/iCloud.com.example.Art/development/tokens/create",
                "/changes/1/iCloud.com.example.Art/development/none",
            ]
            for round in 0..<400 {
                let body = Mutation.mutate(seeds[round % seeds.count], using: &generator)
                // CloudKit JS gets an empty answer to a registration.
                let target =
                    targets[round % targets.count]
                    + TestRelay.query().replacing("ckjsVersion=2.0.3&", with: "")
                let answer = try await relay.call(.post, target, body: body)
                #expect(answer.status < 500, "\(body) → \(answer.text)")
                #expect(answer.json != .null, "\(body) → \(answer.text)")
            }
        }
    }
}

/// Bodies that are almost right.
enum Mutation {
    private static let splinters = [
        "null", "-1", "1e999", "\"\"", "[]", "{}", "true", "\"\\ud800\"", "9223372036854775808",
        "\u{0}", "\"𝄞\"", ",", "}", "\"subscriptionID\":",
    ]

    static func mutate(_ text: String, using generator: inout SeededGenerator) -> String {
        var characters = Array(text)
        for _ in 0..<Int.random(in: 1...4, using: &generator) {
            guard !characters.isEmpty else { break }
            let index = Int.random(in: 0..<characters.count, using: &generator)
            switch Int.random(in: 0..<4, using: &generator) {
            case 0: characters.remove(at: index)
            case 1: characters.removeSubrange(index...)
            case 2:
                let splinter = splinters.randomElement(using: &generator) ?? ""
                characters.insert(contentsOf: splinter, at: index)
            default:
                let end = min(characters.count, index + 8)
                let splinter = splinters.randomElement(using: &generator) ?? ""
                characters.replaceSubrange(index..<end, with: splinter)
            }
        }
        return String(characters)
    }
}
