import NIOCore
import StoragePostgreSQL

/// One end of a tunnel of two connections, each of which receives what the other sends.
///
/// It carries a WebSocket through a relay that does not own the store. Both ends are on one event
/// loop.
final class TunnelEnd: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var partner: TunnelEnd?
    private var context: ChannelHandlerContext?
    /// Whether a read was requested; initially true, because HTTP may have deferred one.
    private var isReadOwed = true
    /// What arrived before the tunnel was joined.
    private var early: [ByteBuffer] = []
    private let onEnd: () -> Void

    /// Creates an end; `onEnd` is called once it has closed.
    init(onEnd: @escaping () -> Void = {}) { self.onEnd = onEnd }

    /// Joins two ends.
    static func join(_ one: TunnelEnd, _ other: TunnelEnd) {
        one.partner = other
        other.partner = one
        one.begin()
        other.begin()
    }

    private func begin() {
        // The connection may have closed meanwhile.
        guard context != nil else { return leave() }
        for part in early { partner?.send(part) }
        early = []
        partner?.context?.flush()
        readIfWanted()
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        leave()
    }

    func read(context: ChannelHandlerContext) {
        isReadOwed = true
        readIfWanted()
    }

    /// Reads if the other end accepts more.
    private func readIfWanted() {
        guard isReadOwed, let partner, partner.context?.channel.isWritable == true else { return }
        isReadOwed = false
        context?.read()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data)
        if let partner { partner.send(bytes) } else { early.append(bytes) }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        partner?.context?.flush()
        // The handler that requested reads was removed with HTTP.
        isReadOwed = true
        readIfWanted()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) { partner?.readIfWanted() }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        // A WebSocket whose client closed its sending side has gone. It is also closed if this
        // relay ends, or if nothing arrives from the owner, which pings its clients.
        switch event {
        case ChannelEvent.inputClosed as ChannelEvent, is ChannelShouldQuiesceEvent,
            is IdleStateHandler.IdleStateEvent:
            context.close(promise: nil)
        default: break
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        leave()
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    private func send(_ bytes: ByteBuffer) {
        context?.write(wrapOutboundOut(bytes), promise: nil)
    }

    /// Closes the connection, which also closes the other end.
    func close() { context?.close(promise: nil) }

    private func leave() {
        guard let partner else { return }
        self.partner = nil
        partner.close()
        onEnd()
    }
}

/// Ends a tunnel when its owner no longer owns the store.
final class TunnelWatch {
    /// How long the tunnel stays open then: an owner that ends in order tells its clients itself.
    private static let afterglow = TimeAmount.seconds(1)

    private let current: CurrentAnswerer
    private let number: UInt64

    init(
        _ current: CurrentAnswerer, of owner: StoreOwner, _ end: TunnelEnd, _ loop: any EventLoop
    ) {
        self.current = current
        let end = NIOLoopBound(end, eventLoop: loop)
        let look: @Sendable () -> Void = {
            switch current.answerer {
            case .owner(let route) where route.owner == owner: return
            case .nobody: return
            case .owner, .here, .ended: break
            }
            loop.scheduleTask(in: Self.afterglow) { end.value.close() }
        }
        number = current.listen(look)
        // The owner may have lost the store since the call began.
        look()
    }

    func end() { current.forget(number) }
}
