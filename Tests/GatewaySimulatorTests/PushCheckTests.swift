import Foundation
import GatewaySimulator
import Testing

/// A push, and the expected answer of the gateway.
struct CheckCase: Sendable, CustomTestStringConvertible {
    var name: String
    var answer: String
    var push: TestPush
    var testDescription: String { name }

    init(_ name: String, _ answer: String, _ push: TestPush) {
        self.name = name
        self.answer = answer
        self.push = push
    }

    init(_ name: String, _ answer: String, _ headers: [String: String?]) {
        self.init(name, answer, TestPush().with(headers))
    }

    static func refused(_ status: Int, _ reason: String) -> String {
        #"\#(status) {"reason":"\#(reason)"}"#
    }
}

@Suite(.timeLimit(.minutes(30))) struct PushCheckTests {
    @Test(arguments: routes + tokens + topics + types + identifiers + payloads)
    func `each rule of APNs has its status and reason`(example: CheckCase) async throws {
        try await SimulatedGateway.run { gateway in
            let sender = try await TestSender.connect(to: gateway)
            let outcome = await sender.send(example.push)
            #expect(outcome.summary == example.answer)
            let push = try #require(gateway.pushes.first)
            #expect(push.isAccepted == (example.answer == "200"))
            #expect((push.explanation == nil) == (example.answer == "200"))
        }
    }

    static let routes = [
        CheckCase("a valid push", "200", TestPush()),
        CheckCase("GET", CheckCase.refused(405, "MethodNotAllowed"), changed { $0.method = "GET" }),
        CheckCase("a strange path", CheckCase.refused(404, "BadPath"), changed { $0.path = "/" }),
        CheckCase(
            "a longer path", CheckCase.refused(404, "BadPath"), changed { $0.path += "/more" }),
        CheckCase(
            "no device token", CheckCase.refused(400, "MissingDeviceToken"),
            changed { $0.path = "/3/device/" }),
    ]

    static let tokens = [
        CheckCase(
            "a token that is not hexadecimal", CheckCase.refused(400, "BadDeviceToken"),
            changed { $0.path = "/3/device/xyz0" }),
        CheckCase(
            "half a byte", CheckCase.refused(400, "BadDeviceToken"),
            changed { $0.path = "/3/device/abc" }),
        CheckCase("a token of 512 digits", "200", changed { $0.path = path(digits: 512) }),
        CheckCase(
            "a token of 514 digits", CheckCase.refused(400, "BadDeviceToken"),
            changed { $0.path = path(digits: 514) }),
        CheckCase("capital digits", "200", changed { $0.path = "/3/device/ABCDEF" }),
    ]

    static let topics = [
        CheckCase("no topic", CheckCase.refused(400, "MissingTopic"), ["apns-topic": nil]),
        CheckCase("a bad topic", CheckCase.refused(400, "BadTopic"), ["apns-topic": "a b"]),
        CheckCase(
            "a topic without its suffix", CheckCase.refused(400, "BadTopic"),
            ["apns-push-type": "voip"]),
        CheckCase(
            "a topic with its suffix", "200",
            ["apns-push-type": "voip", "apns-topic": "com.example.Art.voip"]),
        CheckCase(
            "a header twice", CheckCase.refused(400, "DuplicateHeaders"),
            changed { $0.headers.append(("apns-topic", "com.example.Art")) }),
    ]

    static let types = [
        CheckCase("no push type", "200", ["apns-push-type": nil]),
        CheckCase("a bad type", CheckCase.refused(400, "InvalidPushType"), ["apns-push-type": "x"]),
        CheckCase("background with 5", "200", background(priority: "5")),
        CheckCase(
            "background with 10", CheckCase.refused(400, "BadPriority"),
            background(priority: "10")),
        CheckCase(
            "background without", CheckCase.refused(400, "BadPriority"),
            background(priority: nil)),
        CheckCase("alert with 1", "200", ["apns-priority": "1"]),
        CheckCase("priority 7", CheckCase.refused(400, "BadPriority"), ["apns-priority": "7"]),
        CheckCase("priority 05", CheckCase.refused(400, "BadPriority"), ["apns-priority": "05"]),
    ]

    static let identifiers = [
        CheckCase("an identifier", "200", ["apns-id": TestPush.apnsID(7)]),
        CheckCase(
            "an identifier in capitals", CheckCase.refused(400, "BadMessageId"),
            ["apns-id": "ABCDEF00-0000-4000-8000-000000000000"]),
        CheckCase("a short identifier", CheckCase.refused(400, "BadMessageId"), ["apns-id": "1"]),
        CheckCase("expiration 0", "200", ["apns-expiration": "0"]),
        CheckCase(
            "expiration with a sign", CheckCase.refused(400, "BadExpirationDate"),
            ["apns-expiration": "-1"]),
        CheckCase(
            "expiration as a date", CheckCase.refused(400, "BadExpirationDate"),
            ["apns-expiration": "tomorrow"]),
        CheckCase("64 bytes to collapse by", "200", ["apns-collapse-id": text(bytes: 64)]),
        CheckCase(
            "65 bytes to collapse by", CheckCase.refused(400, "BadCollapseId"),
            ["apns-collapse-id": text(bytes: 65)]),
    ]

    static let payloads = [
        CheckCase("4096 bytes", "200", changed { $0.body = payload(bytes: 4096) }),
        CheckCase(
            "4097 bytes", CheckCase.refused(413, "PayloadTooLarge"),
            changed { $0.body = payload(bytes: 4097) }),
        CheckCase(
            "5120 bytes of voip", "200",
            changed(payload(bytes: 5120), ["apns-push-type": "voip", "apns-topic": "a.voip"])),
        CheckCase(
            "16 kB", CheckCase.refused(413, "PayloadTooLarge"),
            changed { $0.body = payload(bytes: 16_000) }),
        CheckCase("nothing", CheckCase.refused(400, "PayloadEmpty"), changed { $0.body = "" }),
        CheckCase(
            "half an object", CheckCase.refused(400, "PayloadEmpty"), changed { $0.body = "{" }),
        CheckCase("a list", CheckCase.refused(400, "PayloadEmpty"), changed { $0.body = "[]" }),
    ]

    static func changed(_ change: (inout TestPush) -> Void) -> TestPush {
        var push = TestPush()
        change(&push)
        return push
    }

    static func changed(_ body: String, _ headers: [String: String?]) -> TestPush {
        var push = TestPush().with(headers)
        push.body = body
        return push
    }

    static func background(priority: String?) -> [String: String?] {
        ["apns-push-type": "background", "apns-priority": priority]
    }

    static func path(digits: Int) -> String {
        "/3/device/" + String(repeating: "0", count: digits)
    }

    static func text(bytes: Int) -> String {
        String(repeating: "x", count: bytes)
    }

    static func payload(bytes: Int) -> String {
        let frame = #"{"a":""}"#
        return #"{"a":"\#(text(bytes: bytes - frame.utf8.count))"}"#
    }
}

