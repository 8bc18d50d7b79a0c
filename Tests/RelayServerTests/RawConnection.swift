import NIOCore
import NIOPosix
import Synchronization

@testable import RelayServer

/// A TCP connection over which a test sends any text, complete requests or not.
struct RawConnection: Sendable {
    private let channel: any Channel
    private let heard: Heard

    /// What has arrived so far.
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
            // The server has closed its side.
            if event as? ChannelEvent == .inputClosed { context.close(promise: nil) }
        }

        func channelInactive(context: ChannelHandlerContext) {
            continuation.finish()
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            context.close(promise: nil)
        }
    }

    /// Connects to a loopback port from the given loopback address.
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

    /// Posts to a live call of `relay` as alice on a new connection.
    ///
    /// `first` is sent before the request.
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

    /// Stops reading, as a phone does that sleeps.
    ///
    /// The operating system buffers only a little. With an even smaller buffer the TCP window would
    /// stay small for ever, and megabytes would take minutes afterwards.
    func pause() async throws {
        try await channel.setOption(.socketOption(.so_rcvbuf), value: 1 << 17).get()
        try await channel.setOption(.autoRead, value: false).get()
    }

    /// Closes the connection.
    func close() async throws {
        try await channel.close()
    }

    /// Closes the sending side.
    func finish() async throws {
        try await channel.close(mode: .output)
    }

    /// Resumes reading.
    func resume() async throws { try await channel.setOption(.autoRead, value: true).get() }

    /// Returns what arrives until `end` has arrived, or the connection is closed.
    func hear(until end: String) async -> String {
        var all = ""
        // Only new text is searched, because responses may have megabytes.
        var last = ""
        for await part in heard.parts {
            all += part
            last = String(last.suffix(end.count)) + part
            if last.contains(end) { break }
        }
        return all
    }

    /// Returns what arrives until the connection is closed.
    func hearAll() async -> String {
        await heard.parts.reduce(into: "") { $0 += $1 }
    }
}
