import HTTPTypes
import Storage
import Testing

@testable import RelayServer

/// The decisions about calls that are handed to the relay that owns the store.
@Suite struct ForwardedCallTests {
    private static let failures: [ForwardedCall.Failure] = [
        .unreachable, .declined, .lost, .ownerChanged,
    ]

    private static func call() -> ForwardedCall {
        ForwardedCall(at: .seconds(100), patience: .seconds(10))
    }

    @Test(arguments: failures) func `a call of which nothing was sent is retried within its time`(
        failure: ForwardedCall.Failure
    ) {
        #expect(Self.call().verdict(on: failure, at: .seconds(109)) == .retry)
        #expect(
            Self.call().verdict(on: failure, at: .seconds(110))
                == .refuse(status: 503, ForwardedCall.nobody))
    }

    @Test func `a call that may have been processed is never sent again`() {
        var call = Self.call()
        call.begin()
        for failure in [ForwardedCall.Failure.lost, .ownerChanged, .unreachable] {
            guard case .refuse(status: 502, _) = call.verdict(on: failure, at: .seconds(100)) else {
                Issue.record("\(failure)")
                continue
            }
        }
    }

    @Test func `a call that only reads is sent again within its time`() {
        var call = ForwardedCall(at: .seconds(100), patience: .seconds(10), isSafe: true)
        call.begin()
        for failure in Self.failures {
            #expect(call.verdict(on: failure, at: .seconds(109)) == .retry)
            #expect(
                call.verdict(on: failure, at: .seconds(110))
                    == .refuse(status: 503, ForwardedCall.nobody))
        }
        call.answer()
        #expect(call.verdict(on: .lost, at: .seconds(101)) == .cut)
        #expect(ForwardedCall.safeMethods == [.get, .head, .options])
    }

    @Test func `a declined call is sent again if all of it was kept`() {
        var call = Self.call()
        call.begin()
        call.send(ForwardedCall.mostKept)
        #expect(call.verdict(on: .declined, at: .seconds(100)) == .retry)
        call.send(1)
        guard case .refuse(status: 503, _) = call.verdict(on: .declined, at: .seconds(100)) else {
            Issue.record("it has gone by halves")
            return
        }
        call.startOver()
        #expect(call.verdict(on: .lost, at: .seconds(100)) == .retry)
    }

    @Test(arguments: failures) func `a response that has begun is cut off`(
        failure: ForwardedCall.Failure
    ) {
        var call = Self.call()
        call.begin()
        call.answer()
        #expect(call.verdict(on: failure, at: .seconds(100)) == .cut)
    }

    @Test func `a body that is not kept is requested before it is sent`() {
        #expect(!ForwardedCall.asksFirst(length: nil, isChunked: false))
        #expect(!ForwardedCall.asksFirst(length: ForwardedCall.mostKept, isChunked: false))
        #expect(ForwardedCall.asksFirst(length: ForwardedCall.mostKept + 1, isChunked: false))
        #expect(ForwardedCall.asksFirst(length: nil, isChunked: true))
    }

    // MARK: Addresses

    @Test(arguments: [
        ("10.0.0.5:8092", "10.0.0.5", 8092), ("relay-a:1", "relay-a", 1),
        ("[fd00::1]:65535", "fd00::1", 65_535),
    ]) func `an address is parsed and printed`(text: String, host: String, port: Int) {
        #expect(NodeAddress(text) == NodeAddress(host: host, port: port))
        #expect(NodeAddress(text)?.description == text)
    }

    @Test(arguments: [
        "", ":80", "host", "host:", "host:0", "host:65536", "fd00::1:80", "[fd00::1]", "a b:80",
        "http://host:80", "user@host:80", String(repeating: "a", count: 300) + ":80",
    ]) func `a malformed address is refused`(text: String) {
        #expect(NodeAddress(text) == nil)
    }

    @Test func `a relay publishes the address that it listens at or the configured one`() {
        func places(_ advertise: String, port: Int = 0, host: String? = nil) -> [String?] {
            var settings = NodeSettings()
            #expect(settings.advertise(advertise) == [])
            settings.port = port
            settings.host = host
            return [
                settings.listening(on: "10.0.0.5")?.description,
                settings.endpoint(on: "10.0.0.5", port: 7000).description,
            ]
        }
        #expect(places("auto") == ["10.0.0.5:0", "10.0.0.5:7000"])
        #expect(places("auto", port: 9, host: "::") == ["[::]:9", "10.0.0.5:7000"])
        #expect(places("none")[0] == nil)
        #expect(places("relay-a") == ["0.0.0.0:0", "relay-a:7000"])
        #expect(places("relay-a:8092") == ["0.0.0.0:8092", "relay-a:8092"])
        #expect(places("relay-a:8092", port: 7) == ["0.0.0.0:7", "relay-a:8092"])
        #expect(places("[fd00::1]:80") == ["[::]:80", "[fd00::1]:80"])
        var settings = NodeSettings()
        #expect(settings.advertise("http://relay-a").count == 1)
    }

    @Test func `two relays on one machine have different default names`() {
        var settings = NodeSettings()
        #expect(settings.named(on: "relay-a", port: 8080) == "relay-a:8080")
        #expect(settings.named(on: "relay-a", port: 8090) == "relay-a:8090")
        #expect(settings.call("north") == [])
        #expect(settings.named(on: "relay-a", port: 8080) == "north")
        for wrong in ["a b", "ü", "a\nb", String(repeating: "a", count: 101)] {
            #expect(settings.call(wrong).count == 1)
            #expect(settings.stand(on: wrong).count == 1)
        }
    }

    @Test func `a server's description of itself is not passed to clients`() {
        #expect(
            NodeAnswering.told(
                "the server has no connection left (connection to 10.0.0.5 (a) failed: too many "
                    + "connections for role \"belfry\"): raise max_connections, or end other "
                    + "connections")
                == "the server has no connection left: raise max_connections, or end other "
                + "connections")
        #expect(NodeAnswering.told("the store is moved") == "the store is moved")
    }

    // MARK: Origins

    @Test func `a relay's description of a call reads back as written`() {
        for address in ["192.0.2.1", "2001:db8::17"] {
            let origin = CallOrigin(
                listener: "admin", peer: ClientAddress(text: address),
                own: ClientAddress(text: "10.0.0.5"))
            var fields: HTTPFields = [.accept: "*/*"]
            origin.write(to: &fields)
            #expect(CallOrigin(takenFrom: &fields) == origin)
            #expect(fields == [.accept: "*/*"])
        }
    }

    @Test func `headers in a relay's name are removed from clients' requests`() {
        var fields: HTTPFields = [
            .nodePeer: "203.0.113.9", .nodeListener: "admin", .nodeReached: "10.0.0.9",
        ]
        CallOrigin(listener: "http", peer: nil, own: nil).write(to: &fields)
        #expect(fields == [.nodeListener: "http"])
    }

    // MARK: Heads

    private static func head(
        _ method: HTTPRequest.Method, _ fields: HTTPFields, path: String = "/x"
    ) throws -> ForwardedHead {
        try ForwardedHead(
            of: HTTPRequest(
                method: method, scheme: nil, authority: "h", path: path, headerFields: fields),
            from: CallOrigin(listener: "http", peer: nil, own: nil))
    }

    @Test(arguments: ["TRACE", "CONNECT", "QUERY", "get"]) func `an unknown method is passed on`(
        name: String
    ) throws {
        let method = try #require(HTTPRequest.Method(name))
        let refusal = #expect(throws: ForwardedHead.Refusal.self) { try Self.head(method, [:]) }
        #expect(refusal?.status == 501)
    }

    @Test(arguments: ["chunked", "Chunked", "gzip, chunked", "CHUNKED,chunked"])
    func `a chunked body is announced in exactly one way`(text: String) throws {
        for method in [HTTPRequest.Method.get, .post, .delete] {
            let fields = try Self.head(
                method, [.transferEncoding: text, .contentLength: "3"]
            ).request.headerFields
            #expect(fields[values: .transferEncoding] == ["chunked"])
            #expect(fields[.contentLength] == nil)
        }
    }

    @Test func `the length of a body is a single number`() throws {
        #expect(
            try Self.head(.get, [.contentLength: "05"]).request.headerFields[.contentLength] == "5")
        #expect(try Self.head(.post, [:]).request.headerFields[.contentLength] == "0")
        #expect(try Self.head(.get, [:]).request.headerFields[.contentLength] == nil)
        for text in ["+5", "5, 5", "-1", "5x", "99999999999999999999"] {
            #expect(throws: ForwardedHead.Refusal.self) {
                try Self.head(.post, [.contentLength: text])
            }
        }
    }

    @Test func `connection headers are not passed on`() throws {
        let fields = try Self.head(
            .post,
            [
                .connection: "close, X-Own, content-length", .keepAlive: "timeout=5",
                .upgrade: "h2c", .te: "trailers", .own: "1",
                .contentLength: "4", .accept: "*/*",
            ]
        ).request.headerFields
        #expect(fields == [.contentLength: "4", .accept: "*/*", .nodeListener: "http"])
    }

    @Test func `a request without a host, as in HTTP 1, is passed on with an empty one`() throws {
        let old = HTTPRequest(method: .get, scheme: nil, authority: nil, path: "/x")
        let head = try ForwardedHead(
            of: old, from: CallOrigin(listener: "http", peer: nil, own: nil))
        #expect(head.request.authority == "")
        #expect(try Self.head(.get, [:]).request.authority == "h")
    }

    @Test func `only WebSockets are upgraded`() throws {
        let asked: HTTPFields = [.upgrade: "websocket", .connection: "Upgrade"]
        let live = try Self.head(.get, asked, path: "/live/1/c/development")
        #expect(live.isUpgrade && live.request.headerFields[.connection] == "Upgrade")
        let other = try Self.head(.get, asked)
        #expect(!other.isUpgrade && other.request.headerFields[.upgrade] == nil)
    }

    @Test func `100 Continue is requested for unkept bodies and for clients that ask`() throws {
        let small = try Self.head(.post, [.contentLength: "3"])
        #expect(!small.asksFirst && small.request.headerFields[.expect] == nil)
        let asked = try Self.head(.post, [.contentLength: "3", .expect: "100-continue"])
        #expect(asked.asksFirst && asked.isExpected)
        let large = try Self.head(.post, [.contentLength: "16385"])
        #expect(large.asksFirst && !large.isExpected)
        #expect(large.request.headerFields[.expect] == "100-continue")
    }

    // MARK: Passes

    @Test func `a pass reads back as generated, and other texts are refused`() throws {
        let pass = try NodePass { World.real.randomBytes($0) }
        #expect(try NodePass(text: pass.text).text == pass.text)
        _ = try pass.asking()
        let halves = pass.text.split(separator: "-----BEGIN PRIVATE")
        for text in ["", "pass", String(halves[0]), pass.text + pass.text] {
            let refusal = #expect(throws: NodePass.Unusable.self) { try NodePass(text: text) }
            #expect(refusal?.description.contains("BEGIN") == false)
        }
    }

    @Test func `a relay that stands by serves metrics to clients only if configured`()
        async throws
    {
        func configuration(_ arguments: [String]) async throws -> RelayConfiguration {
            try RelayConfiguration(
                try await ConfigurationValues.gather(arguments: arguments, environment: [:]))
        }
        let shared = ["--http-port", "8080", "--admin-port", "8080"]
        let silent = try await configuration(shared)
        #expect(silent.sharesListener)
        #expect(!NodeAnswering.showsMetrics(at: "http", silent))
        let told = try await configuration(shared + ["--http-metrics", "on"])
        #expect(NodeAnswering.showsMetrics(at: "http", told))
        let apart = try await configuration([])
        #expect(!NodeAnswering.showsMetrics(at: "http", apart))
        #expect(NodeAnswering.showsMetrics(at: "admin", apart))
    }
}

