import Foundation
import GatewaySimulator
import RelayModel
import RelayTestKit
import Testing

/// What a push contains, and what happens if the gateway does not simply accept it.
@Suite(.serialized, .timeLimit(.minutes(30))) struct WalkDeliveryTests {
    // MARK: What a push says

    @Test func `a push carries the texts, arguments, fields and headers of the subscription`()
        async throws
    {
        let info: JSONObject = [
            "titleLocalizationKey": "TITLE", "titleLocalizationArgs": ["title"],
            "alertLocalizationKey": "BODY", "alertLocalizationArgs": ["title", "price", "none"],
            "subtitle": "Plain", "soundName": "chime", "category": "ART", "collapseIDKey": "art",
            "desiredKeys": ["title", "made"], "shouldSendContentAvailable": true,
            "shouldSendMutableContent": true, "expirationSeconds": 600, "priority": 5,
        ]
        try await RunningRelay.with { relay in
            try await relay.container.save(.query("q", info: info), as: "bob")
            let began = Date().timeIntervalSince1970
            try await relay.container.post(
                .change(
                    "create", "a1",
                    ["title": "Nocturne", "price": 120, "made": ["$date": 1_700_000_000]]))
            let push = try #require(try await relay.pushes(1).first)
            #expect(
                push.json.value(at: ["aps"]) == [
                    "alert": [
                        "title-loc-key": "TITLE", "title-loc-args": ["Nocturne"],
                        "loc-key": "BODY", "loc-args": ["Nocturne", "120", ""],
                        "subtitle": "Plain",
                    ], "sound": "chime", "category": "ART", "content-available": 1,
                    "mutable-content": 1,
                ])
            #expect(
                push.json.value(at: ["ck", "qry"]) == [
                    "af": ["title": "Nocturne", "made": 1_700_000_000_000], "dbs": 2, "fo": 1,
                    "rid": "a1", "sid": "q", "zid": "_defaultZone", "zoid": "_defaultOwner",
                ])
            #expect(push.header("apns-topic") == "com.example.Art")
            #expect(push.header("apns-push-type") == "alert")
            #expect(push.header("apns-priority") == "5")
            #expect(push.header("apns-collapse-id") == "art")
            #expect(push.header("apns-id") == push.apnsID)
            let expiration = try #require(push.header("apns-expiration").flatMap(Double.init))
            #expect((began + 599...began + 660).contains(expiration))
            #expect(push.isAccepted)
        }
    }

    @Test
    func `a subscription with nothing to show sends one background push per device`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await relay.container.save(
                .query("q1", info: [:]),
                .query("q2", "price = 1", info: ["desiredKeys": ["price"]]),
                as: "bob")
            try await relay.container.post(.change("create", "a1", ["price": 1]))
            let arrivals = try await relay.arrivals()
            #expect(arrivals == ["bobs: qry q1 created a1"])
            let push = try #require(relay.gateway.simulated.pushes.first)
            #expect(push.json.value(at: ["aps"]) == ["content-available": 1])
            #expect(push.header("apns-push-type") == "background")
            #expect(push.header("apns-priority") == "5")
        }
    }

    @Test(arguments: ["alertBody", "alertLocalizationKey", "soundName"])
    func `a push with an empty text is a background push`(
        name: String
    ) async throws {
        try await RunningRelay.with { relay in
            try await relay.container.save(
                .query("q", info: JSONObject([(name: name, value: "")])), as: "bob")
            try await relay.container.post(.change("create", "a1"))
            #expect(try await relay.arrivals() == ["bobs: qry q created a1"])
            let push = try #require(relay.gateway.simulated.pushes.first)
            #expect(push.json.value(at: ["aps"]) == ["content-available": 1])
            #expect(push.header("apns-push-type") == "background")
        }
    }

    @Test func `one change gives a user one notification ID and each push its own ID`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await relay.container.save(.query("q1"), .query("q2", "price = 1"))
            try await relay.container.save(.query("q"), as: "bob")
            try await relay.container.post(.change("create", "a1", ["price": 1]))
            let arrivals = try await relay.arrivals()
            #expect(arrivals.count == 5)
            let pushes = relay.gateway.simulated.pushes
            let identities = pushes.map { push in
                (push.deviceName == "bobs", push.json.value(at: ["ck", "nid"])?.text)
            }
            #expect(Set(identities.filter { $0.0 }.map(\.1)).count == 1)
            #expect(Set(identities.filter { !$0.0 }.map(\.1)).count == 1)
            #expect(Set(identities.map(\.1)).count == 2)
            #expect(Set(pushes.map(\.apnsID)).count == 5)
        }
    }

    @Test func `badges count for each device separately`() async throws {
        try await RunningRelay.with { relay in
            try await relay.container.save(
                .query("q", info: ["alertBody": "New", "shouldBadge": true]))
            for name in ["a1", "a2", "a3"] {
                let members: JSONObject = name == "a2" ? ["origin": ["deviceID": "phone"]] : [:]
                try await relay.container.post(.change("create", name, adding: members))
            }
            _ = try await relay.arrivals()
            var badges: [String: Set<JSONValue>] = [:]
            for push in relay.gateway.simulated.pushes {
                let badge = try #require(push.json.value(at: ["aps", "badge"]))
                badges[push.deviceName, default: []].insert(badge)
            }
            #expect(badges == ["phone": [1, 2], "tablet": [1, 2, 3]])
        }
    }

    @Test func `an application sets its badge, and counting continues from there`()
        async throws
    {
        let steps: [(name: String, badge: JSONValue?)] = [
            ("a1", nil), ("a2", nil), ("a3", 0), ("a4", nil), ("a5", 40),
        ]
        try await RunningRelay.with { relay in
            let container = relay.container
            try await container.save(
                .query("q", info: ["alertBody": "New", "shouldBadge": true]), as: "bob")
            let device = try #require(SampleDevice.usual.last)
            for (name, badge) in steps {
                var registration: JSONObject = [
                    "apnsToken": .string(device.token), "apnsEnvironment": "development",
                    "deviceID": .string(device.name),
                ]
                registration["badge"] = badge
                let reply = try await container.call(
                    "tokens/register", .object(registration), as: "bob", in: nil
                ).expect(200)
                #expect(reply["badge"] == badge, "\(reply.text)")
                try await container.post(.change("create", name))
                _ = try await relay.arrivals()
            }
            let badges: [JSONValue?] = relay.gateway.simulated.pushes.map {
                $0.json.value(at: ["aps", "badge"])
            }
            #expect(badges == [1, 2, 1, 2, 41])
        }
    }

    @Test func `a payload that is too large is pruned, marked and delivered`() async throws {
        try await RunningRelay.with { relay in
            try await relay.container.save(
                .query("q", info: ["alertBody": "New", "desiredKeys": ["text"]]), as: "bob")
            try await relay.container.post(
                .change("create", "a1", ["text": .string(String(repeating: "é", count: 4000))]))
            let push = try #require(try await relay.pushes(1).first)
            #expect(push.isAccepted && push.payload.count <= 4096)
            #expect(push.json.value(at: ["ck", "p"]) == 1)
            #expect(push.json.value(at: ["ck", "qry", "af"]) == nil)
            #expect(push.json.value(at: ["ck", "qry", "rid"]) == "a1")
            #expect(push.json.value(at: ["aps", "alert"]) == "New")
        }
    }

    // MARK: Refusals

    private static func refusing(
        _ device: String, _ refusal: GatewayRefusal, times: Int? = 1
    ) -> AnswerScript {
        AnswerScript([
            ScriptRule(
                .device(SampleDevice(name: device, owner: "").token),
                [ScriptedAnswer(.refuse(refusal), times: times)])
        ])
    }

    private static func devices(_ relay: RunningRelay) async throws -> [String] {
        let reply = try await relay.client.administer("GET", relay.container.path + "/devices")
            .expect(200)
        guard case .array(let devices)? = reply["devices"] else { return [] }
        return devices.compactMap { device in
            guard case .string(let id)? = device.value(at: ["deviceID"]) else { return nil }
            return id
        }.sorted()
    }

    @Test func `a token that the gateway calls dead is forgotten`()
        async throws
    {
        let gone = GatewayRefusal(
            status: 410, reason: "Unregistered", timestamp: Date().addingTimeInterval(60))
        try await RunningRelay.with(script: Self.refusing("phone", gone)) { relay in
            try await relay.container.save(.query("q"))
            try await relay.container.post(.change("create", "a1"))
            let first = try await relay.arrivals()
            #expect(first == ["phone: qry q created a1 (410)", "tablet: qry q created a1"])
            try await relay.container.post(.change("create", "a2"))
            let all = try await relay.arrivals()
            #expect(all == first + ["tablet: qry q created a2"])
            let devices = try await Self.devices(relay)
            #expect(devices == ["bobs", "tablet"])
            // After a new registration the device gets pushes again.
            try await relay.container.register(SampleDevice.usual[0])
            try await relay.container.post(.change("create", "a3"))
            let last = try await relay.arrivals()
            #expect(last.contains("phone: qry q created a3"))
        }
    }

    @Test func `a token registered after the gateway's verdict is kept and retried`()
        async throws
    {
        let gone = GatewayRefusal(
            status: 410, reason: "Unregistered",
            timestamp: Date(timeIntervalSince1970: 1_600_000_000))
        try await RunningRelay.with(script: Self.refusing("bobs", gone)) { relay in
            try await relay.container.save(.query("q"), as: "bob")
            try await relay.container.post(.change("create", "a1"))
            let pushes = try await relay.pushes(2)
            #expect(
                pushes.map(\.line) == ["bobs: qry q created a1 (410)", "bobs: qry q created a1"])
            #expect(pushes[0].apnsID == pushes[1].apnsID)
            let devices = try await Self.devices(relay)
            #expect(devices == ["bobs", "phone", "tablet"])
        }
    }

    @Test func `a refusal with Retry-After is retried no earlier and with the same ID`()
        async throws
    {
        let busy = GatewayRefusal(status: 429, reason: "TooManyRequests", retryAfter: 1)
        try await RunningRelay.with(script: Self.refusing("bobs", busy)) { relay in
            try await relay.container.save(.query("q"), as: "bob")
            try await relay.container.post(.change("create", "a1"))
            let pushes = try await relay.pushes(2)
            #expect(
                pushes.map(\.line) == ["bobs: qry q created a1 (429)", "bobs: qry q created a1"])
            #expect(pushes[0].apnsID == pushes[1].apnsID)
            #expect(pushes[1].receivedAt.timeIntervalSince(pushes[0].receivedAt) >= 1)
        }
    }

    @Test func `a push refused for good is a dead letter and can be redriven`()
        async throws
    {
        let refusal = GatewayRefusal(status: 400, reason: "BadMessageId")
        try await RunningRelay.with(script: Self.refusing("bobs", refusal)) { relay in
            let path = relay.container.path + "/deadLetters"
            try await relay.container.save(.query("q"), as: "bob")
            try await relay.container.post(.change("create", "a1"))
            let first = try await relay.arrivals()
            #expect(first == ["bobs: qry q created a1 (400)"])
            let listed = try await relay.client.administer("GET", path).expect(200)
            let letter = try #require(listed["deadLetters", "0"])
            #expect(letter.value(at: ["reason"]) == "BadMessageId")
            #expect(letter.value(at: ["deviceID"]) == "bobs")
            #expect(letter.value(at: ["attempts"]) == 1)
            #expect(letter.value(at: ["payload", "ck", "qry", "rid"]) == "a1")
            #expect(!listed.text.contains(SampleDevice.usual[2].token), "tokens stay hidden")
            let redriven = try await relay.client.administer(
                "POST", path + "/redrive", ["all": true]
            ).expect(200)
            #expect(redriven.json == ["redriven": 1, "expired": 0])
            let pushes = try await relay.pushes(2)
            #expect(pushes[1].line == "bobs: qry q created a1")
            #expect(pushes[1].apnsID == pushes[0].apnsID)
            let left = try await relay.client.administer("GET", path)
            #expect(left["deadLetters"] == [])
        }
    }

    @Test func `a gateway that breaks connections and refuses streams loses nothing`()
        async throws
    {
        let script = AnswerScript([
            ScriptRule(
                .all,
                [
                    ScriptedAnswer(.accept, times: 3),
                    ScriptedAnswer(.closeConnection(.reset), times: 1, accounting: .notAccepted),
                    ScriptedAnswer(.resetStream(.refused), times: 3),
                    ScriptedAnswer(.goAway(GoAway(lastStream: .beforeThis)), times: 1),
                ])
        ])
        try await RunningRelay.with(script: script) { relay in
            try await relay.container.save(.query("q"))
            let names = (1...20).map { "a\($0)" }
            try await relay.container.post(.array(names.map { .change("create", $0) }))
            // An answer that is lost with its connection may duplicate a push.
            let simulated = relay.gateway.simulated
            _ = try await simulated.totals(within: .patience) {
                $0.accepted - $0.duplicates == 40
            }
            #expect(relay.gateway.simulated.streamLimitViolations.isEmpty)
        }
    }
}
