import NIOCore

/// Notices bytes before they are decoded: the pieces of a head, and of the TLS handshake.
final class FirstBytes: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let guest: GuestHandler

    init(guest: GuestHandler) {
        self.guest = guest
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guest.hear(at: context.eventLoop.pace)
        context.fireChannelRead(data)
    }
}