/// How long a relay tolerates what keeps it from its store.
@Suite struct StandbyPatienceTests {
    private static let locked = StorageError.locked(path: "s", holder: "a relay on one")
    private static let away = StorageError.inaccessible(path: "s", reason: "it is away")

    @Test func `an error at the start ends the relay`() {
        var patience = StandbyPatience()
        #expect(patience.verdict(on: Self.away) == .end)
        #expect(patience.verdict(on: .missing(path: "s")) == .end)
        #expect(patience.verdict(on: .newerSchema(found: "3", known: "2")) == .end)
    }

    @Test func `a relay that stands by tolerates an absent server and logs each reason once`() {
        var patience = StandbyPatience()
        #expect(patience.verdict(on: Self.locked) == .wait(isNews: true))
        #expect(patience.verdict(on: Self.locked) == .wait(isNews: false))
        #expect(patience.verdict(on: Self.away) == .wait(isNews: true))
        #expect(patience.verdict(on: Self.away) == .wait(isNews: false))
        #expect(patience.verdict(on: Self.locked) == .wait(isNews: true))
        #expect(
            patience.verdict(on: .locked(path: "s", holder: "a relay on two"))
                == .wait(isNews: true))
    }

    @Test func `after a server is back its owner may reclaim the store first`() {
        var patience = StandbyPatience()
        _ = patience.verdict(on: Self.locked)
        var mayTake = patience.mayTake(at: .seconds(10))
        #expect(mayTake)
        _ = patience.verdict(on: Self.away)
        // The time counts from the first report, however long ago the server was started.
        mayTake = patience.mayTake(at: .seconds(40))
        #expect(!mayTake)
        mayTake = patience.mayTake(at: .seconds(42))
        #expect(!mayTake)
        mayTake = patience.mayTake(at: .seconds(40) + StandbyPatience.welcome)
        #expect(mayTake)
        _ = patience.verdict(on: Self.away)
        mayTake = patience.mayTake(at: .seconds(60))
        #expect(!mayTake)
    }

    @Test func `a relay that stands by ends for a permanent error`() {
        var patience = StandbyPatience()
        _ = patience.verdict(on: Self.locked)
        #expect(patience.verdict(on: .newerSchema(found: "3", known: "2")) == .end)
        #expect(patience.verdict(on: .foreignSchema(path: "s", reason: "r")) == .end)
    }

    @Test func `a temporary error is waited for at any time`() {
        var patience = StandbyPatience()
        #expect(patience.verdict(on: .overloaded("busy")) == .wait(isNews: true))
        #expect(patience.verdict(on: .overloaded("busy")) == .wait(isNews: false))
        #expect(patience.verdict(on: Self.away) == .end)
    }
}

extension HTTPField.Name {
    /// A field that a `Connection` field may name.
    static let own = unchecked("X-Own")
}
