import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOHTTPTypes
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
}
