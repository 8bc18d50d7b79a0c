import Logging
import NIOCore
import Synchronization

/// Admits connections to one listener as far as there is room, and keeps the listener alive.
///
/// Concurrency: a lock protects the counts; no other code is called while it is held. A connection
/// is noted when it is accepted, on the listener's event loop, before its own event loop knows of
/// it.
final class ConnectionLimiter: Sendable {
    private struct Guest {
        let verdict: ConnectionCounts.Verdict
        let address: ClientAddress?
        let channel: any Channel
        var hasAsked = false
    }

    /// An event that tells a connection to close for the sake of another one.
    struct GiveWay: Sendable {}

    private struct State {
        var counts: ConnectionCounts
        var guests: [ObjectIdentifier: Guest] = [:]
        var idle = IdleConnections<ObjectIdentifier>()
        var untaken: UntakenAnswers<ObjectIdentifier>
        var wasFull = false

        /// Removes an idle connection from the counts if a new one from `address` needs its place.
        mutating func makeRoom(for address: ClientAddress?, at now: Duration) -> (any Channel)? {
            guard counts.bounds.makesRoom, let refusal = counts.refusal(of: address),
                let id = idle.next(for: refusal, from: address),
                let guest = guests.removeValue(forKey: id)
            else { return nil }
            idle.remove(id)
            counts.leave(guest.verdict, from: guest.address, asked: guest.hasAsked, at: now)
            return guest.channel
        }
    }

    /// The length of the system's accept queue, if `net.core.somaxconn` is not less.
    ///
    /// After a restart of the relay all its clients connect again. If the queue is full, a client
    /// retries after one, two, four seconds, and so on for minutes.
    static let backlog = 4096
    /// How many connections are accepted at a time; in between, the event loop serves the others.
    private static let takenTogether = 16

    private let state: Mutex<State>
    private let proxies: TrustedProxies
    private let logger: Logger
    let bounds: ConnectionPace.Bounds
    let meter: ListenerMeter
    let connections: OpenConnections
    let identifiers: RandomIdentifiers
    let name: String
    /// Whether idle connections are closed for new ones, and must be noted.
    let makesRoom: Bool

    init(
        _ name: String, _ counts: ConnectionCounts.Bounds, _ bounds: ConnectionPace.Bounds,
        answerBytes: Int, proxies: TrustedProxies, connections: OpenConnections,
        meter: ListenerMeter, identifiers: RandomIdentifiers, logger: Logger
    ) {
        self.name = name
        makesRoom = counts.makesRoom
        state = Mutex(
            State(
                counts: ConnectionCounts(counts), untaken: UntakenAnswers(most: answerBytes)))
        self.identifiers = identifiers
        self.bounds = bounds
        self.proxies = proxies
        self.connections = connections
        self.meter = meter
        self.logger = logger
    }

    /// How many connections may be accepted now.
    var taken: Int { min(state.withLock { $0.counts.room }, Self.takenTogether) }

    /// Returns whether a new connection is held back before its verdict.
    func waits(_ channel: any Channel) -> Bool {
        let (address, now) = (address(of: channel), channel.eventLoop.pace)
        return state.withLock { $0.counts.waits(from: address, at: now) }
    }

    /// Notes that a new connection is held back.
    ///
    /// - Returns: Whether the one that was held back longest must be dropped.
    func hold() -> Bool {
        let isFull = state.withLock { $0.counts.hold() }
        if isFull { meter.count(.silent) }
        return isFull
    }

    /// Notes that a connection is no longer held back.
    func release() {
        state.withLock { $0.counts.release() }
    }

    /// Returns the address under which a connection counts; `nil` for a proxy's, which carries many
    /// clients.
    private func address(of channel: any Channel) -> ClientAddress? {
        ClientAddress(channel.remoteAddress).flatMap { proxies.contains($0) ? nil : $0.origin }
    }

