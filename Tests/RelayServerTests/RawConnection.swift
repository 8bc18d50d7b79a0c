import NIOCore
import NIOPosix
import Synchronization

@testable import RelayServer

/// A connection over which a test sends what it likes, whole requests or not.
struct RawConnection: Sendable {
    private let channel: any Channel
    private let heard: Heard

    /// What came in so far.
    private final class Heard: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer

        let parts: AsyncStream<String>
        private let continuation: AsyncStream<String>.Continuation

        init() {
            (parts, continuation) = AsyncStream.makeStream()
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            continuation.yield(String(buffer: unwrapInboundIn(data)))
        }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            // Nothing more comes.
            if event as? ChannelEvent == .inputClosed { context.close(promise: nil) }
        }

        func channelInactive(context: ChannelHandlerContext) {
            continuation.finish()
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            context.close(promise: nil)
        }
    }

    /// Connects to a port of the loopback interface, from one of its addresses.
    static func open(_ port: Int, from address: String = "127.0.0.1") async throws -> RawConnection
    {
        let heard = Heard()
        let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .bind(to: try SocketAddress(ipAddress: address, port: 0))
            .channelOption(.allowRemoteHalfClosure, value: true)
            .channelInitializer { $0.pipeline.addHandler(heard) }
            .connect(host: "127.0.0.1", port: port).get()
        return RawConnection(channel: channel, heard: heard)
    }

    /// Posts to a live door of `relay` as alice, on a connection of its own, behind what is sent
    /// `first`.
    static func posting(
        _ body: String, to door: String, of relay: RunningRelay, headers: [String] = [],
        behind first: String = ""
    ) async throws -> RawConnection {
        let connection = try await open(try await relay.relay.ports.port(of: "http"))
        let lines =
            ["POST \(LiveScenarioTests.door(door, of: relay)) HTTP/1.1", "Host: localhost"]
            + headers + ["Content-Length: \(body.utf8.count)", "", body]
        try await connection.send(first + lines.joined(separator: "\r\n"))
        return connection
    }

    /// Sends `text`.
    func send(_ text: String) async throws {
        try await channel.writeAndFlush(ByteBuffer(string: text))
    }

    /// Takes nothing more, as a telephone that sleeps; the system keeps little for it.
    ///
    /// With still less the window stays small for ever: megabytes took minutes afterwards.
    func pause() async throws {
        try await channel.setOption(.socketOption(.so_rcvbuf), value: 1 << 17).get()
        try await channel.setOption(.autoRead, value: false).get()
    }

    /// Goes.
    func close() async throws {
        try await channel.close()
    }

    /// Sends nothing more.
    func finish() async throws {
        try await channel.close(mode: .output)
    }

    /// Reads again.
    func resume() async throws { try await channel.setOption(.autoRead, value: true).get() }

    /// What comes until `end` has come, or the connection is closed.
    func hear(until end: String) async -> String {
        var all = ""
        // What was heard before is not gone through again: answers may have megabytes.
        var last = ""
        for await part in heard.parts {
            all += part
            last = String(last.suffix(end.count)) + part
            if last.contains(end) { break }
        }
        return all
    }

    /// What comes until the connection is closed.
    func hearAll() async -> String {
        await heard.parts.reduce(into: "") { $0 += $1 }
    }
}
