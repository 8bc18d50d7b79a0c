import GatewaySimulator
import RelayModel
import RelayTestKit
import Testing

/// Who sees a change, and from when on.
@Suite(.serialized, .timeLimit(.minutes(30))) struct WalkScopeTests {
    @Test func `changes in a private database are only for its owner`() async throws {
        try await RunningRelay.with { relay in
            let container = relay.container
            for user in ["alice", "bob"] {
                try await container.save(.query("mine"), as: user, in: "private")
                try await container.save(.query("public"), as: user)
            }
            try await container.post(
                .change("create", "a1", adding: ["database": "private", "owner": "bob"]))
            let arrivals = try await relay.arrivals()
            #expect(arrivals == ["bobs: qry mine created a1"])
            let push = try #require(relay.gateway.simulated.pushes.first?.json)
            #expect(push.value(at: ["ck", "qry", "dbs"]) == 1)
            #expect(push.value(at: ["ck", "qry", "zoid"]) == "bob")
            #expect(push.value(at: ["ck", "ckuserid"]) == "bob")
        }
    }

    @Test func `a public change is pushed for each user's own subscription`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await relay.container.save(.query("hers"))
            try await relay.container.save(.query("his"), as: "bob")
            try await relay.container.post(
                .change("create", "a1", adding: ["origin": ["deviceID": "phone"]]))
            let arrivals = try await relay.arrivals()
            #expect(arrivals == ["bobs: qry his created a1", "tablet: qry hers created a1"])
        }
    }

    @Test func `containers and environments do not see each other`()
        async throws
    {
        try await RunningRelay.with { relay in
            let others = [
                try await SampleContainer.create(
                    "iCloud.com.example.Music", on: relay.client, for: relay.gateway),
                try await SampleContainer.create(
                    in: "production", on: relay.client, for: relay.gateway),
            ]
            try await relay.container.save(.query("first"))
            for (container, name) in zip(others, ["music", "production"]) {
                // In another container the same names mean other users and devices.
                try await container.register(SampleDevice(name: name, owner: "alice"))
                try await container.save(.query(name))
            }
            try await others[0].post(.change("create", "a1"))
            try await others[1].post(.change("create", "a2"))
            let arrivals = try await relay.arrivals()
            #expect(
                arrivals
                    == ["music: qry music created a1", "production: qry production created a2"])
            let environments = relay.gateway.simulated.pushes.map {
                [$0.header("apns-topic"), $0.json.value(at: ["ck", "ce"])?.text]
            }
            #expect(
                Set(environments) == [["com.example.Music", "2"], ["com.example.Art", "1"]])
        }
    }

    @Test func `a change before the save does not fire, one after it does`() async throws {
        try await RunningRelay.with { relay in
            let before = try await relay.container.post(.change("create", "a1"))
            let saved = try await relay.container.save(.query("q"))
            let after = try await relay.container.post(.change("create", "a2"))
            let arrivals = try await relay.arrivals()
            #expect(arrivals == ["phone: qry q created a2", "tablet: qry q created a2"])
            let positions = [
                before["results", "0", "position"],
                saved["subscriptions", "0", "activationPosition"],
                after["results", "0", "position"],
            ].compactMap { position -> UInt64? in
                guard case .string(let text)? = position else { return nil }
                return UInt64(text)
            }
            #expect(positions.count == 3 && positions == positions.sorted(), "\(positions)")
        }
    }

    @Test func `a deleted or edited subscription is judged as of the change`() async throws {
        try await RunningRelay.with { relay in
            let container = relay.container
            try await container.save(.query("gone"), .query("changed", "price > 1"))
            _ = try await container.call(
                "subscriptions/modify",
                [
                    "operations": [
                        ["operationType": "delete", "subscription": ["subscriptionID": "gone"]],
                        [
                            "operationType": "update",
                            "subscription": .query("changed", #"artist = "artist-2""#),
                        ],
                    ]
                ], as: "alice", in: "public"
            ).expect(200)
            try await container.post(.change("create", "a1"))
            try await container.post(.change("create", "a2", ["artist": "artist-2"]))
            let arrivals = try await relay.arrivals()
            #expect(
                arrivals == ["phone: qry changed created a2", "tablet: qry changed created a2"])
        }
    }

    // MARK: Once

    @Test func `a once subscription fires for exactly one of many changes`()
        async throws
    {
        try await RunningRelay.with { relay in
            let once = JSONValue.query("once", adding: ["firesOnce": true])
            try await relay.container.save(once, .query("always"))
            let changes = (1...20).map { JSONValue.change("create", "a\($0)") }
            try await withThrowingTaskGroup { group in
                for part in stride(from: 0, to: 20, by: 5) {
                    group.addTask {
                        try await relay.container.post(.array(Array(changes[part..<part + 5])))
                    }
                }
                try await group.waitForAll()
            }
            let arrivals = try await relay.arrivals()
            let fired = arrivals.filter { $0.contains(" once ") }
            #expect(fired.count == 2, "one change, two devices: \(fired)")
            #expect(Set(fired.compactMap { $0.split(separator: " ").last }).count == 1)
            #expect(arrivals.count == 42)
            let left = try await relay.container.subscriptionIDs()
            #expect(left == ["always"])
            let metrics = try await relay.metrics()
            #expect(metrics.contains("belfry_subscriptions_active 1\n"), "\(metrics)")
        }
    }

    // MARK: Repetitions

    @Test func `the same position key fires once, and another body with it is refused`()
        async throws
    {
        try await RunningRelay.with { relay in
            let container = relay.container
            try await container.save(.query("q"))
            let change = JSONValue.change("create", "a1", adding: ["position": "0/1"])
            let first = try await container.post(change)
            let again = try await container.post(change)
            #expect(first["results", "0", "status"] == "appended")
            #expect(again["results", "0", "status"] == "duplicate")
            #expect(again["results", "0", "position"] == first["results", "0", "position"])
            let other = try await container.post(
                .change("create", "a2", adding: ["position": "0/1"]), expecting: 409)
            #expect(other["serverErrorCode"] == "CONFLICT")
            let arrivals = try await relay.arrivals()
            #expect(arrivals == ["phone: qry q created a1", "tablet: qry q created a1"])
        }
    }

    @Test func `the same webhook-id fires once, and another body with it is refused`()
        async throws
    {
        try await RunningRelay.with { relay in
            let container = relay.container
            try await container.save(.query("q"))
            let headers = ["webhook-id": "msg_1"]
            let batch: JSONValue = [.change("create", "a1"), .change("create", "a2")]
            try await container.post(batch, headers: headers)
            let again = try await container.post(batch, headers: headers)
            #expect(again["results", "1", "status"] == "duplicate")
            try await container.post(
                [.change("create", "a1"), .change("create", "a3")], headers: headers,
                expecting: 409)
            let arrivals = try await relay.arrivals()
            #expect(
                arrivals == [
                    "phone: qry q created a1", "phone: qry q created a2",
                    "tablet: qry q created a1", "tablet: qry q created a2",
                ])
        }
    }

    @Test func `one bad change of a batch is refused by itself`() async throws {
        try await RunningRelay.with { relay in
            try await relay.container.save(.query("q"))
            let reply = try await relay.container.post(
                [.change("create", "a1"), ["operation": "create"], .change("create", "a2")],
                expecting: 422)
            #expect(reply["results", "0", "status"] == "appended")
            #expect(reply["results", "1", "status"] == "refused")
            #expect(reply["results", "1", "path"] == "[1].recordType")
            #expect(reply["results", "2", "status"] == "appended")
            let arrivals = try await relay.arrivals()
            #expect(
                arrivals == [
                    "phone: qry q created a1", "phone: qry q created a2",
                    "tablet: qry q created a1", "tablet: qry q created a2",
                ])
        }
    }
}
