import DequeModule
import HTTPTypes
import NIOCore
import NIOHTTPTypes

/// Hands the requests of one connection to the relay that owns the store that they are for.
///
/// It does so as long as that is another one; else they go on to the routes. There is one for each
/// connection.
///
/// Bodies and answers pass part by part: what one side does not take is not read from the other.
/// Of a client that sends many requests at once, one is worked after the other.
final class CallForwarder: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    /// What becomes of the request whose parts come in.
    private enum Way {
        /// No request has begun.
        case none
        /// It goes on to the routes of this relay.
        case here
        case forwarded(CallForward)
        /// The last answer is written; what comes still is dropped until the client has gone.
        case ended
    }

    private let forwarding: CallForwarding
    private let listener: String
    /// The other stores of the service; `nil` if the own one is the only one.
    private let shards: ShardDirectory?
    /// Whether administrative calls are answered here.
    private let isOperators: Bool
    private var way = Way.none
    /// Parts of what comes after the request that is forwarded.
    private var later: Deque<HTTPRequestPart> = []
    /// Whether the client sends nothing more, and that is still to be said to the next.
    private var isSilent = false
    /// Answers of this relay's own that are not written wholly.
    private var unanswered = 0
    private var isReadOwed = false
    private var isQuiescing = false
    private var context: ChannelHandlerContext?
    /// Whether HTTP has left the connection, whose task closes it as it goes.
    private var isLeft = false

    init(
        _ forwarding: CallForwarding, listener: String, shards: ShardDirectory? = nil,
        isOperators: Bool = false
    ) {
        self.forwarding = forwarding
        self.listener = listener
        self.shards = shards
        self.isOperators = isOperators
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) {
        abandon()
        self.context = nil
    }

    // MARK: What comes in

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // What HTTP reads still as it goes would be answered without it.
        guard !isLeft else { return }
        later.append(unwrapInboundIn(data))
        work(context)
    }

    /// Works what came earlier, says that it has come, and reads on.
    private func catchUp(_ context: ChannelHandlerContext) {
        if !later.isEmpty {
            work(context)
            // Whoever is behind takes nothing before.
            context.fireChannelReadComplete()
        }
        readOn()
    }

    /// Works what has come, as far as its turn is.
    private func work(_ context: ChannelHandlerContext) {
        while let part = later.first {
            switch (way, part) {
            case (.none, .head(let head)):
                guard let owner = way(of: head) else {
                    unanswered += 1
                    way = .here
                    break
                }
                // Answers keep the order of their requests.
                guard unanswered == 0 else { return }
                later.removeFirst()
                begin(head, owner, context)
                continue
            case (.none, _), (.here, _): break
            case (.forwarded(let call), _):
                guard !call.isRead else { return }
                later.removeFirst()
                call.take(part)
                continue
            case (.ended, _):
                later.removeFirst()
                continue
            }
            later.removeFirst()
            if case .end = part { way = .none }
            context.fireChannelRead(wrapInboundOut(part))
        }
    }

    /// How a request gets to the owner of its store; `nil` if this relay answers it.
    private func way(of head: HTTPRequest) -> CallForwarding? {
        if let other = shards?.way(of: head, isOperators: isOperators) { return other }
        if case .here = forwarding.current.answerer { return nil }
        let path = (head.path ?? "").prefix { $0 != "?" }
        return CallForwarding.ownPaths.contains(String(path)) ? nil : forwarding
    }

    private func begin(
        _ head: HTTPRequest, _ forwarding: CallForwarding, _ context: ChannelHandlerContext
    ) {
        let origin = CallOrigin(
            listener: CallOrigin.listener(of: head, at: listener, isOperators: isOperators),
            peer: ClientAddress(context.channel.remoteAddress),
            own: ClientAddress(context.channel.localAddress))
        // Where clients come too, whoever asks as operators do may be a stranger.
        let call = CallForward(
            head, from: origin, told: listener == "admin", forwarding, self, context.eventLoop)
        way = .forwarded(call)
        call.seek()
    }

    func read(context: ChannelHandlerContext) {
        isReadOwed = true
        readOn()
    }

    /// Reads on, if somebody wants to, and what has come is worked: so no more is kept of a client
    /// than one read brings.
    func readOn() {
        guard isReadOwed, later.isEmpty else { return }
        if case .forwarded(let call) = way, !call.wantsMore { return }
        isReadOwed = false
        context?.read()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if case .forwarded(let call) = way { call.hold(!context.channel.isWritable) }
        context.fireChannelWritabilityChanged()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case .forwarded(let call) = way else {
            return context.fireUserInboundEventTriggered(event)
        }
        switch event {
        case is ChannelShouldQuiesceEvent:
            // The connection ends after this answer, and what never ends, ends now.
            isQuiescing = true
            if call.isStream { context.close(promise: nil) }
        case ChannelEvent.inputClosed as ChannelEvent:
            // Whoever stands behind this has no call, and would end the connection before the
            // answer.
            isSilent = true
            call.clientFellSilent()
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        abandon()
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if case .forwarded = way {
            context.close(promise: nil)
        } else {
            context.fireErrorCaught(error)
        }
    }

    private func abandon() {
        if case .forwarded(let call) = way { call.abandon() }
        way = .none
        later = []
    }

    // MARK: What goes out

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard !isLeft else {
            promise?.fail(ChannelError.ioOnClosedChannel)
            return
        }
        if case .end = unwrapOutboundIn(data), unanswered > 0 {
            unanswered -= 1
            context.write(data, promise: promise)
            catchUp(context)
        } else {
            context.write(data, promise: promise)
        }
    }

    func close(
        context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?
    ) {
        guard isLeft else { return context.close(mode: mode, promise: promise) }
        promise?.succeed()
        // First it ends what it would have written, then all; whoever closes after it means it.
        if case .all = mode { context.pipeline.syncOperations.removeHandler(self, promise: nil) }
    }

    // MARK: For the call

    /// Whether the client takes more.
    var isWritable: Bool { context?.channel.isWritable ?? false }

    /// Writes a part of the answer.
    func write(_ part: HTTPResponsePart) {
        context?.write(wrapOutboundOut(part), promise: nil)
    }

    func flush() { context?.flush() }

    /// Says that the call is over, and its answer written.
    ///
    /// An answer that `isLast` says so in its head, and whoever watches the connection closes it.
    func finish(isLast: Bool) {
        way = isLast ? .ended : .none
        guard let context else { return }
        catchUp(context)
        if case .forwarded = way { return }
        if isQuiescing { context.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent()) }
        sayThatItIsSilent(context)
    }

    private func sayThatItIsSilent(_ context: ChannelHandlerContext) {
        guard isSilent else { return }
        isSilent = false
        context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
    }

    /// Cuts the connection off: what was begun cannot be ended in order.
    func cut() {
        way = .none
        context?.close(promise: nil)
    }

    /// Gives a call of which nothing was sent to the routes of this relay.
    func takeBack(_ parts: Deque<HTTPRequestPart>) {
        guard let context else { return }
        way = .none
        later = parts + later
        catchUp(context)
        if case .forwarded = way { return }
        sayThatItIsSilent(context)
    }

    /// Makes the connection one end of a tunnel, once `answer` is written; says whether it is.
    func upgrade(
        _ answer: HTTPResponse, to end: TunnelEnd, then done: @escaping (_ isJoined: Bool) -> Void
    ) {
        guard let context else { return done(false) }
        write(.head(answer))
        let written = context.eventLoop.makePromise(of: Void.self)
        written.futureResult.assumeIsolated().whenComplete { [self] outcome in
            guard case .success = outcome, let context = self.context,
                (try? HTTPDeparture.replace(context.pipeline.syncOperations, by: end)) != nil
            else {
                self.context?.channel.close(promise: nil)
                return done(false)
            }
            isLeft = true
            way = .none
            later = []
            context.fireErrorCaught(Departed())
            done(true)
        }
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: written)
    }

    /// Tells the task that serves HTTP on a connection that it has nothing more to serve.
    private struct Departed: Error {}
}
