import DequeModule
import HTTPTypes
import NIOCore
import NIOHTTPTypes

/// Forwards the requests of one connection to the relay that owns their store.
///
/// If this relay owns the store, they go on to its routes. Each connection has one forwarder.
///
/// Bodies and answers are forwarded part by part: if one side does not accept more, nothing is read
/// from the other. Pipelined requests are handled one after the other.
final class CallForwarder: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    /// Where the parts of the current request go.
    private enum Way {
        /// No request has begun.
        case none
        /// To the routes of this relay.
        case here
        case forwarded(CallForward)
        /// The last answer is written; what still arrives is dropped until the client closes the
        /// connection.
        case ended
    }

    private let forwarding: CallForwarding
    private let listener: String
    /// The other stores of the service; `nil` if there are none.
    private let shards: ShardDirectory?
    /// Whether administrative calls are answered here.
    private let isOperators: Bool
    private var way = Way.none
    /// The parts that arrived after the forwarded request.
    private var later: Deque<HTTPRequestPart> = []
    /// Whether the client closed its sending side, and later handlers do not know it yet.
    private var isSilent = false
    /// The number of answers of this relay's routes that are not completely written.
    private var unanswered = 0
    private var isReadOwed = false
    private var isQuiescing = false
    private var context: ChannelHandlerContext?
    /// Whether HTTP was removed from the connection, whose task closes it then.
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
        // What HTTP still decodes during its removal would be answered by the wrong protocol.
        guard !isLeft else { return }
        later.append(unwrapInboundIn(data))
        work(context)
    }

    /// Handles what arrived earlier, and reads on.
    private func catchUp(_ context: ChannelHandlerContext) {
        if !later.isEmpty {
            work(context)
            // Later handlers do not act before this event.
            context.fireChannelReadComplete()
        }
        readOn()
    }

    /// Handles the parts that have arrived, up to a request that must wait for its turn.
    private func work(_ context: ChannelHandlerContext) {
        while let part = later.first {
            switch (way, part) {
            case (.none, .head(let head)):
                guard let owner = way(of: head) else {
                    unanswered += 1
                    way = .here
                    break
                }
                // Answers must keep the order of their requests.
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

    /// Returns how a request gets to the owner of its store; `nil` if this relay answers it.
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
        // If clients share the listener with operators, an administrative call may come from a
        // stranger.
        let call = CallForward(
            head, from: origin, told: listener == "admin", forwarding, self, context.eventLoop)
        way = .forwarded(call)
        call.seek()
    }

    func read(context: ChannelHandlerContext) {
        isReadOwed = true
        readOn()
    }

    /// Reads on if a read was requested and everything that arrived is handled.
    ///
    /// So no more of a client's data is kept than one read brings.
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
            // The connection ends after this answer; an endless stream ends now.
            isQuiescing = true
            if call.isStream { context.close(promise: nil) }
        case ChannelEvent.inputClosed as ChannelEvent:
            // Later handlers do not know the call, and would close the connection before its
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
        // The task first closes the sending side and then the connection; a later close is meant.
        if case .all = mode { context.pipeline.syncOperations.removeHandler(self, promise: nil) }
    }

    // MARK: For the call

    /// Whether the client accepts more.
    var isWritable: Bool { context?.channel.isWritable ?? false }

    /// Writes a part of the answer.
    func write(_ part: HTTPResponsePart) {
        context?.write(wrapOutboundOut(part), promise: nil)
    }

    func flush() { context?.flush() }

    /// Ends the call, whose answer is written.
    ///
    /// If `isLast`, the answer's head says so, and the handler that watches the connection closes
    /// it.
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

    /// Closes the connection at once, because a begun answer cannot be completed.
    func cut() {
        way = .none
        context?.close(promise: nil)
    }

    /// Passes a call, of which nothing was forwarded, to the routes of this relay.
    func takeBack(_ parts: Deque<HTTPRequestPart>) {
        guard let context else { return }
        way = .none
        later = parts + later
        catchUp(context)
        if case .forwarded = way { return }
        sayThatItIsSilent(context)
    }

    /// Turns the connection into one end of a tunnel after writing `answer`; `done` is told whether
    /// it worked.
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

    /// Tells the task that serves HTTP on a connection that there is nothing more to serve.
    private struct Departed: Error {}
}
