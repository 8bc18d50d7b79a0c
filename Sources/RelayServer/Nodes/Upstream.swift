import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOSSL
import NIOTLS
import StoragePostgreSQL

/// Who uses a connection to the owner; on the connection's event loop.
protocol UpstreamUser: AnyObject {
    /// A part of the answer has come.
    func take(_ part: HTTPResponsePart)
    /// Nothing more has come for now.
    func takeEnd()
    /// The connection has ended.
    func upstreamEnded()
    /// The connection takes more, or no more.
    func upstreamWritabilityChanged()
}

/// One connection to the relay that owns the store, which one call at a time uses.
///
/// All of it happens on its event loop.
final class Upstream: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPResponsePart
    typealias InboundOut = HTTPResponsePart
    typealias OutboundIn = HTTPRequestPart
    typealias OutboundOut = HTTPRequestPart

    /// The owner to whom it leads.
    let owner: StoreOwner
    private var user: (any UpstreamUser)?
    private var context: ChannelHandlerContext?
    private var ready: EventLoopPromise<Void>?
    /// Whether reading waits until the user has room.
    private var isHeld = false
    private var isReadOwed = false
    private(set) var isOpen = true

    /// `ready` is told once the other end is known, or why it is not.
    init(to owner: StoreOwner, ready: EventLoopPromise<Void>) {
        self.owner = owner
        self.ready = ready
    }

    /// The connection.
    var channel: (any Channel)? { context?.channel }
    var isWritable: Bool { context?.channel.isWritable ?? false }

    // MARK: For its user

    /// Gives it to a user, or to nobody.
    func use(by user: (any UpstreamUser)?) {
        self.user = user
        if user == nil { hold(false) }
    }

    func write(_ part: HTTPRequestPart) {
        context?.write(wrapOutboundOut(part), promise: nil)
    }

    func flush() { context?.flush() }

    /// Reads no more until it is told to go on.
    func hold(_ isHeld: Bool) {
        self.isHeld = isHeld
        guard !isHeld, isReadOwed else { return }
        isReadOwed = false
        context?.read()
    }

    /// Takes HTTP off the connection, of which `end` is the user from now on; says whether it
    /// could.
    func become(_ end: TunnelEnd) -> Bool {
        guard let pipeline = context?.pipeline.syncOperations else { return false }
        use(by: nil)
        do {
            let decoder = try pipeline.handler(
                type: ByteToMessageHandler<HTTPResponseDecoder>.self)
            // What came after the answer is the other protocol's already, and goes to the next.
            try pipeline.addHandler(end, position: .after(decoder))
            pipeline.removeHandler(
                try pipeline.handler(type: HTTPRequestEncoder.self), promise: nil)
            pipeline.removeHandler(decoder, promise: nil)
            return true
        } catch {
            close()
            return false
        }
    }

    /// Ends it; nobody is told.
    func close() {
        user = nil
        isOpen = false
        context?.close(promise: nil)
    }

    // MARK: On the connection

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        end(ChannelError.alreadyClosed)
    }

    func read(context: ChannelHandlerContext) {
        if isHeld { isReadOwed = true } else { context.read() }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard let user else {
            // Nobody has asked anything.
            return close()
        }
        user.take(unwrapInboundIn(data))
    }

    func channelReadComplete(context: ChannelHandlerContext) { user?.takeEnd() }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        user?.upstreamWritabilityChanged()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted? = event as? TLSUserEvent {
            ready?.succeed()
            ready = nil
        }
        if event is IdleStateHandler.IdleStateEvent {
            end(ChannelError.inputClosed)
            context.close(promise: nil)
        }
    }

    func channelInactive(context: ChannelHandlerContext) { end(ChannelError.ioOnClosedChannel) }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        end(error)
        context.close(promise: nil)
    }

    private func end(_ error: any Error) {
        isOpen = false
        ready?.fail(error)
        ready = nil
        let user = user
        self.user = nil
        user?.upstreamEnded()
    }
}
