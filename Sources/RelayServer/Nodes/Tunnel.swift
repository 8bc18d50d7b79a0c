import NIOCore
import StoragePostgreSQL

/// One end of two connections of which each gets what the other sends: a WebSocket through the
/// relay that does not own the store.
///
/// Both are on one event loop.
final class TunnelEnd: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var partner: TunnelEnd?
    private var context: ChannelHandlerContext?
    /// Whether somebody wants to read: at first always, since HTTP may have put reading off.
    private var isReadOwed = true
    /// What came before the other end was there.
    private var early: [ByteBuffer] = []
    private let onEnd: () -> Void

    /// `onEnd` is called once this end has gone.
    init(onEnd: @escaping () -> Void = {}) { self.onEnd = onEnd }

    /// Joins two ends.
    static func join(_ one: TunnelEnd, _ other: TunnelEnd) {
        one.partner = other
        other.partner = one
        one.begin()
        other.begin()
    }

    private func begin() {
        // It may have gone meanwhile.
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

    /// Reads as far as the other end takes it.
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
        // Whoever asked to read before has left with HTTP.
        isReadOwed = true
        readIfWanted()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) { partner?.readIfWanted() }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        // A WebSocket that sends nothing more has gone; so has one whose relay ends, or whose owner
        // does not even ask any more whether its client is there.
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

    /// Ends the other with it.
    func close() { context?.close(promise: nil) }

    private func leave() {
        guard let partner else { return }
        self.partner = nil
        partner.close()
        onEnd()
    }
}

/// Ends a tunnel whose owner owns the store no more.
final class TunnelWatch {
    /// How long it goes on after that: an owner that ends in order tells its clients by itself.
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
        // It may own the store no more since it was asked.
        look()
    }

    func end() { current.forget(number) }
}
