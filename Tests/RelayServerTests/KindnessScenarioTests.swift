import Delivery
import GatewaySimulator
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

@testable import RelayServer

/// Pauses, quiet hours, throttles and digests, over HTTP and up to the gateway.
@Suite(.serialized, .timeLimit(.minutes(30))) struct KindnessScenarioTests {
    private typealias Scenario = ExplainScenarioTests

    private static func update(
        _ subscription: JSONValue, _ relay: RunningRelay
    ) async throws -> RelayClient.Reply {
        try await relay.container.call(
            "subscriptions/modify",
            ["operations": [["operationType": "update", "subscription": subscription]]],
            as: "alice", in: "public"
        ).expect(200)
    }

    private static func device(
        _ position: String, _ relay: RunningRelay, _ name: String = "phone"
    ) async throws -> JSONValue? {
        let reply = try await Scenario.ask(
            ["position": .string(position), "deviceID": .string(name)], relay)
        return reply["explanations", "0", "devices", "0"]
    }

    /// Returns how many deliveries have each state, according to the operator's list and to each
    /// delivery's own call.
    private static func states(_ relay: RunningRelay) async throws -> [String: Int] {
        let list = try await relay.client.administer("GET", "deliveries").expect(200)
        guard case .array(let rows)? = list["deliveries"] else { return [:] }
        var states: [String: Int] = [:]
        for row in rows {
            let state = row.value(at: ["state"])?.string ?? ""
            states[state, default: 0] += 1
            let id = row.value(at: ["deliveryID"])?.string ?? ""
            let one = try await relay.client.administer("GET", "deliveries/\(id)").expect(200)
            #expect(one["state"] == .string(state), "\(one.text)")
        }
        return states
    }

    /// Returns quiet hours around the present moment, by the device's clock.
    static func quietNow() -> JSONValue {
        let minute = (World.real.now().seconds / 60 + 1440) % 1440
        func text(_ minute: Int64) -> JSONValue {
            func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
            return .string("\(two(minute % 1440 / 60)):\(two(minute % 60))")
        }
        return ["timeZone": "UTC", "from": text(minute + 1380), "until": text(minute + 60)]
    }

    @Test func `deliveries of a paused subscription wait until it is resumed`() async throws {
        try await RunningRelay.with { relay in
            try await relay.container.save(.query("q", adding: ["paused": true]))
            let position = try await Scenario.post(.change("create", "a1"), relay)
            try await relay.relay.waitUntilSettled(within: .patience)
            #expect(relay.gateway.simulated.pushes.isEmpty)
            let held = try await Self.device(position, relay)
            #expect(held?.value(at: ["standing"]) == "waiting", "\(held?.text ?? "")")
            #expect(held?.value(at: ["step"]) == "held")
            // No attempt was made to send it.
            guard case .array(let steps)? = held?.value(at: ["steps"]) else {
                Issue.record("no steps: \(held?.text ?? "")")
                return
            }
            let names = steps.map { $0.value(at: ["step"])?.string ?? "" }
            #expect(names.count { $0 == "held" } == 1 && !names.contains("attempt"), "\(names)")
            let sentence = held?.value(at: ["sentence"])?.string ?? ""
            #expect(
                sentence.hasPrefix("Held: the subscription is paused; the push expires "),
                "\(sentence)")
            let list = try await relay.client.administer(
                "GET", "\(relay.container.path)/subscriptions")
            #expect(list["subscriptions", "0", "held"] == 2, "\(list.text)")
            #expect(list["subscriptions", "0", "paused"] == true)
            let devices = try await relay.client.administer(
                "GET", "\(relay.container.path)/devices?user=alice")
            #expect(devices["devices", "0", "held"] == 1, "\(devices.text)")
            let retries = try await relay.client.administer(
                "GET", "\(relay.container.path)/retries")
            #expect(retries["retries", "0", "pause", "kind"] == "held", "\(retries.text)")
            // An edit of the title releases nothing.
            _ = try await Self.update(
                .query("q", info: ["alertBody": "Other"], adding: ["paused": true]), relay)
            try await relay.waitUntilNothingIsDue()
            #expect(relay.gateway.simulated.pushes.isEmpty)
            _ = try await Self.update(.query("q", adding: ["paused": false]), relay)
            let pushes = try await relay.pushes(2)
            #expect(Set(pushes.map(\.apnsID)).count == 2)
            try await relay.waitUntilNothingIsDue()
            #expect(
                try await relay.arrivals()
                    == ["phone: qry q created a1", "tablet: qry q created a1"])
            #expect(try await Self.device(position, relay)?.value(at: ["standing"]) == "delivered")
        }
    }

    @Test func `a paused subscription from a list can be edited and saved again`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await relay.container.save(.query("q", adding: ["paused": true]))
            try await relay.container.post(.change("create", "a1"))
            try await relay.relay.waitUntilSettled(within: .patience)
            let list = try await relay.container.call(
                "subscriptions/list", nil, as: "alice", in: "public"
            ).expect(200)
            #expect(list["subscriptions", "0", "held"] == 2, "\(list.text)")
            guard case .object(var saved)? = list["subscriptions", "0"] else {
                Issue.record("no subscription: \(list.text)")
                return
            }
            saved["paused"] = false
            let reply = try await Self.update(.object(saved), relay)
            #expect(reply["subscriptions", "0", "activationPosition"] != nil, "\(reply.text)")
            _ = try await relay.pushes(2)
        }
    }

    @Test func `held deliveries of a deleted subscription end as withdrawn`() async throws {
        try await RunningRelay.with { relay in
            try await relay.container.save(.query("q", adding: ["paused": true]))
            try await relay.container.post(.change("create", "a1"))
            try await relay.relay.waitUntilSettled(within: .patience)
            _ = try await relay.container.call(
                "subscriptions/modify",
                [
                    "operations": [
                        ["operationType": "delete", "subscription": ["subscriptionID": "q"]]
                    ]
                ], as: "alice", in: "public"
            ).expect(200)
            try await relay.waitUntilNothingIsDue()
            #expect(relay.gateway.simulated.pushes.isEmpty)
            let letters = try await relay.client.administer(
                "GET", "\(relay.container.path)/deadLetters")
            #expect(
                letters["deadLetters", "0", "reason"] == "the subscription was deleted",
                "\(letters.text)")
        }
    }

    @Test func `quiet hours hold a device's alerts, and urgent ones are sent`() async throws {
        try await RunningRelay.with { relay in
            let phone = SampleDevice.usual[0]
            let reply = try await relay.container.call(
                "tokens/register",
                [
                    "apnsToken": .string(phone.token), "apnsEnvironment": "development",
                    "deviceID": "phone", "quietHours": Self.quietNow(),
                ], as: "alice", in: nil
            ).expect(200)
            #expect(reply["quietHours", "timeZone"] == "UTC", "\(reply.text)")
            try await relay.container.save(.query("calm", "price < 100"))
            try await relay.container.save(.query("urgent", "price < 50", adding: ["urgent": true]))
            let silent: JSONObject = ["shouldSendContentAvailable": true]
            try await relay.container.save(.query("silent", "price < 70", info: silent))
            // A registration that omits the quiet hours keeps them.
            try await relay.container.register(phone)
            let position = try await Scenario.post(.change("create", "a1", ["price": 1]), relay)
            #expect(
                try await relay.arrivals() == [
                    "phone: qry silent created a1", "phone: qry urgent created a1",
                    "tablet: qry calm created a1", "tablet: qry silent created a1",
                    "tablet: qry urgent created a1",
                ])
            let held = try await Scenario.ask(
                [
                    "position": .string(position), "subscriptionID": "calm", "deviceID": "phone",
                ], relay)
            let sentence = held["explanations", "0", "devices", "0", "sentence"]?.string ?? ""
            #expect(sentence.hasPrefix("Held: quiet hours, until "), "\(held.text)")
            // After the quiet hours are removed, the push is sent.
            _ = try await relay.container.call(
                "tokens/register",
                [
                    "apnsToken": .string(phone.token), "apnsEnvironment": "development",
                    "deviceID": "phone", "quietHours": .null,
                ], as: "alice", in: nil
            ).expect(200)
            relay.relay.walk.worker.workRetries()
            try await relay.waitUntilNothingIsDue()
            #expect(try await relay.arrivals().contains("phone: qry calm created a1"))
        }
    }

    @Test func `deliveries held during a long pause are combined into one push`() async throws {
        try await RunningRelay.with { relay in
            try await relay.container.save(.query("q", adding: ["paused": true]))
            let count = Limits.maximumHeldDeliveries + 3
            var positions: [String] = []
            for number in 1...count {
                positions.append(
                    try await Scenario.post(.change("create", "a\(number)"), relay))
            }
            try await relay.relay.waitUntilSettled(within: .patience)
            let early = try await Self.device(positions[count - 3], relay)
            let sentence = early?.value(at: ["sentence"])?.string ?? ""
            #expect(
                sentence.hasPrefix("It is held in a digest of 3 deliveries in all"), "\(sentence)")
            _ = try await Self.update(.query("q"), relay)
            let pushes = try await relay.pushes(2 * (Limits.maximumHeldDeliveries + 1))
            try await relay.waitUntilNothingIsDue()
            #expect(Set(pushes.map(\.apnsID)).count == pushes.count)
            let told = try await Self.device(positions[count - 3], relay)
            #expect(told?.value(at: ["standing"]) == "folded", "\(told?.text ?? "")")
            let leader = try await Self.device(positions[count - 1], relay)
            let id = leader?.value(at: ["deliveryID"])?.string ?? ""
            #expect(told?.value(at: ["sentence"])?.string?.contains(id) == true)
            let push = pushes.first { $0.apnsID == id }
            let payload = try JSONValue(stored: try #require(push).payload)
            #expect(payload.value(at: ["belfry", "count"]) == 3, "\(payload.text)")
            #expect(
                leader?.value(at: ["payload", "belfry", "count"]) == 3, "\(leader?.text ?? "")")
            #expect(
                leader?.value(at: ["sentence"])?.string?
                    .hasSuffix(", standing for 3 deliveries in all.") == true,
                "\(leader?.text ?? "")")
            for account in try await relay.relay.store.accounts() {
                #expect(account.difference == 0)
                #expect(account.folded == 4)
            }
        }
    }

    @Test func `a digest is one push with the number and the newest fields`() async throws {
        try await RunningRelay.with { relay in
            let digest: JSONValue = [
                "seconds": 1, "alertBody": "{count} new works, the newest by {artist}",
            ]
            try await relay.container.save(
                .query("q", info: ["alertBody": "New"], adding: ["digest": digest]))
            let position = try await Scenario.post(.change("create", "a1"), relay)
            for number in 2...5 {
                try await relay.container.post(
                    .change("create", "a\(number)", ["artist": .string("artist \(number)")]))
            }
            var total: Int64 = 0
            var texts: Set<String> = []
            var sent: [String: String] = [:]
            // A slow machine may need more than one period.
            while total < 10 {
                let pushes = try await relay.pushes(2 + texts.count)
                total = 0
                texts = []
                for push in pushes {
                    let payload = try JSONValue(stored: push.payload)
                    guard case .integer(let count)? = payload.value(at: ["belfry", "count"])
                    else {
                        total += 1
                        texts.insert("\(payload.text)")
                        continue
                    }
                    total += count
                    texts.insert(push.apnsID)
                    let text = payload.value(at: ["aps", "alert"])?.string ?? ""
                    #expect(text.hasPrefix("\(count) new works, the newest by artist "), "\(text)")
                    sent[push.apnsID] = text
                }
            }
            #expect(total == 10)
            try await relay.waitUntilNothingIsDue()
            let told = try await Self.device(position, relay)
            let standing = told?.value(at: ["standing"])?.string
            #expect(standing == "folded" || standing == "delivered", "\(told?.text ?? "")")
            // For a delivery that was told in a digest, explain shows the payload of the push that
            // told it.
            for (delivery, text) in sent {
                let reply = try await Scenario.ask(["deliveryID": .string(delivery)], relay)
                #expect(
                    reply["explanations", "0", "devices", "0", "payload", "aps", "alert"]
                        == .string(text), "\(reply.text)")
            }
            for account in try await relay.relay.store.accounts() {
                #expect(account.difference == 0 && account.pending == 0)
            }
        }
    }

    @Test func `an edited digest ends by its new span`() async throws {
        try await RunningRelay.with { relay in
            func query(_ seconds: Int64) -> JSONValue {
                .query(
                    "q", info: ["alertBody": "New"],
                    adding: ["digest": ["seconds": .integer(seconds), "alertBody": "{count} new"]])
            }
            try await relay.container.save(query(3600))
            for number in 1...3 { try await relay.container.post(.change("create", "a\(number)")) }
            try await relay.relay.waitUntilSettled(within: .patience)
            #expect(try await Self.states(relay) == ["waiting": 6])
            _ = try await Self.update(query(7200), relay)
            try await relay.waitUntilNothingMoves()
            #expect(relay.gateway.simulated.pushes.isEmpty)
            _ = try await Self.update(query(1), relay)
            for push in try await relay.pushes(2) {
                let payload = try JSONValue(stored: push.payload)
                #expect(payload.value(at: ["aps", "alert"]) == "3 new", "\(payload.text)")
            }
            try await relay.waitUntilNothingIsDue()
            #expect(try await Self.states(relay) == ["delivered": 2, "folded": 4])
            for account in try await relay.relay.store.accounts() {
                #expect(account.difference == 0 && account.pending == 0)
            }
        }
    }

    @Test func `a throttle lets some pushes go and combines the rest`() async throws {
        try await RunningRelay.with { relay in
            let throttle: JSONValue = ["pushes": 2, "seconds": 86_400]
            try await relay.container.save(.query("q", adding: ["throttle": throttle]))
            var positions: [String] = []
            for number in 1...5 {
                positions.append(
                    try await Scenario.post(.change("create", "a\(number)"), relay))
                try await relay.relay.waitUntilSettled(within: .patience)
            }
            #expect(relay.gateway.simulated.pushes.count == 4)
            let held = try await Self.device(positions[4], relay)
            let sentence = held?.value(at: ["sentence"])?.string ?? ""
            #expect(
                sentence.hasPrefix("It is held in a digest of 3 deliveries in all"), "\(sentence)")
            #expect(
                sentence.hasSuffix(": enough pushes for this device in the span."), "\(sentence)")
            // Without the throttle they are sent, as one push.
            _ = try await Self.update(.query("q"), relay)
            let pushes = try await relay.pushes(6)
            let counts = try pushes.compactMap {
                try JSONValue(stored: $0.payload).value(at: ["belfry", "count"])
            }
            #expect(counts == [3, 3])
        }
    }

    @Test func `a digest postponed by quiet hours says so`() async throws {
        try await RunningRelay.with { relay in
            _ = try await relay.container.call(
                "tokens/register",
                [
                    "apnsToken": .string(SampleDevice.usual[0].token),
                    "apnsEnvironment": "development", "deviceID": "phone",
                    "quietHours": Self.quietNow(),
                ], as: "alice", in: nil
            ).expect(200)
            try await relay.container.save(.query("q", adding: ["digest": ["seconds": 60]]))
            let position = try await Scenario.post(.change("create", "a1"), relay)
            try await relay.relay.waitUntilSettled(within: .patience)
            let phone = try await Self.device(position, relay)?.value(at: ["sentence"])?.string
            #expect(phone?.hasSuffix(", after the quiet hours.") == true, "\(phone ?? "")")
            let tablet = try await Self.device(position, relay, "tablet")?
                .value(at: ["sentence"])?.string
            #expect(tablet?.hasSuffix("with what follows.") == true, "\(tablet ?? "")")
        }
    }

    @Test func `explain names the last push of a chain of digests and its outcome`()
        async throws
    {
        try await RunningRelay.with { relay in
            func query(_ seconds: Int64) -> JSONValue {
                .query("q", adding: ["throttle": ["pushes": 1, "seconds": .integer(seconds)]])
            }
            try await relay.container.save(query(86_400))
            var positions: [String] = []
            func post() async throws {
                positions.append(
                    try await Scenario.post(.change("create", "a\(positions.count)"), relay))
                try await relay.relay.waitUntilSettled(within: .patience)
            }
            for _ in 1...3 { try await post() }
            // Held deliveries are judged again, find no place again, and are merged with the next
            // ones.
            _ = try await Self.update(query(86_401), relay)
            for device in ["phone", "tablet"] {
                let isHeldAgain = try await Turns.yield {
                    let steps = try await Self.device(positions[2], relay, device)?
                        .value(at: ["steps"])
                    guard case .array(let steps)? = steps else { return false }
                    return steps.count { $0.value(at: ["step"]) == "held" } == 2
                }
                #expect(isHeldAgain)
            }
            try await post()
            _ = try await Self.update(.query("q"), relay)
            let pushes = try await relay.pushes(4)
            let counts = try pushes.compactMap {
                try JSONValue(stored: $0.payload).value(at: ["belfry", "count"])
            }
            #expect(counts == [3, 3])
            let isTold = try await Turns.yield {
                let told =
                    try await Self.device(positions[1], relay)?
                    .value(at: ["sentence"])?.string ?? ""
                return told.contains("3 deliveries in all, sent by the delivery ")
                    && told.contains("of the change at \(positions[3]), 2")
                    && told.hasSuffix("which was delivered.")
            }
            let device = try await Self.device(positions[1], relay)
            #expect(isTold, "\(device?.text ?? "")")
            #expect(device?.value(at: ["standing"]) == "folded")
        }
    }

    static let bad: [(JSONObject, String)] = [
        (
            ["throttle": ["pushes": 200, "seconds": 60]],
            "operations[0].subscription.throttle.pushes: must be 1 to 100, found 200"
        ),
        (
            ["digest": ["seconds": 60, "alertBody": "{count"]],
            "operations[0].subscription.digest.alertBody: character 1: a brace that is not closed; "
                + "write {{ for the brace itself"
        ),
        (
            ["digest": ["seconds": 60], "firesOnce": true],
            "operations[0].subscription.digest: is not allowed for a subscription that fires once: "
                + "it has no second push"
        ),
        (
            ["unlessConnected": true, "firesOnce": true],
            "operations[0].subscription.unlessConnected: is not allowed for a subscription that "
                + "fires once: its only push is always sent"
        ),
        (
            [
                "digest": ["seconds": 60, "alertBody": "{count}"],
                "notificationInfo": ["shouldSendContentAvailable": true],
            ],
            "operations[0].subscription.digest: texts are allowed only with a notificationInfo "
                + "that shows something"
        ),
        (
            [
                "digest": ["seconds": 60],
                "notificationInfo": ["alertBody": "x", "expirationSeconds": 60],
            ],
            "operations[0].subscription.digest.seconds: must be less than expirationSeconds (60): "
                + "the digest would be sent after its notifications have expired"
        ),
        (
            ["paused": 7],
            "operations[0].subscription.paused: a boolean is expected, found an integer"
        ),
        (
            ["paused": true, "firesOnce": true],
            "operations[0].subscription.paused: a subscription that fires once cannot be paused: "
                + "delete it instead"
        ),
        (
            ["expiresAt": 1000],
            "operations[0].subscription.expiresAt: must be later than now, found "
                + "1970-01-01T00:00:01.000Z"
        ),
    ]

    /// Saves a subscription, and returns the reason if it is refused.
    private static func refusal(
        of members: JSONObject, _ relay: RunningRelay
    ) async throws -> JSONValue? {
        let reply = try await relay.container.call(
            "subscriptions/modify",
            [
                "operations": [
                    [
                        "operationType": "create",
                        "subscription": .query("daily", adding: members),
                    ]
                ]
            ], as: "alice", in: "public")
        return reply["subscriptions", "0", "reason"]
    }

    @Test func `a digest longer than the container's expiration is refused`() async throws {
        try await RunningRelay.with { relay in
            try await relay.client.administer(
                "PATCH", relay.container.path, ["expirationSeconds": 60]
            ).expect(200)
            let digest: JSONObject = ["digest": ["seconds": 60]]
            let refusal = try await Self.refusal(of: digest, relay)
            let sentence =
                "operations[0].subscription.digest.seconds: must be less than the container's "
                + "expirationSeconds (60), unless notificationInfo has its own: otherwise the "
                + "digest would expire before it is sent"
            #expect(refusal == .string(sentence))
            let draft = try await relay.container.call(
                "subscriptions/rehearse", ["subscription": .query("daily", adding: digest)],
                as: "alice", in: "public")
            #expect(draft.status == 400, "\(draft.text)")
            var longer = digest
            longer["notificationInfo"] = ["alertBody": "New", "expirationSeconds": 61]
            let other = try await Self.refusal(of: longer, relay)
            #expect(other == nil)
        }
    }

    @Test func `invalid holds are refused with their place`() async throws {
        try await RunningRelay.with { relay in
            for (members, sentence) in Self.bad {
                let reply = try await relay.container.call(
                    "subscriptions/modify",
                    [
                        "operations": [
                            [
                                "operationType": "create",
                                "subscription": .query("bad", adding: members),
                            ]
                        ]
                    ], as: "alice", in: "public")
                #expect(reply["subscriptions", "0", "reason"] == .string(sentence), "\(reply.text)")
                // A rehearsal of the draft is refused with the same words.
                let draft = try await relay.container.call(
                    "subscriptions/rehearse", ["subscription": .query("bad", adding: members)],
                    as: "alice", in: "public")
                let same = String(sentence.dropFirst("operations[0].".count))
                #expect(draft.status == 400 && draft["reason"] == .string(same), "\(draft.text)")
            }
            let hours: [(JSONValue, String)] = [
                (
                    ["timeZone": "Mars/Olympus", "from": "22:00", "until": "07:00"],
                    "quietHours.timeZone: \"Mars/Olympus\" is unknown; allowed are the names of "
                        + "IANA time zones, such as \"Europe/Zurich\", and \"UTC\""
                ),
                (
                    ["timeZone": "UTC", "from": "10pm", "until": "07:00"],
                    "quietHours.from: a time from \"00:00\" to \"23:59\" is expected"
                ),
            ]
            for (json, sentence) in hours {
                let reply = try await relay.container.call(
                    "tokens/register",
                    [
                        "apnsToken": .string(SampleDevice.usual[0].token),
                        "apnsEnvironment": "development", "quietHours": json,
                    ], as: "alice", in: nil)
                #expect(reply.status == 400)
                #expect(reply["reason"] == .string(sentence), "\(reply.text)")
            }
        }
    }
}