    /// Decides on a new connection; repeated calls return the same verdict.
    func verdict(on channel: any Channel) -> ConnectionCounts.Verdict {
        let address = address(of: channel)
        let id = ObjectIdentifier(channel)
        let known = state.withLock { $0.guests[id]?.verdict }
        if let known { return known }
        let now = channel.eventLoop.pace
        let (verdict, served, isNews, leaving) = state.withLock { state in
            let leaving = state.makeRoom(for: address, at: now)
            let verdict = state.counts.arrive(from: address)
            let isNews = verdict.refusal == .full && !state.wasFull
            if isNews { state.wasFull = true }
            state.guests[id] = Guest(verdict: verdict, address: address, channel: channel)
            return (verdict, state.counts.served, isNews, leaving)
        }
        leaving?.pipeline.fireUserInboundEventTriggered(GiveWay())
        channel.closeFuture.whenComplete { [self] _ in leave(channel) }
        if isNews {
            logger.warning(
                "a listener is full and refuses new connections",
                metadata: ["listener": "\(name)", "connections": .stringConvertible(served)])
        }
        if let refusal = verdict.refusal { meter.count(refusal) } else { show() }
        return verdict
    }

    /// Notes that a connection has sent the head of a request.
    func noteRequest(on channel: any Channel) {
        let id = ObjectIdentifier(channel)
        state.withLock { state in
            state.guests[id]?.hasAsked = true
            state.idle.remove(id)
        }
    }

    /// Notes that a connection is idle.
    func noteIdle(_ channel: any Channel) {
        guard makesRoom else { return }
        let id = ObjectIdentifier(channel)
        state.withLock { state in
            guard let guest = state.guests[id], guest.verdict == .served else { return }
            state.idle.add(id, from: guest.address, asked: guest.hasAsked)
        }
    }

    /// Notes how many bytes of answers a connection's client has not taken, and closes connections
    /// if these are too many together.
    func noteUntaken(_ bytes: Int, on channel: any Channel) {
        let id = ObjectIdentifier(channel)
        let leaving = state.withLock { state -> [any Channel] in
            guard let guest = state.guests[id] else { return [] }
            let ended = state.untaken.note(bytes, of: id, from: guest.address)
            return ended.compactMap { state.guests[$0]?.channel }
        }
        for channel in leaving {
            meter.count(.answer)
            channel.close(promise: nil)
        }
        showUntaken()
    }

    private func leave(_ channel: any Channel) {
        let (isKnown, isLess) = state.withLock { state -> (Bool, Bool) in
            state.idle.remove(ObjectIdentifier(channel))
            let untaken = state.untaken.bytes
            state.untaken.forget(ObjectIdentifier(channel))
            let isLess = state.untaken.bytes < untaken
            guard let guest = state.guests.removeValue(forKey: ObjectIdentifier(channel)) else {
                return (false, isLess)
            }
            state.counts.leave(
                guest.verdict, from: guest.address, asked: guest.hasAsked,
                at: channel.eventLoop.pace)
            // Logged again only after the listener was far from full, so that a client that keeps
            // reconnecting does not fill the log.
            let bound = state.counts.bounds.connections
            if state.counts.served <= bound - bound / 4 { state.wasFull = false }
            return (true, isLess)
        }
        if isKnown { show() }
        if isLess { showUntaken() }
    }

    /// Publishes the number of served connections.
    private func show() {
        meter.show { state.withLock { $0.counts.served } }
    }

    /// Publishes the bytes of answers that clients have not taken.
    private func showUntaken() {
        meter.showUntaken { state.withLock { $0.untaken.bytes } }
    }

    /// Adds its handler to the listening socket.
    func stand(at listener: any Channel) async {
        do {
            try await listener.eventLoop.submit { [self] in
                try listener.pipeline.syncOperations.addHandler(
                    AcceptHandler(limiter: self), position: .first)
                try listener.syncOptions?.setOption(
                    .maxMessagesPerRead, value: UInt(Self.takenTogether))
            }.get()
        } catch {
            // The listener closed at once, so there is nothing to limit.
            logger.debug(
                "a listener was closed before its limits were set", metadata: ["reason": "\(error)"]
            )
        }
    }