@Suite(.timeLimit(.minutes(30))) struct DeviceTests {
    @Test func `the state of a device decides after the checks`() async throws {
        let since = Date(timeIntervalSince1970: 1_700_000_000.5)
        let standings: [(DeviceStanding, String)] = [
            (.registered(topics: nil), "200"),
            (.registered(topics: ["com.example.Art"]), "200"),
            (.registered(topics: ["com.example.Other"]), "400 DeviceTokenNotForTopic"),
            (.unregistered(since: since), "410 Unregistered"),
            (.expired(since: since), "410 ExpiredToken"),
            (.otherEnvironment, "400 BadDeviceToken"),
        ]
        try await SimulatedGateway.run { gateway in
            let sender = try await TestSender.connect(to: gateway)
            for (standing, answer) in standings {
                gateway.setStanding(standing, of: TestPush.token.uppercased())
                await sender.send(TestPush())
                let push = try #require(gateway.pushes.last)
                #expect(SimulatedGateway.describe(push.answer).hasPrefix(answer))
            }
        }
    }

    @Test func `an unregistered token is reported with its moment in milliseconds`() async throws {
        let since = Date(timeIntervalSince1970: 1_700_000_000.5)
        try await SimulatedGateway.run {
            $0.devices = [TestPush.token: .unregistered(since: since)]
        } _: { gateway in
            let sender = try await TestSender.connect(to: gateway)
            let outcome = await sender.send(TestPush())
            #expect(
                outcome.summary == #"410 {"reason":"Unregistered","timestamp":1700000000500}"#)
        }
    }

    @Test func `devices and topics may be limited to those that are known`() async throws {
        try await SimulatedGateway.run {
            $0.unknownDevices = .refused
            $0.topics = ["com.example.Art"]
            $0.missingPushType = .refused
        } _: { gateway in
            let sender = try await TestSender.connect(to: gateway)
            let unknown = await sender.send(TestPush())
            #expect(unknown.summary == CheckCase.refused(400, "BadDeviceToken"))
            gateway.setStanding(.registered(topics: nil), of: TestPush.token)
            let known = await sender.send(TestPush())
            #expect(known.summary == "200")
            let topic = await sender.send(TestPush().with(["apns-topic": "com.example.Other"]))
            #expect(topic.summary == CheckCase.refused(400, "TopicDisallowed"))
            let type = await sender.send(TestPush().with(["apns-push-type": nil]))
            #expect(type.summary == CheckCase.refused(400, "InvalidPushType"))
        }
    }
}
