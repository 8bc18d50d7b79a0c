import NIOCore

/// Counts what comes over a connection until it is known whose it is: a stranger has as little as
/// possible kept for it.
final class StrangerBytes: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    /// Bytes of a stranger: room for credentials and the set of a large page.
    static let most = 256 * 1024

    /// More came.
    struct TooMany: Error {}

    private var bytes = 0

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard bytes <= Self.most else { return }
        bytes += unwrapInboundIn(data).readableBytes
        if bytes <= Self.most {
            context.fireChannelRead(data)
        } else {
            context.fireErrorCaught(TooMany())
        }
    }
}
