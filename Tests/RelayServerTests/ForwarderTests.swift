import HTTPTypes
import Logging
import NIOCore
import NIOEmbedded
import NIOHTTPTypes
import RelayModel
import RelayTestKit
import StoragePostgreSQL
import Testing

@testable import RelayServer

/// How the requests of one connection are read and handed on, without a socket.
@Suite struct ForwarderTests {
    /// Counts how often somebody wanted to read from the client.
    private final class Reads: ChannelOutboundHandler {
        typealias OutboundIn = Any
        typealias OutboundOut = Any

        var count = 0

        func read(context: ChannelHandlerContext) {
            count += 1
            context.read()
        }
    }

    private let current = CurrentAnswerer()
    private let reads = Reads()
    private let channel: EmbeddedChannel

    init() throws {
        let forwarding = CallForwarding(
            current, patience: .seconds(10), silence: .seconds(60),
            identifiers: RandomIdentifiers { World.real.randomBytes($0) },
            meter: ForwardingMeter(PrometheusMetrics()))
        channel = EmbeddedChannel(
            handlers: [reads, CallForwarder(forwarding, listener: "http")])
        channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 1), promise: nil)
    }

    private func come(_ path: String) throws {
        let head = HTTPRequest(method: .get, scheme: nil, authority: "h", path: path)
        try channel.writeInbound(HTTPRequestPart.head(head))
        try channel.writeInbound(HTTPRequestPart.end(nil))
    }

    /// How many reads come of wanting to.
    private func readings() -> Int {
        let before = reads.count
        channel.read()
        return reads.count - before
    }

    @Test func `no more of a client is read than what has come is worked`() throws {
        // This relay's own answer, which the client does not take.
        try come("/healthz")
        #expect(readings() == 1)
        try come("/x")
        #expect(readings() == 0)
        try channel.writeOutbound(HTTPResponsePart.head(HTTPResponse(status: .ok)))
        try channel.writeOutbound(HTTPResponsePart.end(nil))
        // Its turn has come, and nobody owns the store.
        #expect(readings() == 0)
        let before = reads.count
        current.post(.here)
        channel.embeddedEventLoop.run()
        #expect(reads.count == before + 1)
        for path in ["/healthz", "/x"] {
            guard case .head(let head)? = try channel.readInbound(as: HTTPRequestPart.self),
                case .end? = try channel.readInbound(as: HTTPRequestPart.self)
            else {
                Issue.record("\(path) is missing")
                return
            }
            #expect(head.path == path)
        }
        #expect(readings() == 1)
        _ = try channel.finish()
    }

    @Test func `a call waits its time, and is refused then`() throws {
        try come("/x")
        channel.embeddedEventLoop.advanceTime(by: .seconds(9))
        #expect(try channel.readOutbound(as: HTTPResponsePart.self) == nil)
        channel.embeddedEventLoop.advanceTime(by: .seconds(2))
        guard case .head(let head)? = try channel.readOutbound(as: HTTPResponsePart.self) else {
            Issue.record("nothing is answered")
            return
        }
        #expect(head.status == .serviceUnavailable)
        #expect(head.headerFields[.retryAfter] == "1")
        _ = try channel.finish()
    }

    @Test func `a call for another shard goes there, whoever owns the own store`() throws {
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let directory = ShardDirectory(
            own: "a", schemas: ["a", "b"], clock: ContinuousClock(), logger: logger,
            metrics: PrometheusMetrics()
        ) {
            CallForwarding(
                $1, patience: .seconds(5), silence: .seconds(60),
                identifiers: RandomIdentifiers { World.real.randomBytes($0) },
                meter: ForwardingMeter(PrometheusMetrics()), shard: $0)
        }
        let key = ContainerKey(
            container: Fixtures.identifier("there"), environment: .development)
        directory.note([
            ShardSight(schema: "b", state: .unowned, containers: [key], revision: 1)
        ])
        let forwarding = CallForwarding(
            current, patience: .seconds(10), silence: .seconds(60),
            identifiers: RandomIdentifiers { World.real.randomBytes($0) },
            meter: ForwardingMeter(PrometheusMetrics()))
        let channel = EmbeddedChannel(
            handlers: [CallForwarder(forwarding, listener: "http", shards: directory)])
        channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 1), promise: nil)
        current.post(.here)
        for name in ["here", "there"] {
            let head = HTTPRequest(
                method: .get, scheme: nil, authority: "h",
                path: "/changes/1/\(name)/development/s")
            try channel.writeInbound(HTTPRequestPart.head(head))
            try channel.writeInbound(HTTPRequestPart.end(nil))
        }
        guard case .head(let head)? = try channel.readInbound(as: HTTPRequestPart.self) else {
            Issue.record("nothing comes to the routes")
            return
        }
        #expect(head.path == "/changes/1/here/development/s")
        _ = try channel.readInbound(as: HTTPRequestPart.self)
        #expect(try channel.readInbound(as: HTTPRequestPart.self) == nil)
        // Answers keep their order: the other one waits for this one, and then for an owner.
        try channel.writeOutbound(HTTPResponsePart.head(HTTPResponse(status: .ok)))
        try channel.writeOutbound(HTTPResponsePart.end(nil))
        _ = try channel.readOutbound(as: HTTPResponsePart.self)
        _ = try channel.readOutbound(as: HTTPResponsePart.self)
        channel.embeddedEventLoop.advanceTime(by: .seconds(4))
        #expect(try channel.readOutbound(as: HTTPResponsePart.self) == nil)
        channel.embeddedEventLoop.advanceTime(by: .seconds(2))
        guard case .head(let answer)? = try channel.readOutbound(as: HTTPResponsePart.self) else {
            Issue.record("nothing is answered")
            return
        }
        #expect(answer.status == .serviceUnavailable)
        _ = try channel.finish()
    }
}
