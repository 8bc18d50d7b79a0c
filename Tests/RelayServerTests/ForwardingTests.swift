import HTTPTypes
import Hummingbird
import NIOCore
import NIOSSL
import RelayModel
import RelayTestKit
import StoragePostgreSQL
import Synchronization
import Testing

@testable import RelayServer

/// Calls that one relay forwards to another, over real sockets.
///
/// The test decides which relay owns the store.
@Suite(.serialized, .timeLimit(.minutes(15))) struct ForwardingTests {
    /// The listeners of one relay, without a relay.
    private struct Listeners {
        let listeners: NodeListeners
        let port: Int
        let metrics: PrometheusMetrics

        static func open(waiting seconds: Int = 1) async throws -> Listeners {
            let values = try await ConfigurationValues.gather(
                arguments: [
                    "--http-port", "0", "--admin-port", "0", "--nodes-wait-seconds", "\(seconds)",
                ], environment: [:])
            let ports = ServedPorts()
            let metrics = PrometheusMetrics()
            let maker = ListenerMaker(
                try RelayConfiguration(values), world: .real, metrics: metrics,
                logger: .silent, ports: ports,
                certificate: nil, isForwarding: true)
            let listeners = try #require(try await NodeListeners.opened(maker, own: "127.0.0.1"))
            return Listeners(
                listeners: listeners, port: try await ports.port(of: "http"), metrics: metrics)
        }

        /// Takes `other` for the owner of the store.
        func follow(_ other: Listeners, epoch: Int64 = 1) {
            listeners.answering.note(
                StoreOwner(name: "other", epoch: epoch, endpoint: other.listeners.endpoint))
        }

        /// Answers as the owner does, with `routes`.
        ///
        /// It answers the readiness check itself, because other relays may ask at any time.
        func own(_ routes: @escaping SwitchedResponder.Routes) {
            listeners.serve(
                [
                    "http": { request, context in
                        guard request.uri.path != "/readyz" else { return Response(status: .ok) }
                        return try await routes(request, context)
                    }
                ], nil)
        }

        func exchange(_ text: String, until end: String = "\r\n\r\n") async throws -> String {
            let connection = try await RawConnection.open(port, from: "127.0.0.2")
            try await connection.send(text)
            return await connection.hear(until: end)
        }

        /// Waits until a call is in progress.
        func waitForCall() async {
            let isThere = await Turns.yield {
                metrics.render().contains("belfry_forwarded_calls 1")
            }
            #expect(isThere)
        }
    }

    private static func get(_ path: String) -> String {
        "GET \(path) HTTP/1.1\r\nHost: relay.example\r\n\r\n"
    }

    /// Answers with what the request contained.
    private static let echo: SwitchedResponder.Routes = { request, context in
        ContinueSignal(of: request, on: context.channel).send()
        let body = try await request.body.collect(upTo: 64 << 20)
        let fields = request.headers.filter { $0.name.rawName.lowercased().hasPrefix("belfry") }
        return Response(
            status: .ok,
            body: ResponseBody(
                byteBuffer: ByteBuffer(
                    string: "\(request.method) \(request.uri) \(request.head.authority ?? "")"
                        + " \(body.readableBytes) \(fields.count)"
                        + " \(context.addresses?.peer.description ?? "nobody").")))
    }

    private static func with(
        waiting seconds: Int = 1, _ body: (_ near: Listeners, _ far: Listeners) async throws -> Void
    ) async throws {
        let near = try await Listeners.open(waiting: seconds)
        let far = try await Listeners.open()
        defer {
            near.listeners.end()
            far.listeners.end()
        }
        try await body(near, far)
        await near.listeners.close()
        await far.listeners.close()
    }

    @Test func `the owner answers a forwarded call as if it had come there`() async throws {
        try await Self.with { near, far in
            far.own(Self.echo)
            near.follow(far)
            let answer = try await near.exchange(Self.get("/some/path?a=b"), until: ".")
            #expect(answer.hasPrefix("HTTP/1.1 200"))
            let told = try await near.exchange(
                "POST /x HTTP/1.1\r\nHost: h\r\nBelfry-Node-Peer: 192.0.2.9\r\n"
                    + "Content-Length: 5\r\nConnection: close\r\n\r\nhello", until: "127.0.0.2.")
            #expect(told.contains("POST /x h 5 0 127.0.0.2."))
        }
    }

    @Test(arguments: [10, 16_384, 16_385, 3_000_000])
    func `a body of any length is forwarded completely`(
        length: Int
    ) async throws {
        try await Self.with { near, far in
            far.own(Self.echo)
            near.follow(far)
            let connection = try await RawConnection.open(near.port)
            let body = String(repeating: "x", count: length)
            for _ in 0..<2 {
                try await connection.send(
                    "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: \(length)\r\n\r\n" + body)
                #expect(await connection.hear(until: "127.0.0.1.").contains(" \(length) 0 "))
            }
            try await connection.send(
                "POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + "\(String(length, radix: 16))\r\n\(body)\r\n0\r\n\r\n" + Self.get("/after"))
            let answers = await connection.hear(until: "/after relay.example 0 0 127.0.0.1.")
            #expect(answers.contains(" \(length) 0 "))
        }
    }

    @Test func `the owner answers a client that expects 100 Continue`() async throws {
        try await Self.with { near, far in
            far.own(Self.echo)
            near.follow(far)
            let connection = try await RawConnection.open(near.port)
            try await connection.send(
                "POST /x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
            #expect(await connection.hear(until: "\r\n\r\n").hasPrefix("HTTP/1.1 100"))
            try await connection.send("body")
            #expect(await connection.hear(until: "127.0.0.1.").contains("POST /x h 4"))
        }
    }

    @Test(arguments: [
        "GET /x HTTP/1.1\r\nHost: h\r\n\r\n",
        "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody",
    ]) func `a half-closed client gets its response before the connection ends`(
        request: String
    ) async throws {
        try await Self.with { near, far in
            far.own(Self.echo)
            near.follow(far)
            let connection = try await RawConnection.open(near.port)
            try await connection.send(request + request)
            try await connection.finish()
            let answers = await connection.hearAll()
            #expect(answers.ranges(of: " /x h ").count == 2, "\(answers)")
        }
    }

    @Test func `pipelined requests are answered in order`() async throws {
        try await Self.with { near, far in
            far.own(Self.echo)
            near.follow(far)
            let paths = (0..<14).map { $0.isMultiple(of: 3) ? "/healthz" : "/p\($0)" }
            let connection = try await RawConnection.open(near.port)
            try await connection.send(paths.map(Self.get).joined() + Self.get("/last"))
            let answers = await connection.hear(until: "/last relay.example 0 0 127.0.0.1.")
            var rest = answers[...]
            for path in paths {
                let mark = path == "/healthz" ? "\"status\"" : "GET \(path) "
                guard let found = rest.firstRange(of: mark) else {
                    Issue.record("\(path) is missing, or comes too early")
                    return
                }
                rest = rest[found.upperBound...]
            }
        }
    }

    @Test func `a stream is forwarded in parts and ends with its client`() async throws {
        let (events, more) = AsyncStream.makeStream(of: String.self)
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        try await Self.with { near, far in
            far.own { _, _ in
                Response(
                    status: .ok, headers: [.contentType: "text/event-stream"],
                    body: ResponseBody { writer in
                        defer { end.yield() }
                        for await event in events {
                            try await writer.write(ByteBuffer(string: event))
                        }
                        try await writer.finish(nil)
                    })
            }
            near.follow(far)
            let connection = try await RawConnection.open(near.port)
            try await connection.send(Self.get("/events"))
            for number in 0..<3 {
                more.yield("data: \(number)\n\n")
                #expect(await connection.hear(until: "\(number)\n\n").contains("data: \(number)"))
            }
            try await connection.close()
            // Writing to a client that has gone fails in the end.
            let writing = Task {
                while !Task.isCancelled {
                    more.yield(String(repeating: "x", count: 65_536))
                    await Turns.pass(1)
                }
            }
            for await _ in ends { break }
            writing.cancel()
        }
    }

    @Test func `a held call ends with its client`() async throws {
        let (signs, sign) = AsyncStream.makeStream(of: String.self)
        try await Self.with { near, far in
            far.own { _, context in
                sign.yield("begun")
                let departure = try await ClientWatch.departure(of: context)
                _ = try? await departure.ending { try await Task.sleep(for: .seconds(3600)) }
                sign.yield("ended")
                return Response(status: .ok)
            }
            near.follow(far)
            let connection = try await RawConnection.open(near.port)
            try await connection.send(Self.get("/poll"))
            var heard = signs.makeAsyncIterator()
            #expect(await heard.next() == "begun")
            try await connection.close()
            #expect(await heard.next() == "ended")
        }
    }

    @Test(arguments: [
        "TRACE /x HTTP/1.1\r\nHost: h\r\nContent-Length: ",
        "GET /x HTTP/1.1\r\nHost: h\r\nContent-Length: ",
        "QUERY /x HTTP/1.1\r\nHost: h\r\nContent-Length: ",
        "DELETE /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked",
        "GET /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked",
        "OPTIONS /x HTTP/1.1\r\nHost: h\r\nConnection: Transfer-Encoding\r\n"
            + "Transfer-Encoding: chunked",
    ]) func `a body cannot smuggle a request`(head: String) async throws {
        let (paths, path) = AsyncStream.makeStream(of: String.self)
        try await Self.with { near, far in
            far.own { request, context in
                path.yield("\(request.uri) \(context.addresses?.peer.description ?? "")")
                return try await Self.echo(request, context)
            }
            near.follow(far)
            let body =
                "GET /forged HTTP/1.1\r\nHost: h\r\nBelfry-Node-Peer: 192.0.2.9\r\n"
                + "Belfry-Node-Listener: admin\r\n\r\n"
            let isChunked = !head.hasSuffix(" ")
            let framed =
                isChunked
                ? "\r\n\r\n\(String(body.utf8.count, radix: 16))\r\n\(body)\r\n0\r\n\r\n"
                : "\(body.utf8.count)\r\n\r\n\(body)"
            let connection = try await RawConnection.open(near.port)
            try await connection.send(head + framed)
            _ = await connection.hear(until: "\r\n\r\n")
            // A call that the owner had before this one has been processed.
            _ = try await near.exchange(Self.get("/after"), until: "127.0.0.2.")
            path.finish()
            let all = await paths.reduce(into: []) { $0.append($1) }
            #expect(!all.contains { $0.hasPrefix("/forged") || $0.contains("192.0.2.9") }, "\(all)")
            #expect(all.last?.hasPrefix("/after") == true)
        }
    }

    @Test func `a relay without the pass is refused everywhere`() async throws {
        try await Self.with { _, far in
            far.own(Self.echo)
            let address = try #require(NodeAddress(far.listeners.endpoint.address))
            var anybody = TLSConfiguration.makeClientConfiguration()
            anybody.certificateVerification = .none
            let strange = try NodePass { World.real.randomBytes($0) }.strangers
            for settings in [anybody, strange] {
                let route = OwnerRoute(
                    StoreOwner(name: "other", epoch: 1, endpoint: far.listeners.endpoint),
                    at: address, security: try NIOSSLContext(configuration: settings))
                await #expect(throws: (any Error).self) {
                    try await OwnerProbe.status(
                        of: route,
                        by: CallForwarding(
                            CurrentAnswerer(), patience: .seconds(1), silence: .seconds(10),
                            identifiers: RandomIdentifiers { World.real.randomBytes($0) },
                            meter: ForwardingMeter(PrometheusMetrics())))
                }
            }
        }
    }

    /// One relay may have a separate listener for operators where another one has a single
    /// listener.
    @Test func `a call goes to the owner's listener for it`() {
        func listener(
            _ path: String, at name: String = "http", isOperators: Bool = true
        ) -> String {
            CallOrigin.listener(
                of: HTTPRequest(method: .get, scheme: nil, authority: "h", path: path), at: name,
                isOperators: isOperators)
        }
        for path in ["/admin/1/overview", "/console/", "http://h/console/a?b"] {
            #expect(listener(path) == "admin" && listener(path, at: "admin") == "admin")
            // A path that arrives at the clients' listener is not the operator's.
            #expect(listener(path, isOperators: false) == "http")
        }
        for path in ["/", "/live/1/a/development", "/adminx/1", ""] {
            #expect(listener(path) == "http")
        }
        let all = SwitchedResponder { _, _ in Response(status: .ok) }
        let admin = SwitchedResponder { _, _ in Response(status: .ok) }
        let one = NodeResponder(responders: ["http": all]) { true }
        #expect(one.responder(of: "admin") === all && one.responder(of: "other") == nil)
        let two = NodeResponder(responders: ["http": all, "admin": admin]) { true }
        #expect(two.responder(of: "admin") === admin && two.responder(of: "http") === all)
    }

    // MARK: Where there is no owner

    @Test func `two relays that take each other for the owner do not loop`() async throws {
        try await Self.with { near, far in
            near.follow(far)
            far.follow(near)
            let answer = try await near.exchange(Self.get("/x"), until: "TRY_AGAIN_LATER")
            #expect(answer.hasPrefix("HTTP/1.1 503"))
            #expect(answer.contains("Retry-After: 1"))
            #expect(answer.contains(ForwardedCall.nobody))
        }
    }

    @Test func `an unreachable owner is waited for and then reported`() async throws {
        let away = try await Listeners.open()
        await away.listeners.close()
        try await Self.with { near, _ in
            near.follow(away)
            let answer = try await near.exchange(Self.get("/x"), until: "TRY_AGAIN_LATER")
            #expect(answer.hasPrefix("HTTP/1.1 503"))
        }
    }

    @Test func `an owner with another pass is not used`() async throws {
        try await Self.with { near, far in
            far.own(Self.echo)
            let pass = try NodePass { World.real.randomBytes($0) }
            near.listeners.answering.note(
                StoreOwner(
                    name: "other", epoch: 1,
                    endpoint: StoreEndpoint(
                        address: far.listeners.endpoint.address, pass: pass.text)))
            let answer = try await near.exchange(Self.get("/x"), until: "TRY_AGAIN_LATER")
            #expect(answer.hasPrefix("HTTP/1.1 50"))
        }
    }

    @Test func `a waiting call goes to the next owner`() async throws {
        try await Self.with(waiting: 60) { near, far in
            let connection = try await RawConnection.open(near.port)
            try await connection.send(
                "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello")
            await near.waitForCall()
            far.own(Self.echo)
            near.follow(far)
            #expect(await connection.hear(until: "127.0.0.1.").contains("POST /x h 5"))
        }
    }

    @Test func `a waiting call is answered locally once this relay owns the store`() async throws {
        try await Self.with(waiting: 60) { near, _ in
            let connection = try await RawConnection.open(near.port)
            try await connection.send(
                "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhel")
            await near.waitForCall()
            near.own(Self.echo)
            try await connection.send("lo")
            #expect(await connection.hear(until: "127.0.0.1.").contains("POST /x h 5 0"))
            // The next request comes over the same connection.
            try await connection.send(Self.get("/next"))
            #expect(await connection.hear(until: "127.0.0.1.").contains("GET /next"))
        }
    }

    @Test func `a call that a lost owner had is not sent again`() async throws {
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        try await Self.with(waiting: 60) { near, far in
            far.own { _, context in
                begin.yield()
                try await context.channel?.close()
                return Response(status: .ok)
            }
            near.follow(far)
            let call = "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"
            let answer = try await near.exchange(call, until: "is not known")
            #expect(answer.hasPrefix("HTTP/1.1 502"))
            // The client is not asked to repeat a call that may have been processed.
            #expect(answer.contains("INTERNAL_ERROR"))
            #expect(!answer.lowercased().contains("retry"))
            begin.finish()
            let count = await begun.reduce(into: 0) { count, _ in count += 1 }
            #expect(count == 1)
        }
    }

    /// A connection may be accepted, and a call arrive on it, while its listener ends.
    @Test func `a call on a connection that was not accepted is sent again`() async throws {
        let count = Mutex(0)
        try await Self.with(waiting: 60) { near, far in
            far.own { _, context in
                let number = count.withLock { count in
                    count += 1
                    return count
                }
                if number == 1 {
                    let pipeline = context.channel?.pipeline
                    pipeline?.fireUserInboundEventTriggered(TakenConnection.Dropped())
                }
                return Response(status: .ok)
            }
            near.follow(far)
            let call = "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"
            let answer = try await near.exchange(call, until: "\r\n\r\n")
            #expect(answer.hasPrefix("HTTP/1.1 200"), "\(answer)")
        }
        #expect(count.withLock { $0 } == 2)
    }

    /// Posts repeatedly, and returns the first answer other than 200.
    private static func post(to port: Int) async throws -> String {
        let connection = try await RawConnection.open(port)
        while true {
            try await connection.send("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n")
            let answer = await connection.hear(until: "127.0.0.1.")
            guard answer.hasPrefix("HTTP/1.1 200") else { return answer }
        }
    }

    @Test func `no call is lost while the owner ends in order`() async throws {
        for _ in 0..<3 {
            try await Self.with { near, far in
                far.own(Self.echo)
                near.follow(far)
                let port = near.port
                let posting = (0..<8).map { _ in Task { try await Self.post(to: port) } }
                _ = try await near.exchange(Self.get("/x"), until: "127.0.0.2.")
                far.listeners.end()
                for one in posting {
                    let answer = try await one.value
                    // A call that may have been processed is not repeated, and others are.
                    #expect(answer.hasPrefix("HTTP/1.1 503"), "\(answer)")
                }
            }
        }
    }

    @Test func `a call that only reads is repeated if its owner was lost`()
        async throws
    {
        let count = Mutex(0)
        try await Self.with(waiting: 60) { near, far in
            far.own { _, context in
                let number = count.withLock { count in
                    count += 1
                    return count
                }
                if number == 1 { try await context.channel?.close() }
                return Response(status: .ok)
            }
            near.follow(far)
            let answer = try await near.exchange(Self.get("/x"), until: "\r\n\r\n")
            #expect(answer.hasPrefix("HTTP/1.1 200"))
        }
        #expect(count.withLock { $0 } == 2)
    }

    @Test func `a slow request does not delay an end if another relay continues`()
        async throws
    {
        try await Self.with { near, _ in
            near.own(Self.echo)
            let connection = try await RawConnection.open(near.port)
            // When the first call is answered, half of the second has arrived.
            try await connection.send(
                Self.get("/first") + "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhel")
            _ = await connection.hear(until: "127.0.0.1.")
            near.listeners.end()
            let answer = await connection.hearAll()
            #expect(answer.hasPrefix("HTTP/1.1 503"), "\(answer)")
            #expect(answer.contains("the relay is shutting down"))
        }
    }

    @Test func `the last response of a connection announces its end`() async throws {
        try await Self.with { _, far in
            far.own { _, context in
                let pipeline = context.channel?.pipeline
                pipeline?.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
                return Response(status: .ok)
            }
            let answer = try await far.exchange(Self.get("/x"))
            #expect(answer.lowercased().contains("connection: close"), "\(answer)")
        }
    }

    /// On a busy machine the end may take long while an answer is being written.
    @Test func `a response in progress is not cut off by a continuing end`()
        async throws
    {
        try await Self.with { _, far in
            far.own { _, context in
                let pipeline = context.channel?.pipeline
                return Response(
                    status: .ok,
                    body: ResponseBody { writer in
                        try await writer.write(ByteBuffer(string: "first "))
                        pipeline?.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
                        for _ in 0..<3 {
                            pipeline?.fireUserInboundEventTriggered(
                                OpenConnections.LateHour(isUrgent: true))
                        }
                        try await writer.write(ByteBuffer(string: "second."))
                        try await writer.finish(nil)
                    })
            }
            let answer = try await far.exchange(Self.get("/x"), until: "second.")
            #expect(answer.contains("second."), "\(answer)")
        }
    }

    @Test func `an end refuses waiting calls`() async throws {
        try await Self.with(waiting: 60) { near, _ in
            let connection = try await RawConnection.open(near.port)
            try await connection.send(Self.get("/healthz"))
            _ = await connection.hear(until: "\"status\"")
            try await connection.send(Self.get("/x"))
            await near.waitForCall()
            near.listeners.end()
            #expect(await connection.hearAll().contains("503") == true)
        }
    }

    // MARK: What a relay says of itself

    @Test func `a relay that stands by is ready if the owner is`() async throws {
        try await Self.with { near, far in
            let nobody = try await near.exchange(Self.get("/readyz"), until: "standingBy")
            #expect(nobody.hasPrefix("HTTP/1.1 503"))
            #expect(nobody.contains("the relay is starting"))
            far.own(Self.echo)
            near.follow(far)
            var answer = ""
            while !answer.hasPrefix("HTTP/1.1 200") {
                answer = try await near.exchange(Self.get("/readyz"), until: "}")
            }
            #expect(answer.contains(#""role":"standingBy""#))
            #expect(answer.contains(#""owner":"other""#))
            let alive = try await near.exchange(Self.get("/healthz"), until: "}")
            #expect(alive.hasPrefix("HTTP/1.1 200"))
        }
    }

    @Test func `calls between relays are not accepted from clients`() async throws {
        try await Self.with { near, _ in
            near.own(Self.echo)
            let answer = try await near.exchange(
                "GET /x HTTP/1.1\r\nHost: h\r\nBelfry-Node-Peer: 192.0.2.9\r\n\r\n",
                until: ".")
            #expect(!answer.contains("192.0.2.9"))
            // A client without the pass cannot use the listener for relays.
            let port = try #require(NodeAddress(near.listeners.endpoint.address)?.port)
            let stranger = try await RawConnection.open(port)
            try await stranger.send(Self.get("/readyz"))
            #expect(await stranger.hearAll().contains("HTTP") == false)
        }
    }
}

extension NodePass {
    /// A TLS configuration that shows this pass and accepts any certificate.
    var strangers: TLSConfiguration {
        var settings = listening
        settings.certificateVerification = .none
        return settings
    }
}
