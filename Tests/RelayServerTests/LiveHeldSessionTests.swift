import RelayModel
import RelayServer
import RelayTestKit
import Testing

/// Streams for `EventSource`, whose client has identified itself in an earlier call.
@Suite(.serialized, .timeLimit(.minutes(30))) struct LiveHeldSessionTests {
    typealias Live = LiveScenarioTests

    /// Creates a held session of alice's that shows all artworks; returns the path of its calls.
    private static func hold(
        _ relay: RunningRelay, showing query: JSONValue = ["id": "all", "recordType": "Artwork"]
    ) async throws -> String {
        let body: JSONValue = [
            "ckAPIToken": .string(relay.container.apiToken),
            "ckWebAuthToken": .string(SampleContainer.userToken("alice")), "format": "plain",
            "set": ["version": 1, "queries": [query]],
        ]
        let answer = try await relay.client.call(
            "POST", Live.path(relay) + "/sessions", body: body.text
        ).expect(200)
        #expect(answer["seconds"] == 60)
        guard case .string(let secret)? = answer["session"] else {
            Issue.record("a session has a secret: \(answer.text)")
            return ""
        }
        #expect(secret.utf8.count == 48)
        return Live.path(relay) + "/sessions/" + secret
    }

    private static func listen(
        _ relay: RunningRelay, _ path: String, from token: String? = nil
    ) async throws -> RawConnection {
        let stream = try await RawConnection.open(try await relay.relay.ports.port(of: "http"))
        let place = token.map { "Last-Event-ID: \($0)\r\n" } ?? ""
        try await stream.send("GET \(path)/stream HTTP/1.1\r\nHost: localhost\r\n\(place)\r\n")
        return stream
    }

    private static func token(in text: String) throws -> String {
        let line = try #require(text.split(separator: "\n").last { $0.hasPrefix("id: ") })
        return String(line.dropFirst(4))
    }

    @Test func `a reopened stream resumes where it was read to`() async throws {
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            try await relay.container.post(Live.artwork("create", "a0", ["price": 5]))
            let path = try await Self.hold(relay)
            let stream = try await Self.listen(relay, path)
            let first = await stream.hear(until: "\"type\":\"at\"")
            #expect(first.contains("text/event-stream") && first.contains("retry: "))
            #expect(first.contains(#""recordName":"a0""#))
            try await stream.finish()
            // A client that reconnects learns what happened meanwhile, and nothing twice.
            try await relay.container.post(Live.artwork("create", "a1", ["price": 7]))
            let again = try await Self.listen(relay, path, from: try Self.token(in: first))
            let missed = await again.hear(until: "\"state\":\"complete\"")
            #expect(missed.contains(#""isResumed":true"#), "\(missed)")
            #expect(missed.contains(#""recordName":"a1""#) && !missed.contains("\"a0\""))
            // Without a token the stream begins with the present result.
            let anew = try await Self.listen(relay, path)
            let whole = await anew.hear(until: "\"state\":\"complete\"")
            #expect(whole.contains("\"a0\"") && whole.contains("\"a1\""))
            #expect(await again.hear(until: "0\r\n\r\n").contains("4409"))
            try await Self.expectCounted(relay, "4409")
        }
    }

    /// Waits until the metrics count an end with this code.
    private static func expectCounted(_ relay: RunningRelay, _ code: String) async throws {
        let line = "belfry_live_ends_total{code=\"\(code)\"} "
        let isCounted = try await Turns.yield {
            try await relay.metrics().contains(line)
        }
        #expect(isCounted, "\(line)")
    }

    @Test func `a client of only new notifications misses none while away`() async throws {
        try await RunningRelay.with { relay in
            try await LiveNotificationTests.prepare(relay)
            let path = try await Self.hold(
                relay, showing: ["id": "n", "kind": "notifications", "initial": "none"])
            let stream = try await Self.listen(relay, path)
            let first = await stream.hear(until: #""type":"place""#)
            #expect(first.contains(#""type":"place""#) && !first.contains(#""notification""#))
            try await stream.finish()
            try await relay.container.post(.change("create", "a1"))
            let again = try await Self.listen(relay, path)
            #expect(await again.hear(until: #""a1""#).contains(#""type":"notification""#))
        }
    }

    @Test func `a query declared after the resumed place begins as declared`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            try await relay.container.post(Live.artwork("create", "a0", ["price": 7]))
            let path = try await Self.hold(relay)
            let stream = try await Self.listen(relay, path)
            let first = await stream.hear(until: "\"type\":\"at\"")
            let place = try Self.token(in: first)
            #expect(place.hasSuffix(".1"), "\(place)")
            let edit: JSONValue = [
                "type": "set", "version": 2, "base": 1,
                "add": [
                    ["id": "dear", "recordType": "Artwork", "query": ["predicate": "price > 5"]]
                ],
            ]
            try await relay.client.call("POST", path, body: edit.text).expect(200)
            let second = await stream.hear(until: "\"complete\"")
            let told = try #require(second.split(separator: "\"complete\"").first)
            #expect(told.contains("\"dear\"") && !told.contains("id: "), "\(second)")
            // The relay behaves as if none of it had arrived: known queries resume, and new ones
            // are shown.
            let again = try await Self.listen(relay, path, from: place)
            let whole = await again.hear(until: "\"type\":\"at\"")
            #expect(whole.split(separator: "\"isResumed\":true").count == 2, "\(whole)")
            #expect(whole.split(separator: "\"isResumed\":false").count == 2, "\(whole)")
            #expect(whole.contains("\"type\":\"result\"") && whole.contains("\"a0\""))
            #expect(try Self.token(in: whole).hasSuffix(".2"))
            // An invalid place is ignored: all queries begin as they were declared.
            let anew = try await Self.listen(relay, path, from: "1-store-1")
            #expect(!(await anew.hear(until: "\"complete\"")).contains("\"isResumed\":true"))
        }
    }

    @Test func `frames posted to a session count as requests of its user`() async throws {
        try await RunningRelay.with(["--rates-user", "1"]) { relay in
            let path = try await Self.hold(relay)
            var statuses: Set<Int> = []
            // Ten calls at once and one a second are allowed: however long a call takes, some come
            // too soon.
            for _ in 0..<600 where !statuses.contains(429) {
                let answer = try await relay.client.call("POST", path, body: Self.fence)
                statuses.insert(answer.status)
                if answer.status == 429 { #expect(answer["retryAfter"] == 1) }
            }
            #expect(statuses == [200, 429])
        }
    }

    @Test func `a session without a stream is kept for a minute and no longer`() async throws {
        var world = World.real
        let clock = LongWaits(of: .seconds(60))
        world.clock = clock
        try await RunningRelay.with(world: world) { relay in
            try await Live.keep(relay)
            let kept = try await Self.hold(relay)
            let left = try await Self.hold(relay)
            let stream = try await Self.listen(relay, kept)
            _ = await stream.hear(until: "\"type\":\"at\"")
            try await Self.expectGone(left, relay, clock)
            #expect(try await relay.client.call("GET", left + "/stream").status == 404)
            try await relay.client.call("POST", kept, body: Self.fence).expect(200)
            // The minute begins when the session's stream ends, and opening another stream stops
            // it.
            let again = try await Self.listen(relay, kept)
            _ = await again.hear(until: "\"type\":\"at\"")
            #expect(await stream.hear(until: "0\r\n\r\n").contains("4409"))
            clock.pass()
            try await relay.client.call("POST", kept, body: Self.fence).expect(200)
            try await again.close()
            try await Self.expectGone(kept, relay, clock)
        }
    }

    private static let fence = #"{"type":"fence","id":"f"}"#

    /// Advances the clock by minutes until a session is gone.
    private static func expectGone(
        _ path: String, _ relay: RunningRelay, _ clock: LongWaits
    ) async throws {
        let isGone = try await Turns.yield {
            clock.pass()
            return try await relay.client.call("POST", path, body: fence).status == 404
        }
        #expect(isGone, "\(path) is still there")
    }

    @Test func `frames are posted, and their answers come by the stream`() async throws {
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            let path = try await Self.hold(relay)
            let stream = try await Self.listen(relay, path)
            _ = await stream.hear(until: "\"type\":\"at\"")
            let edit: JSONValue = [
                "type": "set", "version": 2, "base": 1,
                "add": [
                    ["id": "dear", "recordType": "Artwork", "query": ["predicate": "price > 5"]]
                ],
            ]
            try await relay.client.call("POST", path, body: edit.text).expect(200)
            #expect(await stream.hear(until: "\"complete\"").contains("\"id\":\"dear\""))
            try await relay.client.call("POST", path, body: #"{"type":"fence","id":"f"}"#)
                .expect(200)
            #expect(await stream.hear(until: "\"fenced\"").contains("\"id\":\"f\""))
            let capitals = path.replacing("/development/", with: "/DEVELOPMENT/")
            try await relay.client.call("POST", capitals, body: Self.fence).expect(200)
            let bad = try await relay.client.call("POST", path, body: "{")
            #expect(bad.status == 400)
            let hello = try await relay.client.call("POST", path, body: #"{"type":"hello"}"#)
            #expect(hello.status == 400 && hello.text.contains("was already sent"))
            // The edit is still in effect when the stream is opened again.
            let again = try await Self.listen(relay, path)
            #expect(await again.hear(until: "\"complete\"").contains("\"id\":\"dear\""))
            try await relay.client.call("POST", path, body: #"{"type":"bye"}"#).expect(200)
            _ = await again.hear(until: "0\r\n\r\n")
            try await Self.expectCounted(relay, "1000")
            let gone = try await relay.client.call(
                "POST", path, body: #"{"type":"fence","id":"g"}"#)
            #expect(gone.status == 404)
        }
    }

    @Test func `an edit accepted while the stream was reopened is in effect`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            let path = try await Self.hold(relay)
            var former = try await Self.listen(relay, path)
            _ = await former.hear(until: "\"type\":\"at\"")
            for version in 2...60 {
                let edit: JSONValue = [
                    "type": "set", "version": .integer(Int64(version)),
                    "queries": [["id": .string("q\(version)"), "recordType": "Artwork"]],
                ]
                async let opened = Self.listen(relay, path)
                try await relay.client.call("POST", path, body: edit.text).expect(200)
                let stream = try await opened
                var told = await stream.hear(until: "\"type\":\"at\"")
                try await relay.client.call("POST", path, body: Self.fence).expect(200)
                if !told.contains("fenced") { told += await stream.hear(until: "\"fenced\"") }
                guard told.contains(#""version":\#(version),"state":"complete""#) else {
                    Issue.record("version \(version) was taken, and lost: \(told)")
                    return
                }
                try await former.close()
                former = stream
            }
            try await former.close()
        }
    }

    @Test func `asking for the head of a stream replaces no stream`() async throws {
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            let path = try await Self.hold(relay)
            let stream = try await Self.listen(relay, path)
            _ = await stream.hear(until: "\"type\":\"at\"")
            #expect(try await relay.client.call("HEAD", path + "/stream").status == 405)
            try await relay.container.post(Live.artwork("create", "a1", ["price": 7]))
            #expect(await stream.hear(until: "\"type\":\"at\"").contains("\"a1\""))
            try await stream.close()
        }
    }

    @Test func `a session needs its secret and ends with signing out`() async throws {
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            let path = try await Self.hold(relay)
            let wrong = String(path.dropLast(1)) + (path.hasSuffix("0") ? "1" : "0")
            let foreign = path.replacing("/development/", with: "/production/")
            for path in Set([wrong, foreign]).subtracting([path]) {
                let refused = try await relay.client.call("GET", path + "/stream")
                #expect(refused.status == 404, "\(refused.text)")
            }
            let stream = try await Self.listen(relay, path)
            _ = await stream.hear(until: "\"type\":\"at\"")
            try await relay.container.call("users/signOut", [:], as: "alice", in: "public")
                .expect(200)
            #expect(await stream.hear(until: "0\r\n\r\n").contains("4403"))
            let refused = try await relay.client.call("GET", path + "/stream")
            #expect(refused.status == 404)
        }
    }
}
