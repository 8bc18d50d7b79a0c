import GatewaySimulator
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

@testable import RelayServer

/// `notifications/markDelivered` and `markOpened`: the trace of a push ends on the device.
@Suite(.serialized, .timeLimit(.minutes(30))) struct ClientReceiptScenarioTests {
    /// A push, with the fields that its client reads.
    struct Got {
        let apnsID: String
        let nid: String
        let seq: String
        let device: String

        init(_ push: ReceivedPush) throws {
            let payload = try JSONValue(stored: push.payload)
            apnsID = push.apnsID
            guard case .string(let nid)? = payload.value(at: ["ck", "nid"]),
                case .string(let seq)? = payload.value(at: ["belfry", "seq"])
            else { throw ExplainScenarioTests.Missing(payload.text) }
            self.nid = nid
            self.seq = seq
            device = SampleDevice.name(of: push.deviceToken) ?? ""
        }
    }

    /// Runs `body` with the pushes of one change to alice's phone and tablet and to bob's device.
    private static func with(
        _ body: @escaping @Sendable (RunningRelay, [String: Got]) async throws -> Void
    ) async throws {
        try await RunningRelay.with { relay in
            try await relay.container.save(.query("q"))
            try await relay.container.save(.query("q"), as: "bob")
            _ = try await ExplainScenarioTests.post(.change("create", "a1"), relay)
            try await relay.relay.waitUntilSettled(within: .patience)
            let pushes = try relay.gateway.simulated.pushes.map { try Got($0) }
            #expect(pushes.count == 3)
            try await body(
                relay,
                Dictionary(pushes.map { ($0.device, $0) }, uniquingKeysWith: { first, _ in first }))
        }
    }

    @discardableResult
    private static func mark(
        _ word: String, _ body: JSONValue, as user: String = "alice",
        in database: String? = nil, _ relay: RunningRelay
    ) async throws -> RelayClient.Reply {
        try await relay.container.call(
            "notifications/mark\(word)", body, as: user, in: database)
    }

    /// Returns the client's steps that explain reports for a device, each with its outcome.
    private static func steps(
        _ push: Got, as user: String = "alice", _ relay: RunningRelay
    ) async throws -> [String] {
        let reply = try await relay.client.administer(
            "GET",
            "\(relay.container.path)/explain?position=\(push.seq)&subscription=q&user=\(user)")
        guard case .array(let devices)? = reply["explanations", "0", "devices"],
            let device = devices.first(where: {
                $0.value(at: ["deviceID"]) == .string(push.device)
            }), case .array(let steps)? = device.value(at: ["steps"])
        else { return [reply.text] }
        return steps.compactMap { step in
            guard let name = step.value(at: ["step"]), let outcome = step.value(at: ["outcome"]),
                name == "delivered" || name == "opened"
            else { return nil }
            return "\(name.plain) \(outcome.plain)"
        }
    }

    @Test func `a push is marked by its apns-id, once and permanently`() async throws {
        try await Self.with { relay, pushes in
            let phone = try #require(pushes["phone"])
            let named: JSONObject = ["deliveryID": .string(phone.apnsID)]
            let item: JSONValue = .object(named)
            for database in [nil, "public"] as [String?] {
                let reply = try await Self.mark(
                    "Delivered", ["notifications": [item]], in: database, relay
                ).expect(200)
                #expect(reply["notifications", "0", "deliveryID"] == .string(phone.apnsID))
                #expect(reply["notifications", "0", "isDelivered"] == true, "\(reply.text)")
                #expect(reply["notifications", "0", "isOpened"] == false)
            }
            #expect(try await Self.steps(phone, relay) == ["delivered passed"])
            var later = named
            later["position"] = .string(phone.seq)
            let first = try await Self.mark(
                "Opened", ["notifications": [.object(later)]], relay
            ).expect(200)
            let second = try await Self.mark(
                "Opened", ["notifications": [item]], relay
            ).expect(200)
            #expect(first["notifications"] == second["notifications"])
            #expect(first["notifications", "0", "openedAt"] != nil)
            #expect(
                try await Self.steps(phone, relay) == ["delivered passed", "opened passed"])
            // The other device has reported nothing.
            #expect(try await Self.steps(try #require(pushes["tablet"]), relay) == [])
            let shown = try await relay.client.administer("GET", "deliveries/\(phone.apnsID)")
            #expect(shown["openedAt"] == first["notifications", "0", "openedAt"])
            // The container's own call finds the delivery, and another container's does not.
            let other = "containers/iCloud.com.example.Other/production"
            try await relay.client.administer("PUT", other, ["topics": ["com.example.Art"]])
                .expect(201)
            let own = try await relay.client.administer(
                "GET", "\(relay.container.path)/deliveries/\(phone.apnsID)")
            #expect(own["receipts"] == shown["receipts"], "\(own.text)")
            let none = try await relay.client.administer(
                "GET", "\(other)/deliveries/\(phone.apnsID)")
            #expect(none.status == 404, "\(none.text)")
            let listed = try await relay.client.administer(
                "GET", "deliveries?position=\(phone.seq)")
            guard case .array(let rows)? = listed["deliveries"] else {
                Issue.record("\(listed.text)")
                return
            }
            #expect(rows.count { $0.value(at: ["deliveredAt"]) != nil } == 1)
        }
    }

    @Test func `a receipt for a digest counts for each of its deliveries`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await relay.container.save(
                .query("q", adding: ["digest": ["seconds": 3600]]), as: "bob")
            let first = try await ExplainScenarioTests.post(.change("create", "a1"), relay)
            try await relay.container.post(.change("create", "a2"))
            try await relay.relay.waitUntilSettled(within: .patience)
            #expect(relay.gateway.simulated.pushes.isEmpty)
            _ = try await relay.container.call(
                "subscriptions/modify",
                ["operations": [["operationType": "update", "subscription": .query("q")]]],
                as: "bob", in: "public"
            ).expect(200)
            let push = try Got(try #require(try await relay.pushes(1).first))
            #expect(push.seq != first)
            try await relay.waitUntilNothingIsDue()
            try await Self.mark(
                "Opened", ["notifications": [["deliveryID": .string(push.apnsID)]]], as: "bob",
                relay
            ).expect(200)
            let reply = try await relay.client.administer(
                "GET",
                "\(relay.container.path)/explain?position=\(first)&subscription=q&user=bob")
            let device = reply["explanations", "0", "devices", "0"]
            #expect(device?.value(at: ["standing"]) == "folded", "\(reply.text)")
            guard case .array(let steps)? = device?.value(at: ["steps"]) else { return }
            let says = steps.suffix(2).compactMap { $0.value(at: ["says"])?.string }
            #expect(
                says.map { $0.prefix { $0 != "," } } == [
                    "the digest's push came to the device",
                    "the digest's push was opened on the device",
                ], "\(reply.text)")
        }
    }

    @Test func `a notification is marked by its nid with and without an inbox`()
        async throws
    {
        try await Self.with { relay, pushes in
            let phone = try #require(pushes["phone"])
            let tablet = try #require(pushes["tablet"])
            #expect(phone.nid == tablet.nid)
            // Without a position, the notification is searched among the newest receipts.
            let bare = try await Self.mark(
                "Delivered", ["notificationIDs": [.string(phone.nid)], "deviceID": "phone"],
                relay
            ).expect(200)
            #expect(bare["notifications", "0", "isDelivered"] == true, "\(bare.text)")
            #expect(try await Self.steps(phone, relay) == ["delivered passed"])
            #expect(try await Self.steps(tablet, relay) == [])
            let placed = try await Self.mark(
                "Opened",
                [
                    "notifications": [
                        ["notificationID": .string(phone.nid), "position": .string(phone.seq)],
                        .string(phone.nid),
                    ]
                ], relay
            ).expect(200)
            #expect(placed["notifications", "1", "isOpened"] == true, "\(placed.text)")
            // A receipt without a device may be about any of the user's devices.
            #expect(
                try await Self.steps(tablet, relay) == ["delivered noted", "opened noted"])
            #expect(
                try await Self.steps(phone, relay) == ["delivered passed", "opened noted"])
        }
    }

    @Test func `an opening on an unnamed device counts for the push that arrived`()
        async throws
    {
        try await Self.with { relay, pushes in
            let phone = try #require(pushes["phone"])
            let came = try await Self.mark(
                "Delivered", ["notifications": [["deliveryID": .string(phone.apnsID)]]], relay
            ).expect(200)
            let opened = try await Self.mark(
                "Opened", ["notificationIDs": [.string(phone.nid)]], relay
            ).expect(200)
            #expect(
                opened["notifications", "0", "deliveredAt"]
                    == came["notifications", "0", "deliveredAt"], "\(opened.text)")
            #expect(
                try await Self.steps(phone, relay) == ["delivered passed", "opened noted"])
            let shown = try await relay.client.administer("GET", "deliveries/\(phone.apnsID)")
            let openedAt = opened["notifications", "0", "openedAt"]
            #expect(openedAt != nil && shown["openedAt"] == openedAt, "\(shown.text)")
        }
    }

    @Test func `another user's notification is answered like a missing one`() async throws {
        try await Self.with { relay, pushes in
            let phone = try #require(pushes["phone"])
            let nothing = "943172cd-822f-4890-8a2b-b24bb2a15527"
            var reasons: Set<String> = []
            for id in [phone.apnsID, nothing] {
                for position in [phone.seq, nil] {
                    var item: JSONObject = ["deliveryID": .string(id)]
                    item["position"] = position.map { .string($0) }
                    let reply = try await Self.mark(
                        "Delivered", ["notifications": [.object(item)]], as: "bob", relay
                    ).expect(200)
                    let entry = reply["notifications", "0"]
                    #expect(entry?.value(at: ["serverErrorCode"]) == "NOT_FOUND")
                    reasons.insert(entry?.value(at: ["reason"])?.text ?? "")
                }
            }
            for id in [phone.nid, nothing, "no ID at all"] {
                for position in [phone.seq, nil] {
                    var item: JSONObject = ["notificationID": .string(id)]
                    item["position"] = position.map { .string($0) }
                    let reply = try await Self.mark(
                        "Opened", ["notifications": [.object(item)]], as: "bob", relay
                    ).expect(200)
                    let entry = reply["notifications", "0"]
                    #expect(entry?.value(at: ["serverErrorCode"]) == "NOT_FOUND")
                    reasons.insert(entry?.value(at: ["reason"])?.text ?? "")
                }
            }
            #expect(reasons.count == 1, "\(reasons)")
            #expect(try await Self.steps(phone, relay) == [])
            let foreign = try await Self.mark(
                "Opened", ["notificationIDs": [], "deviceID": "phone"], as: "bob", relay)
            #expect(foreign.status == 404 && foreign.text.contains("you have no device"))
        }
    }

    @Test func `a receipt's moment is not before the change or after the call`() async throws {
        try await Self.with { relay, pushes in
            let push = try #require(pushes["bobs"])
            let tablet = try #require(pushes["tablet"])
            func deliveredAt(
                _ push: Got, _ said: String, as user: String
            ) async throws -> Timestamp {
                let reply = try await Self.mark(
                    "Delivered",
                    [
                        "notifications": [
                            ["deliveryID": .string(push.apnsID), "at": .string(said)]
                        ]
                    ], as: user, relay
                ).expect(200)
                guard case .string(let text)? = reply["notifications", "0", "deliveredAt"],
                    let moment = Timestamp(iso8601: text)
                else { throw ExplainScenarioTests.Missing(reply.text) }
                return moment
            }
            let position = LogPosition(try #require(UInt64(push.seq)))
            let appended = try #require(
                try await relay.relay.store.moments(of: [position])[position])
            let early = try await deliveredAt(push, "1999-01-01T00:00:00Z", as: "bob")
            #expect(early.iso8601 == appended.iso8601)
            let late = try await deliveredAt(tablet, "2999-01-01T00:00:00Z", as: "alice")
            #expect(late > appended && late.seconds < 4_000_000_000)
        }
    }

    @Test func `bad input is refused with the field and the allowed values`() async throws {
        try await Self.with { relay, _ in
            let many: JSONValue = .array(Array(repeating: "x", count: 201))
            for (body, says) in [
                ([:], "notifications: is required"),
                (["notifications": "x"], "notifications: an array is expected"),
                (["notifications": [1]], "notifications[0]"),
                (["notifications": [[:]]], "notifications[0].notificationID: is required"),
                (
                    ["notifications": [["notificationID": "x", "deliveryID": "y"]]],
                    "notifications[0].deliveryID: cannot be given together with notificationID"
                ),
                (
                    ["notifications": [["notificationID": "x", "at": "soon"]]],
                    "notifications[0].at: a moment is expected"
                ),
                (
                    ["notifications": [["notificationID": "x", "position": -1]]],
                    "notifications[0].position: a whole number from 0"
                ),
                (["notifications": many], "notifications: 201 in one request"),
                (
                    ["notificationIDs": [], "notifications": []],
                    "notifications: cannot be given together with notificationIDs"
                ),
                (["notifications": [], "nids": []], "nids"),
            ] as [(JSONValue, String)] {
                let reply = try await Self.mark("Delivered", body, relay)
                #expect(reply.status == 400, "\(body.text) \(reply.text)")
                #expect(reply.text.contains(says), "\(says): \(reply.text)")
            }
            let empty = try await Self.mark("Opened", ["notifications": []], relay).expect(200)
            #expect(empty["notifications"] == [])
        }
    }
}

private extension JSONValue {
    var plain: String { if case .string(let text) = self { text } else { text } }
}
