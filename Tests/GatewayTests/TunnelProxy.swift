import NIOCore
import NIOPosix
import Synchronization

/// A proxy that supports CONNECT, and leads every tunnel to this machine, whatever host is
/// requested.
final class TunnelProxy: Sendable {
    private let asked: Requests
    private let channel: any Channel

    final class Requests: Sendable {
        let lines = Mutex<[String]>([])
        let ways = Mutex<[Int: Int]>([:])
    }

    static func start() async throws -> TunnelProxy {
        let asked = Requests()
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Tunnel(asked))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        return TunnelProxy(asked, channel)
    }

    private init(_ asked: Requests, _ channel: any Channel) {
        self.asked = asked
        self.channel = channel
    }

    var port: Int { channel.localAddress?.port ?? 0 }

    /// The heads of the requests so far.
    var requests: [String] { asked.lines.withLock { $0 } }

    /// Leads tunnels for the port `far` of any host to the local port `near`.
    func lead(_ far: Int, to near: Int) {
        asked.ways.withLock { $0[far] = near }
    }

    func stop() async throws { try await channel.close() }
}

private final class Tunnel: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let asked: TunnelProxy.Requests
    private var head = ByteBuffer()
    private var waiting: [ByteBuffer] = []
    private var isAsked = false
    private var far: (any Channel)?

    init(_ asked: TunnelProxy.Requests) {
        self.asked = asked
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var buffer = unwrapInboundIn(data)
        if let far { return far.writeAndFlush(buffer, promise: nil) }
        guard !isAsked else { return waiting.append(buffer) }
        head.writeBuffer(&buffer)
        let text = String(buffer: head)
        guard text.hasSuffix("\r\n\r\n") else { return }
        isAsked = true
        asked.lines.withLock { $0.append(text) }
        let target = text.split(separator: " ")[1].split(separator: ":")
        let port = Int(target[1]) ?? 0
        connect(to: asked.ways.withLock { $0[port] } ?? port, context)
    }

    private func connect(to port: Int, _ context: ChannelHandlerContext) {
        let near = context.channel
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        ClientBootstrap(group: context.eventLoop)
            .channelInitializer { far in
                far.eventLoop.makeCompletedFuture {
                    try far.pipeline.syncOperations.addHandler(Backwards(near))
                }
            }
            .connect(host: "127.0.0.1", port: port)
            .whenComplete { result in
                let (tunnel, context) = bound.value
                guard case .success(let far) = result else { return context.close(promise: nil) }
                tunnel.far = far
                let yes = ByteBuffer(string: "HTTP/1.1 200 Connection established\r\n\r\n")
                context.writeAndFlush(tunnel.wrapOutboundOut(yes), promise: nil)
                for buffer in tunnel.waiting { far.writeAndFlush(buffer, promise: nil) }
            }
    }

    func channelInactive(context: ChannelHandlerContext) {
        far?.close(promise: nil)
    }
}

private final class Backwards: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let near: any Channel

    init(_ near: any Channel) {
        self.near = near
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        near.writeAndFlush(unwrapInboundIn(data), promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        near.close(promise: nil)
    }
}
