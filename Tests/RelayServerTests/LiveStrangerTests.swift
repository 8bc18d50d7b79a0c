import RelayModel
import RelayTestKit
import Synchronization
import Testing

@testable import RelayServer

/// What a connection may cost before it is known whose it is, and what one may that is.
@Suite(.serialized, .timeLimit(.minutes(30))) struct LiveStrangerTests {
    typealias Live = LiveScenarioTests

    private static func stranger(_ relay: RunningRelay) async throws -> LiveConnection {
        try await LiveConnection.open(
            try await relay.relay.ports.port(of: "http"), path: Live.path(relay)
        ).0
    }

    @Test func `guessing API tokens is slowed as it is over HTTP`() async throws {
        // So slow a rate that nothing is forgiven between two guesses on a busy machine.
        try await RunningRelay.with(["--rates-address", "2"]) { relay in
            var codes: [JSONValue] = []
            for number in 0..<20 where codes.last != 4429 {
                let guess = try await Self.stranger(relay)
                try await guess.send(["type": "hello", "ckAPIToken": .string("wrong\(number)")])
                codes.append(await guess.frame("bye")?["code"] ?? .null)
                try await guess.close()
            }
            #expect(codes.first == 4403)
            #expect(codes.last == 4429)
        }
    }

    @Test func `only pages that are named may connect, and programs that are no pages`()
        async throws
    {
        try await RunningRelay.with(["--live-allowed-origins", "https://art.example"]) { relay in
            let port = try await relay.relay.ports.port(of: "http")
            func head(_ headers: [String]) async throws -> String {
                try await LiveConnection.open(port, path: Live.path(relay), headers: headers).head
            }
            let foreign = try await head(["Origin: https://evil.example"])
            #expect(foreign.hasPrefix("HTTP/1.1 403"), "\(foreign)")
            #expect(try await head(["Origin: null"]).hasPrefix("HTTP/1.1 403"))
            #expect(try await head(["Origin: https://ART.example"]).hasPrefix("HTTP/1.1 101"))
            #expect(try await head([]).hasPrefix("HTTP/1.1 101"))
            let keys =
                "?ckAPIToken=\(relay.container.apiToken)"
                + "&ckWebAuthToken=\(SampleContainer.userToken("alice"))"
            let body = #"{"set":{"version":1,"queries":[]},"wait":0}"#
            for (origin, status) in [("https://evil.example", 403), ("https://art.example", 200)] {
                let raw = try await RawConnection.open(port)
                try await raw.send(
                    "POST \(Live.path(relay))/poll\(keys) HTTP/1.1\r\nHost: localhost\r\n"
                        + "Origin: \(origin)\r\nConnection: close\r\n"
                        + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
                let answer = await raw.hear(until: "\r\n\r\n")
                #expect(answer.hasPrefix("HTTP/1.1 \(status)"), "\(answer)")
            }
        }
    }

    @Test func `whoever is too many is told when to come back`() async throws {
        try await RunningRelay.with(["--live-connections", "2"]) { relay in
            let first = try await Live.open(relay)
            _ = try await Live.open(relay, as: "bob")
            let third = try await Self.stranger(relay)
            try await third.send(Live.hello(relay, as: "carol"))
            let bye = await third.frame("bye")
            #expect(bye?["code"] == 4503)
            #expect(bye?["reconnect"] == true)
            try await first.send(["type": "bye"])
            _ = await first.frame("bye")
            // The place is free once the relay has seen that the connection is no more.
            var isIn = false
            for _ in 0..<200 where !isIn {
                let next = try await Self.stranger(relay)
                try await next.send(Live.hello(relay, as: "carol"))
                isIn = await next.frame()?["type"] == "welcome"
            }
            #expect(isIn)
        }
    }

    @Test func `clients who stay leave room for those who ask and go`() async throws {
        let settings = ["--http-connections", "64", "--http-connections-per-address", "64"]
        try await RunningRelay.with(settings) { relay in
            var inside: [LiveConnection] = []
            for number in 0..<62 {
                inside.append(try await Live.open(relay, as: number < 30 ? "alice" : "bob"))
            }
            let next = try await Self.stranger(relay)
            try await next.send(Live.hello(relay))
            let bye = await next.frame("bye")
            #expect(bye?["code"] == 4503)
            try await next.close()
            let raw = try await RawConnection.open(try await relay.relay.ports.port(of: "http"))
            try await raw.send("GET /healthz HTTP/1.1\r\nHost: relay\r\n\r\n")
            let answer = await raw.hear(until: "}")
            #expect(answer.hasPrefix("HTTP/1.1 200"), "\(answer)")
            for connection in inside { try await connection.close() }
        }
    }

    @Test func `one container has not all connections of live clients`() async throws {
        try await RunningRelay.with(["--live-connections-per-container", "1"]) { relay in
            let first = try await Live.open(relay)
            let second = try await Self.stranger(relay)
            try await second.send(Live.hello(relay, as: "bob"))
            let bye = await second.frame("bye")
            #expect(bye?["code"] == 4503)
            #expect(bye?["reason"] == "a container has at most 1 live connections")
            try await first.send(["type": "bye"])
            _ = await first.frame("bye")
        }
        var bounds = LiveBounds()
        #expect(bounds.containerConnections == 19_688)
        #expect(bounds.besideRequests(10_000).connections == 9_688)
        #expect(bounds.besideRequests(100_000).connections == 20_000)
        bounds.connectionsPerContainer = 30_000
        #expect(bounds.containerConnections == 20_000)
    }

    @Test func `the return of many is spread over seconds that have room`() {
        var newcomers = LiveNewcomers()
        func waits(_ count: Int, at milliseconds: Int64) -> [Int64?] {
            (0..<count).map { _ in
                newcomers.take(
                    at: Timestamp(milliseconds: milliseconds), of: Fixtures.container, most: 2)
            }
        }
        #expect(waits(7, at: 5_999) == [nil, nil, 1, 1, 2, 2, 3])
        #expect(waits(3, at: 6_000) == [nil, nil, 1])
        #expect(waits(400, at: 7_000).last == LiveNewcomers.mostPatience)
        // A clock that is set back does not keep anybody out.
        #expect(waits(1, at: 3_000) == [nil])
    }

    @Test func `however many of one container return, another one's get in`() {
        var newcomers = LiveNewcomers()
        let other = ContainerKey(container: known("quiet"), environment: .production)
        func waits(_ count: Int, of container: ContainerKey) -> [Int64?] {
            (0..<count).map { _ in
                newcomers.take(at: Timestamp(milliseconds: 5_000), of: container, most: 128)
            }
        }
        #expect(waits(200, of: Fixtures.container).count { $0 == nil } == 126)
        #expect(waits(3, of: other) == [nil, nil, 1])
    }

    @Test func `a file with an origin that fits no page is refused`() {
        var bounds = LiveBounds()
        #expect(bounds.setOrigins("https://a.example, http://localhost:3000") == [])
        #expect(bounds.admits(origin: "http://LOCALHOST:3000"))
        #expect(!bounds.admits(origin: "https://a.example.evil"))
        for wrong in ["https://a.example/", "a.example", "*", "https://*/x", "https://u@a.example"]
        {
            #expect(bounds.setOrigins(wrong).count == 1, "\(wrong)")
        }
    }

    @Test func `a stranger's frame has little room, and one's who is known has more`() async throws
    {
        try await RunningRelay.with { relay in
            let long = JSONValue.object(
                ["type": "fence", "id": .string(String(repeating: "x", count: 500_000))])
            let stranger = try await Self.stranger(relay)
            try await stranger.send(long)
            #expect(await stranger.frame("bye")?["code"] == 4413)
            let page = try await Live.open(relay)
            try await page.send(long)
            #expect(await page.frame("fenced") != nil)
        }
    }

    @Test func `a result of some megabytes arrives by each way in`() async throws {
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            let count = 80
            let text = String(repeating: "x", count: 60_000)
            for number in 0..<count {
                try await relay.container.post(
                    Live.artwork("create", "r\(number)", ["text": .string(text)]))
            }
            let set: JSONObject = [
                "version": 1, "queries": [["id": "all", "recordType": "Artwork"]],
            ]
            let page = try await Live.open(relay)
            var object = set
            object["type"] = "set"
            try await page.send(.object(object))
            var records = 0
            for frame in await page.frames(until: "at") {
                if case .array(let part)? = frame["records"] { records += part.count }
            }
            #expect(records == count)
            let keys =
                "?ckAPIToken=\(relay.container.apiToken)"
                + "&ckWebAuthToken=\(SampleContainer.userToken("alice"))"
            let body = JSONValue.object(["format": "plain", "set": .object(set), "wait": 0]).text
            let poll = try await relay.client.call(
                "POST", Live.path(relay) + "/poll" + keys, body: body
            ).expect(200)
            #expect(poll.text.utf8.count > count * text.utf8.count)
            let stream = try await RawConnection.open(
                try await relay.relay.ports.port(of: "http"))
            try await stream.send(
                "POST \(Live.path(relay))/stream\(keys) HTTP/1.1\r\nHost: localhost\r\n"
                    + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
            let heard = await stream.hear(until: "id: ")
            #expect(heard.utf8.count > count * text.utf8.count)
        }
    }
}
