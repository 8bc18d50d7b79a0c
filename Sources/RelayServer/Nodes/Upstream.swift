import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOSSL
import NIOTLS
import StoragePostgreSQL

/// The user of a connection to the owner; on the connection's event loop.
protocol UpstreamUser: AnyObject {
    /// Takes a part of the answer.
    func take(_ part: HTTPResponsePart)
    /// Notes that nothing more has arrived for now.
    func takeEnd()
    /// Notes that the connection has ended.
    func upstreamEnded()
    /// Notes that the connection accepts more, or no longer does.
    func upstreamWritabilityChanged()
}

/// A connection to the relay that owns the store, used by one call at a time.
///
/// All of it happens on its event loop.
final class Upstream: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPResponsePart
    typealias InboundOut = HTTPResponsePart
    typealias OutboundIn = HTTPRequestPart
    typealias OutboundOut = HTTPRequestPart

    /// The owner at its other end.
    let owner: StoreOwner
    private var user: (any UpstreamUser)?
    private var context: ChannelHandlerContext?
    private var ready: EventLoopPromise<Void>?
    /// Whether reading is paused, until the user can take more.
    private var isHeld = false
    private var isReadOwed = false
    private(set) var isOpen = true

    /// Creates a connection; `ready` is completed once the other end is verified, or fails.
    init(to owner: StoreOwner, ready: EventLoopPromise<Void>) {
        self.owner = owner
        self.ready = ready
    }

    /// The connection's channel; `nil` once it has closed.
    var channel: (any Channel)? { context?.channel }
    var isWritable: Bool { context?.channel.isWritable ?? false }

    // MARK: For its user

    /// Gives the connection to a user, or to none.
    func use(by user: (any UpstreamUser)?) {
        self.user = user
        if user == nil { hold(false) }
    }

    func write(_ part: HTTPRequestPart) {
        context?.write(wrapOutboundOut(part), promise: nil)
    }

    func flush() { context?.flush() }

    /// Pauses or resumes reading.
    func hold(_ isHeld: Bool) {
        self.isHeld = isHeld
        guard !isHeld, isReadOwed else { return }
        isReadOwed = false
        context?.read()
    }

    /// Replaces HTTP on the connection by `end`; returns whether that worked.
    func become(_ end: TunnelEnd) -> Bool {
        guard let pipeline = context?.pipeline.syncOperations else { return false }
        use(by: nil)
        do {
            let decoder = try pipeline.handler(
                type: ByteToMessageHandler<HTTPResponseDecoder>.self)
            // Bytes after the answer belong to the other protocol, and go to the next handler.
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

    /// Closes the connection without notifying the user.
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
            // There is no request to which this could be an answer.
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