extension JSONValue {
    /// The string of this value; `nil` if it is no string.
    var string: String? {
        if case .string(let text) = self { text } else { nil }
    }
}

extension RunningRelay {
    /// Waits until no delivery waits for a connection, for a digest that ends soon, or is due.
    ///
    /// Retries count that are due within `retries`.
    func waitUntilNothingMoves(retries: Duration = .zero) async throws {
        while true {
            let soon = World.real.now().advanced(by: .seconds(3600))
            let digest = try await relay.store.nextDigestDue()
            let connected = try await relay.store.heldCounts()[.connected] ?? 0
            if connected == 0, digest.map({ soon < $0 }) ?? true { break }
            try await World.real.clock.sleep(for: .milliseconds(20))
        }
        try await waitUntilNothingIsDue(soon: retries)
    }

    /// Waits until no retry is due, or will be `soon`.
    ///
    /// Retries that an edit released are worked beside the progress. On a slow machine a push may
    /// be answered so late that it is tried again.
    func waitUntilNothingIsDue(soon: Duration = .zero) async throws {
        while let due = try await relay.store.nextRetryDue(excluding: [], unless: { _ in false }),
            due <= World.real.now().advanced(by: soon)
        {
            try await World.real.clock.sleep(for: .milliseconds(20))
        }
    }
}
