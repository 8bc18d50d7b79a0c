import Foundation
import HTTPTypes
import RelayModel
import RelayTestKit
import Synchronization
import Testing

@testable import RelayServer

/// What a connection may cost before and after its user is known.
@Suite(.serialized, .timeLimit(.minutes(30))) struct LiveStrangerTests {
    typealias Live = LiveScenarioTests

    private static func stranger(_ relay: RunningRelay) async throws -> LiveConnection {
        try await LiveConnection.open(
            try await relay.relay.ports.port(of: "http"), path: Live.path(relay)
        ).0
    }

    @Test func `only the credentials of an upgrade's head are kept`() {
        let sent = [
            "Authorization": "Bearer x", "ckAPIToken": "y", "Origin": "https://example.com",
            "X-Belfry-User": "alice", "X-Apple-CloudKit-Request-KeyID": "k", "Cookie": "a=b",
            "X-Forwarded-For": "192.0.2.1", "X-Whatever": String(repeating: "z", count: 60_000),
        ]
        var fields = HTTPFields()
        for (name, value) in sent {
            if let name = HTTPField.Name(name) { fields[name] = value }
        }
        let kept = LiveSockets.kept(fields).map(\.name.canonicalName).sorted()
        #expect(
            kept == [
                "authorization", "ckapitoken", "origin", "x-apple-cloudkit-request-keyid",
                "x-belfry-user",
            ])
    }

    @Test func `a socket that is refused for now learns in the head when to return`() throws {
        let error = APIError(.tryAgainLater, "the relay is shutting down", retryAfter: 3)
        let fields = LiveUpgrade.fields(refusing: error, by: .serviceUnavailable, uuid: "u-1")
        let version = try #require(HTTPField.Name("Sec-WebSocket-Version"))
        #expect(fields[.retryAfter] == "3" && fields[version] == nil)
        let old = LiveUpgrade.fields(
            refusing: APIError(.badRequest, "13 is expected"), by: .upgradeRequired, uuid: "u-2")
        let uuid = try #require(HTTPField.Name("X-Apple-Request-UUID"))
        #expect(fields[uuid] == "u-1" && old[uuid] == "u-2")
        #expect(old[.retryAfter] == nil && old[version] == "13")
        #expect(old[.upgrade] == "websocket" && fields[.upgrade] == nil)
        #expect(old[values: .connection] == ["close", "Upgrade"])
    }

    /// A flag is two regional indicators, so Swift finds a letter from the end by counting all
    /// indicators before it.
    @Test(.timeLimit(.minutes(5))) func `a field with very many flags is read quickly`() {
        let flags = String(repeating: "\u{1F1E6}", count: 1_000_000)
        #expect(Substring(" \t\(flags)\t ").trimmed.utf8.elementsEqual(flags.utf8))
        #expect(Substring(" \t ").trimmed.isEmpty)
        #expect(Substring("\tWebSocket é ").trimmed == "websocket é")
        #expect(LiveEventID("1-a-b.\(flags)") == nil)
        #expect(LiveEventID("1-a-b.7")?.version == 7)
    }

    @Test func `guessing API tokens is slowed as over HTTP`() async throws {
        // The rate is so slow that nothing is regained between two guesses on a busy machine.
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

    /// A failing write makes the channel read what is left, in the middle of the previous read.
    @Test(arguments: [9, 8] as [UInt8])
    func `a client that requests answers and resets the connection ends nothing else`(
        opcode: UInt8
    ) async throws {
        try await RunningRelay.with { relay in
            for _ in 0..<200 {
                try await Self.stranger(relay).reset(sending: 20_000, opcode)
            }
            let overview = try await relay.client.administer("GET", "overview")
            #expect(overview.status == 200)
        }
    }

    @Test func `a set sent with hello reveals nothing of others while it is processed`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            guard case .object(var hello) = Live.hello(relay, as: "bob"),
                case .object(var change) = Live.artwork("update", "secret", [:])
            else { return }
            change["readers"] = ["alice"]
            let secret = change
            let queries = (0..<60).map { number -> JSONValue in
                [
                    "id": .string("q\(number)"), "kind": "changes", "recordType": "Artwork",
                    "query": ["predicate": .string("rank > \(number - 100)")],
                ]
            }
            hello["set"] = ["version": 1, "queries": .array(queries)]
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                tasks.addTask {
                    var rank: Int64 = 0
                    while !Task.isCancelled {
                        rank += 1
                        var change = secret
                        change["after"] = ["rank": .integer(rank)]
                        _ = try? await relay.container.post(.object(change))
                    }
                }
                for _ in 0..<40 {
                    let page = try await Self.stranger(relay)
                    try await page.send(.object(hello))
                    let frames = await page.frames(until: "at")
                    #expect(frames.last?["type"] == "at", "\(frames)")
                    #expect(!frames.contains { $0["type"] == "change" })
                    try await page.close()
                }
                tasks.cancelAll()
            }
        }
    }

    /// Regression: of some thousand clients that disconnected at that moment, one was kept.
    ///
    /// So few show the error only now and then.
    @Test func `a client that disconnects during admission is forgotten`() async throws {
        let rates = [
            "--rates-key", "0", "--rates-address", "0", "--live-hellos-per-second", "1000000",
        ]
        try await RunningRelay.with(rates) { relay in
            for _ in 0..<500 {
                let page = try await Self.stranger(relay)
                try await page.send(Live.hello(relay))
                try await page.reset(sending: 0, 9)
            }
            let isForgotten = try await Turns.yield {
                let clients = try await relay.client.administer(
                    "GET", "\(relay.container.path)/live/clients", nil
                ).expect(200)
                return clients["clients", "0"] == nil
            }
            #expect(isForgotten)
        }
    }

    @Test func `a stream of a disconnected client no longer counts`() async throws {
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            func count() async throws -> Int {
                let answer = try await relay.client.administer(
                    "GET", "\(relay.container.path)/live/clients", nil
                ).expect(200)
                guard case .array(let clients)? = answer["clients"] else { return -1 }
                return clients.count
            }
            let text = #"{"set":{"version":1,"queries":[]}}"#
            let stream = try await RawConnection.posting(text, to: "stream", of: relay)
            _ = await stream.hear(until: "id: ")
            #expect(try await count() == 1)
            try await stream.close()
            // The next heartbeat, after half a minute, would notice it in any case.
            let end = ContinuousClock.now + .seconds(20)
            while try await count() > 0, ContinuousClock.now < end {
                try await Task.sleep(for: .milliseconds(20))
            }
            #expect(try await count() == 0)
        }
    }

    @Test func `a socket requested after other requests is answered in order, once`()
        async throws
    {
        try await RunningRelay.with { relay in
            let port = try await relay.relay.ports.port(of: "http")
            let path = Live.path(relay)
            let body = #"{"set":{"version":1,"queries":[]},"wait":1}"#
            let key =
                "Upgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: belfry.live.v1\r\n\r\n"
            for (first, status) in [
                ("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 200),
                ("GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
                (
                    "POST \(path)/poll?ckAPIToken=\(relay.container.apiToken)"
                        + "&ckWebAuthToken=\(SampleContainer.userToken("alice")) HTTP/1.1\r\n"
                        + "Host: localhost\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)",
                    200
                ),
                // Without "Connection: Upgrade" the following bytes would be read as HTTP.
                ("GET \(path) HTTP/1.1\r\nHost: localhost\r\n\(key)", 400),
            ] {
                let (page, head) = try await LiveConnection.open(port, path: path, first: first)
                #expect(head.hasPrefix("HTTP/1.1 \(status)"), "\(first) \(head)")
                try? await page.close()
                // The relay still serves others.
                let other = try await Live.open(relay)
                try await other.close()
            }
            let raw = try await RawConnection.open(port)
            try await raw.send(
                "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
                    + "GET \(path) HTTP/1.1\r\nHost: localhost\r\n"
                    + "Connection: Upgrade\r\n\(key)")
            let answers = await raw.hear(until: "this path opens WebSockets")
            #expect(answers.hasPrefix("HTTP/1.1 200"), "\(answers)")
            #expect(answers.contains("HTTP/1.1 400"), "\(answers)")
        }
    }

    /// RFC 6455, section 4.1, requires HTTP/1.1, and a server ignores such a field of HTTP/1.0.
    @Test func `no socket is opened over HTTP 1`() async throws {
        try await RunningRelay.with { relay in
            let raw = try await RawConnection.open(try await relay.relay.ports.port(of: "http"))
            try await raw.send(
                "GET \(Live.path(relay)) HTTP/1.0\r\nHost: localhost\r\nConnection: Upgrade\r\n"
                    + "Upgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                    + "Sec-WebSocket-Version: 13\r\n"
                    + "Sec-WebSocket-Protocol: belfry.live.v1\r\n\r\n")
            let answer = await raw.hearAll()
            #expect(answer.contains(" 400 "), "\(answer)")
            #expect(answer.contains("this path opens WebSockets"), "\(answer)")
        }
    }

    @Test func `an unread stream lags like a socket and misses nothing`()
        async throws
    {
        // Even on a slow machine: the default would end a client that reads nothing for so long.
        try await RunningRelay.with(["--http-answer-seconds", "600"]) { relay in
            let query = #"{"id":"all","kind":"changes","recordType":"Artwork"}"#
            let text = #"{"format":"plain","set":{"version":1,"queries":[\#(query)]}}"#
            let stream = try await RawConnection.posting(text, to: "stream", of: relay)
            _ = await stream.hear(until: "id: ")
            try await stream.pause()
            // More than the connection and the operating system buffer.
            let long = String(repeating: "x", count: 600_000)
            let count = 14
            for number in 0..<count {
                try await relay.container.post(
                    Live.artwork("create", "r\(number)", ["text": .string(long)]))
            }
            try await stream.resume()
            let heard = await stream.hear(until: #""recordName":"r\#(count - 1)""#)
            #expect(heard.contains(#""isResumed":true"#), "it was told what it had not taken")
            let names = heard.components(separatedBy: #""recordName":""#).dropFirst()
                .map { String($0.prefix { $0 != "\"" }) }
            #expect(names == (0..<count).map { "r\($0)" }, "each once, in order")
            try await stream.close()
        }
    }

    @Test func `only listed pages may connect, and programs that are no pages`()
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
            let body = #"{"set":{"version":1,"queries":[]},"wait":0}"#
            for (origin, status) in [("https://evil.example", 403), ("https://art.example", 200)] {
                let raw = try await RawConnection.posting(
                    body, to: "poll", of: relay,
                    headers: ["Origin: \(origin)", "Connection: close"])
                let answer = await raw.hear(until: "\r\n\r\n")
                #expect(answer.hasPrefix("HTTP/1.1 \(status)"), "\(answer)")
            }
        }
    }

    @Test func `a client beyond the bound learns when to return`() async throws {
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
            // The place is free once the relay has noticed that the connection is closed.
            var isIn = false
            for _ in 0..<200 where !isIn {
                let next = try await Self.stranger(relay)
                try await next.send(Live.hello(relay, as: "carol"))
                isIn = await next.frame()?["type"] == "welcome"
            }
            #expect(isIn)
        }
    }

    @Test func `lasting clients leave room for short requests`() async throws {
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
            // The place is free once the relay has noticed that the connection is closed.
            var answer = ""
            for _ in 0..<200 where !answer.hasPrefix("HTTP/1.1 200") {
                let raw = try await RawConnection.open(
                    try await relay.relay.ports.port(of: "http"))
                try? await raw.send("GET /healthz HTTP/1.1\r\nHost: relay\r\n\r\n")
                answer = await raw.hear(until: "}")
            }
            #expect(answer.hasPrefix("HTTP/1.1 200"), "\(answer)")
            for connection in inside { try await connection.close() }
        }
    }

    @Test func `one container cannot use all connections of live clients`() async throws {
        try await RunningRelay.with(["--live-connections-per-container", "1"]) { relay in
            let first = try await Live.open(relay)
            let second = try await Self.stranger(relay)
            try await second.send(Live.hello(relay, as: "bob"))
            let bye = await second.frame("bye")
            #expect(bye?["code"] == 4503)
            #expect(bye?["reason"] == "a container may have at most 1 live connections")
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

    @Test func `many reconnections are spread over seconds with room`() {
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
        // A clock that is set back does not lock anybody out.
        #expect(waits(1, at: 3_000) == [nil])
    }

    @Test func `reconnections of one container do not delay another's`() {
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

    @Test func `an origin that fits no page is refused in the configuration`() {
        var bounds = LiveBounds()
        // Hybrid apps have URL schemes of their own, and pages from files have an origin without a
        // host.
        let apps = "capacitor://localhost, ionic://localhost, tauri://localhost, app://-, file://"
        #expect(bounds.setOrigins("https://a.example, http://localhost:3000, \(apps)") == [])
        for origin in ["capacitor://localhost", "tauri://localhost", "app://-", "file://"] {
            #expect(bounds.admits(origin: origin), "\(origin)")
        }
        #expect(!bounds.admits(origin: "null"))
        #expect(bounds.setOrigins("https://a.example:443, http://b.example:80") == [])
        #expect(bounds.admits(origin: "https://a.example"))
        #expect(bounds.admits(origin: "http://b.example"))
        #expect(bounds.setOrigins("https://a.example, http://localhost:3000") == [])
        #expect(bounds.admits(origin: "http://LOCALHOST:3000"))
        #expect(!bounds.admits(origin: "https://a.example.evil"))
        let wrongs = [
            "https://a.example/", "a.example", "*", "https://*/x", "https://u@a.example",
            "https://", "capacitor://", "capacitor://localhost/", "localhost:3000", "file:///x",
        ]
        for wrong in wrongs {
            #expect(bounds.setOrigins(wrong).count == 1, "\(wrong)")
        }
    }

    @Test func `a stranger's frame has little room, and a known client's has more`() async throws {
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

    @Test(arguments: ["poll", "sessions"])
    func `a long set over HTTP is accepted if the head has the credentials`(
        door: String
    ) async throws {
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            let long = String(repeating: "k", count: 200)
            let keys = (0..<1000).map { JSONValue.string("\(long)\($0)") }
            let queries = (0..<2).map { number -> JSONValue in
                [
                    "id": .string("q\(number)"), "recordType": "Artwork",
                    "desiredKeys": .array(keys), "before": .bool(number == 0),
                ]
            }
            var body: JSONObject = [
                "wait": 0, "set": ["version": 1, "queries": .array(queries)],
            ]
            let (path, token) = (Live.path(relay) + "/\(door)", SampleContainer.userToken("alice"))
            let head = [
                "ckAPIToken": relay.container.apiToken, "Authorization": "Bearer \(token)",
            ]
            let answer = try await relay.client.call(
                "POST", path, headers: head, body: JSONValue.object(body).text
            ).expect(200)
            if door == "poll" { #expect(answer["frames", "1", "state"] == "bootstrapping") }
            // Credentials in the body must be read before the caller is known.
            body["ckAPIToken"] = .string(relay.container.apiToken)
            body["ckWebAuthToken"] = .string(token)
            let refused = try await relay.client.call(
                "POST", path, body: JSONValue.object(body).text)
            #expect(refused.status == 413, "\(refused.text)")
        }
    }

    @Test func `a result of some megabytes arrives by each way`() async throws {
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
            let body = JSONValue.object(["format": "plain", "set": .object(set), "wait": 0]).text
            let poll = try await relay.client.call(
                "POST", Live.door("poll", of: relay), body: body
            ).expect(200)
            #expect(poll.text.utf8.count > count * text.utf8.count)
            let stream = try await RawConnection.posting(body, to: "stream", of: relay)
            let heard = await stream.hear(until: "id: ")
            #expect(heard.utf8.count > count * text.utf8.count)
        }
    }
}