    /// Returns the handler that watches a new connection.
    func watch() -> any RemovableChannelHandler {
        ConnectionWatch(limiter: self)
    }

    /// Notes that the system could not accept a connection.
    func note(_ error: any Error) {
        meter.countFailure()
        logger.warning(
            "could not accept a connection",
            metadata: ["listener": "\(name)", "reason": "\(error)"])
    }
}

/// Handles the listening socket, before all other handlers.
///
/// Hummingbird and NIO close a listener at the first error that reaches them, and drop connections
/// that were accepted but not handled yet, which traps. So no error is passed on.
private final class AcceptHandler: ChannelDuplexHandler {
    typealias InboundIn = any Channel
    typealias InboundOut = any Channel
    typealias OutboundIn = Never
    typealias OutboundOut = Never

    /// The pause after the system could not accept a connection.
    ///
    /// As long as there is no room for one, the system would repeat the error at once.
    private static let pause = TimeAmount.milliseconds(100)

    /// The interval at which connections that are held back are judged.
    ///
    /// It is shorter than the allowed rate of silent connections, because hundreds of a crowd that
    /// has gone may be in the queue before real clients.
    private static let patience = TimeAmount.nanoseconds(1_000_000_000 / 512)

    private let limiter: ConnectionLimiter
    private var isPausing = false
    private var isFailing = false
    private var isAsked = false
    /// The connections that are held back, in their order.
    private var waiting: CircularBuffer<any Channel> = []
    private var timer: Scheduled<Void>?

    init(limiter: ConnectionLimiter) {
        self.limiter = limiter
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        isFailing = false
        let channel = unwrapInboundIn(data)
        guard limiter.waits(channel) else { return admit(channel, context) }
        // The oldest one may have closed, which is not noticed here.
        if limiter.hold() { waiting.removeFirst().close(promise: nil) }
        waiting.append(channel)
        if timer == nil { lookSoon(context) }
    }

    /// Judges the oldest connection after the interval, and then the next.
    private func lookSoon(_ context: ChannelHandlerContext) {
        timer = context.eventLoop.assumeIsolated().scheduleTask(in: Self.patience) { [self] in
            timer = nil
            guard let channel = waiting.popFirst() else { return }
            limiter.release()
            admit(channel, context)
            context.fireChannelReadComplete()
            goOn(context)
            if !waiting.isEmpty { lookSoon(context) }
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        timer?.cancel()
        timer = nil
        for channel in waiting {
            limiter.release()
            channel.close(promise: nil)
        }
        waiting = []
    }

    private func admit(_ channel: any Channel, _ context: ChannelHandlerContext) {
        if case .dropped = limiter.verdict(on: channel) {
            channel.close(promise: nil)
            return
        }
        let here = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        channel.closeFuture.hop(to: context.eventLoop).whenComplete { _ in
            let (handler, context) = here.value
            handler.goOn(context)
        }
        context.fireChannelRead(wrapInboundOut(channel))
    }

    func read(context: ChannelHandlerContext) {
        isAsked = true
        goOn(context)
    }

    private func goOn(_ context: ChannelHandlerContext) {
        guard isAsked, !isPausing else { return }
        let taken = limiter.taken
        guard taken > 0 else { return }
        isAsked = false
        // More than there is room for would be closed without an answer.
        try? context.channel.syncOptions?.setOption(.maxMessagesPerRead, value: UInt(taken))
        context.read()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if !isFailing { limiter.note(error) }
        isFailing = true
        isPausing = true
        let here = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: Self.pause) {
            let (handler, context) = here.value
            handler.isPausing = false
            handler.goOn(context)
        }
    }
}
