import RelayModel
import RelayServer
import RelayTestKit
import Testing

/// Notifications of saved subscriptions, as connected clients get them.
@Suite(.serialized, .timeLimit(.minutes(30))) struct LiveNotificationTests {
    typealias Live = LiveScenarioTests

    private static func set(_ version: Int64, _ members: JSONObject = [:]) -> JSONValue {
        var query: JSONObject = ["id": "n", "kind": "notifications"]
        query.members += members.members
        return ["type": "set", "version": .integer(version), "queries": [.object(query)]]
    }

    static func prepare(_ relay: RunningRelay) async throws {
        try await relay.client.administer(
            "PATCH", relay.container.path, ["keepsInbox": true]
        ).expect(200)
        for device in SampleDevice.usual { try await relay.container.register(device) }
        try await relay.container.save(.query("mine", #"artist = "artist-1""#))
    }

    @Test func `each notification comes once, and a client resumes after the last one`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await Self.prepare(relay)
            try await relay.container.post(.change("create", "a1"))
            let page = try await Live.open(relay)
            try await page.send(Self.set(1))
            let state = await page.frame("state")
            #expect(state?["queries"]?.value(at: ["0", "id"]) == "n")
            #expect(state?["queries"]?.value(at: ["0", "group"]) == nil)
            let first = await page.frame("notification")
            #expect(first?["id"] == "n")
            #expect(first?["notification"]?.value(at: ["subscriptionID"]) == "mine")
            try await relay.container.post(.change("create", "a2"))
            let second = await page.frame("notification")
            #expect(
                second?["notification"]?.value(at: ["payload", "ck", "qry", "rid"]) == "a2",
                "\(String(describing: second))")
            // Marking a notification as read elsewhere is reported too.
            let read = second?["notification"]?.value(at: ["notificationID"]) ?? .null
            try await relay.container.call(
                "notifications/markRead", ["notificationIDs": [read]], as: "alice", in: "public"
            ).expect(200)
            let marked = await page.frame("notification")
            #expect(marked?["notification"]?.value(at: ["notificationID"]) == read)
            #expect(marked?["notification"]?.value(at: ["isRead"]) == true)
            try await page.close()

            try await relay.container.post(.change("create", "a3"))
            let again = try await Live.open(relay)
            try await again.send(Self.set(1, ["since": marked?["syncToken"] ?? .null]))
            let missed = await again.frame("notification")
            #expect(missed?["notification"]?.value(at: ["payload", "ck", "qry", "rid"]) == "a3")
            // With `initial: none` a client gets only new notifications.
            try await again.send(Self.set(2, ["initial": "none"]))
            try await again.send(["type": "fence", "id": "f"])
            _ = await again.frame("fenced")
            try await relay.container.post(.change("create", "a4"))
            let news = await again.frame("notification")
            #expect(news?["notification"]?.value(at: ["payload", "ck", "qry", "rid"]) == "a4")
            try await again.close()
        }
    }

    @Test func `a client of only new notifications gets those that came while it was away`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await Self.prepare(relay)
            try await relay.container.post(.change("create", "a1"))
            let reader = try await Live.open(relay)
            try await reader.send(Self.set(1))
            let first = await reader.frame("notification")
            try await reader.close()

            let page = try await Live.open(relay)
            try await page.send(Self.set(1, ["initial": "none"]))
            let place = await page.frame("place")
            #expect(place?["id"] == "n" && place?["syncToken"] == first?["syncToken"])
            try await page.close()
            try await relay.container.post(.change("create", "a2"))
            let again = try await Live.open(relay)
            let token = place?["syncToken"] ?? .null
            try await again.send(Self.set(1, ["initial": "none", "since": token]))
            let missed = await again.frame("notification")
            #expect(missed?["notification"]?.value(at: ["payload", "ck", "qry", "rid"]) == "a2")
            try await again.close()
        }
    }

    @Test func `an inbox belongs to its user, and another's token starts anew`() async throws {
        try await RunningRelay.with { relay in
            try await Self.prepare(relay)
            try await relay.container.post(.change("create", "a1"))
            let alice = try await Live.open(relay)
            try await alice.send(Self.set(1))
            let token = await alice.frame("notification")?["syncToken"] ?? .null
            let bob = try await Live.open(relay, as: "bob")
            try await bob.send(Self.set(1, ["since": token]))
            #expect(await bob.frame("reset")?["reason"] == "foreign")
            // A client that comes back before there is anything new is not told again that there is
            // nothing.
            let place = await bob.frame("place")?["syncToken"] ?? .null
            try await bob.send(Self.set(2, ["since": place, "database": "public"]))
            try await bob.send(["type": "fence", "id": "f"])
            let frames = await bob.frames(until: "fenced")
            #expect(!frames.contains { $0["type"] == "notification" || $0["type"] == "reset" })
            try await alice.close()
            try await bob.close()
        }
    }

    @Test func `invalid queries of an inbox are refused with their place`() async throws {
        try await RunningRelay.with { relay in
            let page = try await Live.open(relay)
            try await page.send(Self.set(1))
            func refusal(_ page: LiveConnection) async -> String {
                let state = await page.frame("state") ?? [:]
                #expect(state["state"] == "error")
                return JSONValue.object(state).text
            }
            let unkept = await refusal(page)
            #expect(unkept.contains("kind: this container keeps no notifications"))
            #expect(unkept.contains("notKept"), "\(unkept)")
            try await Self.prepare(relay)
            // A client that was connected at that time need not start anew.
            try await page.send(Self.set(2))
            #expect(await page.frame("state")?["state"] == "bootstrapping")
            try await page.close()
            let again = try await Live.open(relay)
            try await again.send(Self.set(1, ["recordType": "Artwork"]))
            #expect(await refusal(again).contains("recordType: is not allowed for notifications"))
            try await again.send(Self.set(2, ["since": "nonsense"]))
            #expect(await refusal(again).contains("since: must be a syncToken"))
            let two: JSONValue = [
                "type": "set", "version": 3,
                "queries": [
                    ["id": "a", "kind": "notifications"],
                    ["id": "b", "kind": "notifications", "database": "public"],
                ],
            ]
            try await again.send(two)
            let named = await refusal(again)
            #expect(named.contains("one query of notifications"))
            #expect(named.contains(#""queries":[{"id":"b""#), "\(named)")
            try await again.close()
        }
    }

    @Test
    func `the query ends when the container keeps no more notifications, until it does again`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await Self.prepare(relay)
            let page = try await Live.open(relay)
            try await page.send(Self.set(1))
            _ = await page.frame("at")
            // Saving other settings ends nothing.
            try await relay.client.administer(
                "PATCH", relay.container.path, ["expirationSeconds": 600]
            ).expect(200)
            try await relay.container.post(.change("create", "a1"))
            #expect(await page.frame("notification")?["id"] == "n")
            for _ in 0..<2 {
                try await relay.client.administer(
                    "PATCH", relay.container.path, ["keepsInbox": false]
                ).expect(200)
            }
            let gone = await page.frame("gone")
            #expect(gone?["id"] == "n" && gone?["serverErrorCode"] == "NOT_FOUND")
            #expect(gone?["liveError"] == "notKept", "\(String(describing: gone))")
            try await page.send(["type": "fence", "id": "f"])
            #expect(!(await page.frames(until: "fenced")).contains { $0["type"] == "gone" })
            try await relay.client.administer(
                "PATCH", relay.container.path, ["keepsInbox": true]
            ).expect(200)
            // The same query declared again is another query.
            try await page.send(Self.set(2, ["initial": "none"]))
            try await page.send(["type": "fence", "id": "g"])
            _ = await page.frame("fenced")
            try await relay.container.post(.change("create", "a2"))
            let told = await page.frame("notification")
            #expect(told?["notification"]?.value(at: ["payload", "ck", "qry", "rid"]) == "a2")
            try await page.send(Self.set(3, ["initial": "none"]))
            try await relay.container.post(.change("create", "a3"))
            let more = await page.frame("notification")
            #expect(more?["notification"]?.value(at: ["payload", "ck", "qry", "rid"]) == "a3")
            try await page.close()
        }
    }

    @Test func `a slow reader gets no more than it reads, and misses nothing`() async throws {
        try await RunningRelay.with { relay in
            try await Self.prepare(relay)
            for number in 0..<120 {
                try await relay.container.post(.change("create", "b\(number)"))
            }
            let page = try await Live.open(relay)
            try await page.send(Self.set(1))
            var names: [JSONValue] = []
            while names.count < 120, let told = await page.frame("notification") {
                names.append(
                    told["notification"]?.value(at: ["payload", "ck", "qry", "rid"]) ?? .null)
            }
            #expect(Set(names).count == 120)
            try await page.close()
        }
    }
}
