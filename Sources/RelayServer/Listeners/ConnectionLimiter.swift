import Logging
import NIOCore
import Synchronization

/// Lets connections into one listener as far as there is room, and never lets the listener fall.
///
/// Concurrency: a lock around the counts; nothing is called while it is held. Whoever is let in is
/// noted when it is taken from the system's line, on the listener's event loop, before its own
/// event loop knows of it.
final class ConnectionLimiter: Sendable {
    private struct Guest {
        let verdict: ConnectionCounts.Verdict
        let address: ClientAddress?
        let channel: any Channel
        var hasAsked = false
    }

    /// Says to a connection that another one has its place.
    struct GiveWay: Sendable {}

    private struct State {
        var counts: ConnectionCounts
        var guests: [ObjectIdentifier: Guest] = [:]
        var idle = IdleConnections<ObjectIdentifier>()
        var wasFull = false

        /// Takes one that waits for a request from those who are counted, where a newcomer from
        /// `address` needs its place.
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

    /// How many connections may stand in the system's line, if `net.core.somaxconn` is not less:
    /// when a relay comes back all its clients do, and who finds the line full tries again after
    /// one, two, four seconds, and so on for minutes.
    static let backlog = 4096
    /// How many are taken from the line at a time; in between, the event loop serves the others.
    private static let takenTogether = 16

    private let state: Mutex<State>
    private let proxies: TrustedProxies
    private let logger: Logger
    let bounds: ConnectionPace.Bounds
    let meter: ListenerMeter
    let connections: OpenConnections
    let identifiers: RandomIdentifiers
    let name: String
    /// Whether those that wait for a request give way, and are to be noted.
    let makesRoom: Bool

    init(
        _ name: String, _ counts: ConnectionCounts.Bounds, _ bounds: ConnectionPace.Bounds,
        proxies: TrustedProxies, connections: OpenConnections, meter: ListenerMeter,
        identifiers: RandomIdentifiers, logger: Logger
    ) {
        self.name = name
        makesRoom = counts.makesRoom
        state = Mutex(State(counts: ConnectionCounts(counts)))
        self.identifiers = identifiers
        self.bounds = bounds
        self.proxies = proxies
        self.connections = connections
        self.meter = meter
        self.logger = logger
    }

    /// How many are to be taken from the system's line now; none where there is no room.
    var taken: Int { min(state.withLock { $0.counts.room }, Self.takenTogether) }

    /// Whether a newcomer waits before its verdict.
    func waits(_ channel: any Channel) -> Bool {
        let (address, now) = (address(of: channel), channel.eventLoop.pace)
        return state.withLock { $0.counts.waits(from: address, at: now) }
    }

    /// Notes that a newcomer waits.
    ///
    /// - Returns: Whether the one that has waited longest is to be dropped.
    func hold() -> Bool {
        let isFull = state.withLock { $0.counts.hold() }
        if isFull { meter.count(.silent) }
        return isFull
    }

    /// Notes that a newcomer waits no more.
    func release() {
        state.withLock { $0.counts.release() }
    }

    /// Whose a connection is; a proxy brings those of many.
    private func address(of channel: any Channel) -> ClientAddress? {
        ClientAddress(channel.remoteAddress).flatMap { proxies.contains($0) ? nil : $0.origin }
    }

    /// Decides on a newcomer, once: whoever asks again is told the same.
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
                "a listener is full, and refuses newcomers",
                metadata: ["listener": "\(name)", "connections": .stringConvertible(served)])
        }
        if let refusal = verdict.refusal { meter.count(refusal) } else { show() }
        return verdict
    }

    /// Notes that a connection has brought the head of a request.
    func noteRequest(on channel: any Channel) {
        let id = ObjectIdentifier(channel)
        state.withLock { state in
            state.guests[id]?.hasAsked = true
            state.idle.remove(id)
        }
    }

    /// Notes that a connection that is watched has no request.
    func noteIdle(_ channel: any Channel) {
        guard makesRoom else { return }
        let id = ObjectIdentifier(channel)
        state.withLock { state in
            guard let guest = state.guests[id], guest.verdict == .served else { return }
            state.idle.add(id, from: guest.address, asked: guest.hasAsked)
        }
    }

    private func leave(_ channel: any Channel) {
        let isKnown = state.withLock { state in
            state.idle.remove(ObjectIdentifier(channel))
            guard let guest = state.guests.removeValue(forKey: ObjectIdentifier(channel)) else {
                return false
            }
            state.counts.leave(
                guest.verdict, from: guest.address, asked: guest.hasAsked,
                at: channel.eventLoop.pace)
            // Said again only after it was far from full, so that nobody fills the log by coming
            // and going.
            let bound = state.counts.bounds.connections
            if state.counts.served <= bound - bound / 4 { state.wasFull = false }
            return true
        }
        if isKnown { show() }
    }

    /// Shows how many are served.
    private func show() {
        meter.show { state.withLock { $0.counts.served } }
    }

    /// Takes its place at the listening socket.
    func stand(at listener: any Channel) async {
        do {
            try await listener.eventLoop.submit { [self] in
                try listener.pipeline.syncOperations.addHandler(
                    AcceptHandler(limiter: self), position: .first)
                try listener.syncOptions?.setOption(
                    .maxMessagesPerRead, value: UInt(Self.takenTogether))
            }.get()
        } catch {
            // The listener was closed at once: there is nothing to keep.
            logger.debug("a listener without limiter", metadata: ["reason": "\(error)"])
        }
    }

    /// What watches a new connection; one for each.
    func watch() -> any RemovableChannelHandler {
        ConnectionWatch(limiter: self)
    }

    /// Says that the system could not hand over a connection.
    func note(_ error: any Error) {
        meter.countFailure()
        logger.warning(
            "a connection could not be taken",
            metadata: ["listener": "\(name)", "reason": "\(error)"])
    }
}

/// Stands at the listening socket, between the system's line and everybody else.
///
/// Hummingbird and NIO give up a listener on the first error that reaches them, and drop what was
/// taken and not yet worked, which ends the process by a trap. So none reaches them.
private final class AcceptHandler: ChannelDuplexHandler {
    typealias InboundIn = any Channel
    typealias InboundOut = any Channel
    typealias OutboundIn = Never
    typealias OutboundOut = Never

    /// How long nobody is taken after the system could not hand over a connection: it says so again
    /// at once for as long as there is no room for one.
    private static let pause = TimeAmount.milliseconds(100)

    /// In which time one of those who wait is looked at.
    ///
    /// It is quicker than they may come, because of a crowd that has gone hundreds stand before
    /// those who ask.
    private static let patience = TimeAmount.nanoseconds(1_000_000_000 / 512)

    private let limiter: ConnectionLimiter
    private var isPausing = false
    private var isFailing = false
    private var isAsked = false
    /// Newcomers who wait to be looked at, in their order.
    private var waiting: CircularBuffer<any Channel> = []
    private var timer: Scheduled<Void>?

    init(limiter: ConnectionLimiter) {
        self.limiter = limiter
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        isFailing = false
        let channel = unwrapInboundIn(data)
        guard limiter.waits(channel) else { return admit(channel, context) }
        // Whoever has waited longest may have gone, of which nothing is heard here.
        if limiter.hold() { waiting.removeFirst().close(promise: nil) }
        waiting.append(channel)
        if timer == nil { lookSoon(context) }
    }

    /// Looks at the one that has waited longest, and then at the next.
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
        // More than there is room for would be closed without a word.
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
