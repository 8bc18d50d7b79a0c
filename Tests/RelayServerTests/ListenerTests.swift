import Foundation
import RelayModel
import RelayServer
import RelayTestKit
import Testing

/// The listeners of a running relay under many clients and slow ones.
@Suite(.serialized, .timeLimit(.minutes(15))) struct ListenerTests {
    private static func port(_ relay: RunningRelay) async throws -> Int {
        try await relay.relay.ports.port(of: "http")
    }

    private static let question = "GET /healthz HTTP/1.1\r\nHost: relay\r\n\r\n"

    /// Opens connections until one is refused, and returns the accepted ones and the refusal.
    private static func fill(_ port: Int) async throws -> ([RawConnection], refusal: String) {
        var crowd: [RawConnection] = []
        while crowd.count < 64 {
            let connection = try await RawConnection.open(port)
            try await connection.send(question)
            let answer = await connection.hear(until: "}")
            guard answer.hasPrefix("HTTP/1.1 200") else { return (crowd, answer) }
            crowd.append(connection)
        }
        return (crowd, "")
    }

    @Test func `a full listener says when to retry and serves later clients`()
        async throws
    {
        let settings = ["--http-connections", "8", "--http-connections-per-address", "8"]
        try await RunningRelay.with(settings) { relay in
            let port = try await Self.port(relay)
            let (crowd, refusal) = try await Self.fill(port)
            #expect(crowd.count <= 8)
            #expect(refusal.hasPrefix("HTTP/1.1 503"), "\(refusal)")
            #expect(refusal.contains("Retry-After: 1\r\n"))
            #expect(refusal.contains("Connection: close\r\n"))
            #expect(refusal.contains("the relay already has the maximum number of connections"))
            // The operator has a separate listener.
            let overview = try await relay.client.administer("GET", "overview")
            #expect(overview.status == 200)
            for connection in crowd { try await connection.finish() }
            for connection in crowd { _ = await connection.hearAll() }
            var answer = ""
            while !answer.hasPrefix("HTTP/1.1 200") {
                let next = try await RawConnection.open(port)
                try await next.send(Self.question)
                answer = await next.hear(until: "}")
                try? await next.finish()
            }
        }
    }

    @Test func `many clients at a full listener wait in line and are each answered`() async throws {
        let settings = ["--http-connections", "8", "--http-connections-per-address", "8"]
        try await RunningRelay.with(settings) { relay in
            let port = try await Self.port(relay)
            let (inside, _) = try await Self.fill(port)
            var crowd: [RawConnection] = []
            for _ in 0..<40 {
                let connection = try await RawConnection.open(port)
                try? await connection.send(Self.question)
                crowd.append(connection)
            }
            for connection in crowd {
                let answer = await connection.hear(until: "}")
                #expect(answer.hasPrefix("HTTP/1.1 503"), "\(answer)")
            }
            for connection in inside { try await connection.close() }
        }
    }

    @Test func `one address gets no more than its share of the listener`() async throws {
        try await RunningRelay.with(["--http-connections-per-address", "3"]) { relay in
            let port = try await Self.port(relay)
            var refused = 0
            var crowd: [RawConnection] = []
            for _ in 0..<6 {
                let connection = try await RawConnection.open(port)
                try await connection.send(Self.question)
                let answer = await connection.hear(until: "}")
                if answer.contains("your address already has the maximum number") { refused += 1 }
                crowd.append(connection)
            }
            #expect(refused >= 3)
            #expect(try await relay.client.administer("GET", "overview").status == 200)
            for connection in crowd { try? await connection.finish() }
        }
    }

    @Test func `at the operator's port idle connections give way to new ones`() async throws {
        try await RunningRelay.with(["--admin-connections", "4"]) { relay in
            let port = try await relay.relay.ports.port(of: "admin")
            var crowd: [RawConnection] = []
            for _ in 0..<12 {
                let connection = try await RawConnection.open(port)
                try await connection.send(Self.question)
                let answer = await connection.hear(until: "}")
                #expect(answer.hasPrefix("HTTP/1.1 200"), "\(answer)")
                crowd.append(connection)
            }
            #expect(await crowd[0].hearAll() == "")
            for connection in crowd { try? await connection.finish() }
        }
    }

    @Test func `many idle connections lock nobody out`() async throws {
        try await RunningRelay.with { relay in
            let port = try await Self.port(relay)
            let inside = try await RawConnection.open(port)
            try await inside.send(Self.question)
            #expect(await inside.hear(until: "}").hasPrefix("HTTP/1.1 200"))
            for _ in 0..<5 {
                var crowd: [RawConnection] = []
                for _ in 0..<100 {
                    let next = try await RawConnection.open(port)
                    // The relay answers that this is no request.
                    try? await next.send("GG\r\n\r\n")
                    crowd.append(next)
                }
                for next in crowd { _ = await next.hearAll() }
            }
            try await inside.send(Self.question)
            #expect(await inside.hear(until: "}").hasPrefix("HTTP/1.1 200"))
            // A new client waits for a moment.
            let next = try await RawConnection.open(port)
            try await next.send(Self.question)
            #expect(await next.hear(until: "}").hasPrefix("HTTP/1.1 200"))
            for connection in [inside, next] { try? await connection.finish() }
        }
    }

    @Test func `the body after a refusal is read slowly`() async throws {
        try await RunningRelay.with { relay in
            let connection = try await RawConnection.open(await Self.port(relay))
            let part = String(repeating: " ", count: 1 << 20)
            try await connection.send(
                "POST /changes/1/\(relay.container.key.container)/development/none HTTP/1.1\r\n"
                    + "Host: relay\r\nContent-Length: 1000000000\r\n\r\n")
            #expect(await connection.hear(until: "}").hasPrefix("HTTP/1.1 404"))
            // The client has two seconds to leave; before this bound, a thousand megabytes came
            // through.
            var sent = 0
            while sent < 1000 {
                do { try await connection.send(part) } catch { break }
                sent += 1
            }
            #expect(sent < 100)
        }
    }

    @Test(arguments: ["GET /heal", "", "POST /x HTTP/1.1\r\nHost: a\r\nX-A: b\r\n"])
    func `a head that does not arrive ends the connection`(start: String) async throws {
        try await RunningRelay.with(["--http-head-seconds", "1"]) { relay in
            let connection = try await RawConnection.open(await Self.port(relay))
            try await connection.send(start)
            let answer = await connection.hearAll()
            #expect(start.isEmpty ? answer.isEmpty : answer.hasPrefix("HTTP/1.1 408"), "\(answer)")
        }
    }

    @Test func `a body that does not arrive ends the connection, and nothing is stored`()
        async throws
    {
        try await RunningRelay.with(["--http-body-seconds", "1"]) { relay in
            let connection = try await RawConnection.open(await Self.port(relay))
            try await connection.send(
                "POST /changes/1/\(relay.container.key.container)/development/database HTTP/1.1\r\n"
                    + "Host: relay\r\nContent-Length: 100\r\n\r\n{")
            let answer = await connection.hearAll()
            #expect(answer.hasPrefix("HTTP/1.1 408"), "\(answer)")
            #expect(answer.contains("the body of the request arrived too slowly"))
            // The request's ID is in the usual header field, and in the body.
            let fields = answer.split(separator: "\r\n")
            let uuid = try #require(fields.first { $0.hasPrefix("X-Apple-Request-UUID: ") })
            #expect(answer.contains("\"uuid\":\"\(uuid.dropFirst(22))\""))
        }
    }

    /// Regression: the time limit of the answer ran while the body came, and cut off slow bodies.
    @Test func `a requested body has its own time limit and not that of a response`()
        async throws
    {
        let times = ["--http-body-seconds", "1", "--http-answer-seconds", "600"]
        try await RunningRelay.with(times) { relay in
            let connection = try await RawConnection.open(await Self.port(relay))
            try await connection.send(
                "POST /changes/1/\(relay.container.key.container)/development/database HTTP/1.1\r\n"
                    + "Host: relay\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n")
            let goOn = await connection.hear(until: "\r\n\r\n")
            #expect(goOn.hasPrefix("HTTP/1.1 100"), "\(goOn)")
            let answer = await connection.hearAll()
            #expect(answer.hasPrefix("HTTP/1.1 408"), "\(answer)")
        }
    }

    /// Java's client, which Debezium Server uses, offers HTTP/2 with each request.
    ///
    /// The decoder reads nothing after such a request, so the next one on its connection would wait
    /// for ever.
    @Test func `a client that offers another protocol is answered and reconnects`()
        async throws
    {
        try await RunningRelay.with { relay in
            let connection = try await RawConnection.open(await Self.port(relay))
            try await connection.send(
                Self.question + "GET /healthz HTTP/1.1\r\nHost: relay\r\nUpgrade: h2c\r\n"
                    + "Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAEAAEAA\r\n\r\n")
            let answers = await connection.hearAll().components(separatedBy: "HTTP/1.1 200")
                .dropFirst()
            #expect(
                answers.map { $0.contains("Connection: close") } == [false, true], "\(answers)")
        }
    }

    /// A head is kept in memory while it comes, and there are thousands of connections.
    @Test(arguments: [(20, 1000, 200), (40, 1000, 431), (190, 10, 200), (300, 10, 431)])
    func `a head has so many bytes and fields`(fields: Int, bytes: Int, status: Int) async throws {
        try await RunningRelay.with { relay in
            let connection = try await RawConnection.open(await Self.port(relay))
            let field = "X-Long: " + String(repeating: "x", count: bytes) + "\r\n"
            try await connection.send(
                "GET /healthz HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n"
                    + String(repeating: field, count: fields) + "\r\n")
            let answer = await connection.hearAll()
            #expect(answer.hasPrefix("HTTP/1.1 \(status)"), "\(answer)")
            #expect(answer.contains("X-Apple-Request-UUID: "), "\(answer)")
            // The same head would be too long again.
            #expect(!answer.contains("Retry-After: "), "\(answer)")
        }
    }

    /// The event loop reads from no other connection while one has more requests to answer.
    @Test func `of very many pipelined requests the first are answered and the last says so`()
        async throws
    {
        try await RunningRelay.with { relay in
            let connection = try await RawConnection.open(await Self.port(relay))
            try await connection.send(String(repeating: Self.question, count: 1700))
            let answers = await connection.hearAll().components(separatedBy: "HTTP/1.1 200")
                .dropFirst().map { $0.contains("Connection: close") }
            // Some may be answered while others are still arriving.
            #expect((16..<1700).contains(answers.count), "\(answers.count)")
            #expect(answers.firstIndex(of: true) == answers.count - 1)
            // As many as may wait are no reason to end a connection: more can be asked on it.
            let other = try await RawConnection.open(await Self.port(relay))
            try await other.send(
                String(repeating: Self.question, count: 15)
                    + "GET /none HTTP/1.1\r\nHost: relay\r\n\r\n")
            let first = await other.hear(until: "HTTP/1.1 404")
            #expect(!first.contains("Connection: close"), "\(first)")
            try await other.send(
                "GET /healthz HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n\r\n")
            let all = await first + other.hearAll()
            #expect(all.components(separatedBy: "HTTP/1.1 200").count == 17, "\(all)")
        }
    }

    /// Such a client assumes that a connection ends unless the response says that it stays, and
    /// waits for the end.
    @Test func `a connection of HTTP 1 is closed unless the client asks to keep it`()
        async throws
    {
        try await RunningRelay.with { relay in
            let port = try await Self.port(relay)
            let ending = try await RawConnection.open(port)
            try await ending.send("GET /healthz HTTP/1.0\r\n\r\n")
            #expect(await ending.hearAll().contains("Connection: close"))
            let kept = try await RawConnection.open(port)
            try await kept.send(
                "GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
                    + "GET /healthz HTTP/1.0\r\n\r\n")
            let answers = await kept.hearAll().components(separatedBy: " 200 OK").dropFirst()
            #expect(
                answers.map { $0.contains("Connection: keep-alive") } == [true, false],
                "\(answers)")
        }
    }

    @Test func `a client of HTTP 1 gets no chunked response`() async throws {
        try await RunningRelay.with { relay in
            let connection = try await RawConnection.open(await Self.port(relay))
            let body = #"{"set": {"version": 1, "queries": []}}"#
            try await connection.send(
                "POST \(LiveScenarioTests.door("stream", of: relay)) HTTP/1.0\r\n"
                    + "Connection: keep-alive\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
                    + body)
            let answer = await connection.hear(until: "retry: ")
            #expect(answer.hasPrefix("HTTP/1.0 200") && answer.contains("Connection: close"))
            #expect(!answer.lowercased().contains("chunked"))
            #expect(answer.contains("\r\n\r\nretry: "))
        }
    }

    @Test func `a request with two hosts is refused`() async throws {
        try await RunningRelay.with { relay in
            let connection = try await RawConnection.open(await Self.port(relay))
            try await connection.send(Self.question)
            _ = await connection.hear(until: "}")
            try await connection.send(
                "GET /healthz HTTP/1.1\r\nHost: relay\r\nhost: other\r\n\r\n" + Self.question)
            let answer = await connection.hearAll()
            #expect(answer.hasPrefix("HTTP/1.1 400"), "\(answer)")
            #expect(answer.contains("Host: it is given twice"), "\(answer)")
            #expect(!answer.contains("HTTP/1.1 200"), "\(answer)")
        }
    }

    @Test func `a request with a malformed host is refused`() async throws {
        let hosts = [
            "a, b", "a,b", "a b", "user@relay", "relay:99999", "relay:8x", ":80", "[::1",
            "[relay]", "[::1]x", "a/b", "a?b", "rel\u{E4}y", "%41", "relay:80:80", "::1",
        ]
        let upgrade = "Upgrade: websocket\r\nConnection: upgrade\r\n"
        try await RunningRelay.with { relay in
            for (host, rest) in hosts.flatMap({ [($0, ""), ($0, upgrade)] }) {
                let connection = try await RawConnection.open(await Self.port(relay))
                try await connection.send(
                    "GET /healthz HTTP/1.1\r\nHost: \(host)\r\n\(rest)\r\n" + Self.question)
                let answer = await connection.hearAll()
                #expect(answer.hasPrefix("HTTP/1.1 400"), "\(host): \(answer)")
                #expect(!answer.contains("HTTP/1.1 200"), "\(host): \(answer)")
            }
            for (target, host) in [
                ("http://relay/healthz", ""), ("http://user@relay/healthz", "relay"),
                ("http:///healthz", "relay"), ("http://a,b/healthz", "relay"),
            ] {
                let connection = try await RawConnection.open(await Self.port(relay))
                try await connection.send("GET \(target) HTTP/1.1\r\nHost: \(host)\r\n\r\n")
                let answer = await connection.hearAll()
                #expect(answer.hasPrefix("HTTP/1.1 400"), "\(target): \(answer)")
            }
        }
    }

    @Test func `hosts as clients and proxies send them are served`() async throws {
        try await RunningRelay.with { relay in
            for (target, host) in [
                ("/healthz", "relay.example."), ("/healthz", "relay:8080"),
                ("/healthz", "relay:"), ("/healthz", "[2001:db8::1]:443"),
                ("/healthz", "[::ffff:192.0.2.1]"), ("/healthz", "[fe80::1%25eth0]"),
                ("/healthz", "192.0.2.1:80"), ("/healthz", ""), ("/healthz", "relay_a"),
                ("http://relay:80/healthz", "relay:80"), ("http://relay/healthz", "other"),
                ("https://[::1]/healthz?a=http://b", "[::1]"),
            ] {
                let connection = try await RawConnection.open(await Self.port(relay))
                try await connection.send(
                    "GET \(target) HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\r\n")
                let answer = await connection.hearAll()
                #expect(answer.hasPrefix("HTTP/1.1 200"), "\(target), \(host): \(answer)")
            }
        }
    }

    @Test func `a request without a host is refused`() async throws {
        try await RunningRelay.with { relay in
            let connection = try await RawConnection.open(await Self.port(relay))
            try await connection.send("GET /healthz HTTP/1.1\r\n\r\n" + Self.question)
            let answer = await connection.hearAll()
            #expect(answer.hasPrefix("HTTP/1.1 400"), "\(answer)")
            #expect(!answer.contains("HTTP/1.1 200"), "\(answer)")
        }
    }

    /// Swift normalises the text when it searches it for a word, which would first sort all the
    /// marks.
    @Test(arguments: ["Accept", "Connection", "Expect"])
    func `a field with too many combining marks is refused`(
        name: String
    ) async throws {
        let marks = String(repeating: "\u{323}", count: 65)
        try await RunningRelay.with { relay in
            let connection = try await RawConnection.open(await Self.port(relay))
            try await connection.send(
                "GET /healthz HTTP/1.1\r\nHost: relay\r\n\(name): a\(marks)\r\n\r\n"
                    + Self.question)
            let answer = await connection.hearAll()
            #expect(answer.hasPrefix("HTTP/1.1 400"), "\(answer)")
            #expect(answer.contains("\(name): it has too many combining marks"), "\(answer)")
            #expect(!answer.contains("HTTP/1.1 200"), "\(answer)")
        }
    }

    @Test func `an idle connection ends, and an active one does not`() async throws {
        // Longer than a busy machine takes between two calls, because the client's own connections
        // time out too.
        try await RunningRelay.with(["--http-idle-seconds", "8"]) { relay in
            let connection = try await RawConnection.open(await Self.port(relay))
            try await connection.send(Self.question)
            let answer = await connection.hearAll()
            #expect(answer.hasPrefix("HTTP/1.1 200"))
            let metrics = try await relay.metrics()
            #expect(
                metrics.contains(#"too_slow_total{listener="http",waiting="idle"} "#), "\(metrics)")
        }
    }

    @Test func `only the operator's port has metrics unless configured otherwise`() async throws {
        try await RunningRelay.with { (relay: RunningRelay) async throws in
            #expect(try await relay.client.call("GET", "/metrics").status == 404)
            #expect(try await relay.client.call("GET", "/healthz").status == 200)
            #expect(try await relay.metrics().contains("belfry_connections{listener=\"admin\"}"))
        }
        try await RunningRelay.with(["--http-metrics", "on"]) {
            (relay: RunningRelay) async throws in
            #expect(try await relay.client.call("GET", "/metrics").status == 200)
        }
    }

    @Test func `every metric of a relay has a description`() async throws {
        try await RunningRelay.with { relay in
            let lines = try await relay.metrics().split(separator: "\n").map(String.init)
            func names(_ word: String) -> [Substring] {
                lines.filter { $0.hasPrefix("# \(word) ") }.map { $0.split(separator: " ")[2] }
            }
            let told = Set(names("HELP"))
            #expect(names("TYPE").filter { !told.contains($0) } == [])
            #expect(told.count > 20)
        }
    }
}

extension RunningRelay {
    /// Returns the metrics as the operator sees them.
    func metrics() async throws -> String {
        var operators = client
        operators.url = client.adminURL
        return try await operators.call("GET", "/metrics").text
    }
}
