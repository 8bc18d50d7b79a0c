import NIOCore
import NIOHTTP1

/// Watches one connection: it ends those that are too slow, and answers those that are refused.
///
/// All of it happens on the connection's event loop. There is one timer for a connection, which
/// looks at the clock every few seconds, so that a request costs no timer of its own.
final class ConnectionWatch: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = Any
    typealias InboundOut = Any

    /// Into what is read at first.
    ///
    /// A connection keeps it for as long as it stands, be it for hours and read of hardly ever;
    /// what comes in larger pieces has it grow.
    private static let reading = AdaptiveRecvByteBufferAllocator(
        minimum: 64, initial: 512, maximum: 65_536)

    private let limiter: ConnectionLimiter
    private var guest: GuestHandler?
    private var first: FirstBytes?

    init(limiter: ConnectionLimiter) {
        self.limiter = limiter
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let channel = context.channel
        let guest = GuestHandler(
            limiter: limiter, verdict: limiter.verdict(on: channel), now: context.eventLoop.pace)
        self.guest = guest
        limiter.connections.add(channel)
        try? channel.syncOptions?.setOption(.recvAllocator, value: Self.reading)
        let pipeline = context.pipeline.syncOperations
        do {
            let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
            try pipeline.addHandler(guest, position: .after(decoder))
            let first = FirstBytes(guest: guest)
            try pipeline.addHandler(first, position: .first)
            self.first = first
        } catch {
            // A connection that nobody watches is not served.
            channel.close(promise: nil)
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        guest?.end()
        // Where the connection is another protocol's from now on nothing of the watch stays.
        let pipeline = context.pipeline.syncOperations
        if limiter.makesRoom, context.channel.isActive {
            limiter.noteRequest(on: context.channel)
        }
        if let guest { pipeline.removeHandler(guest, promise: nil) }
        if let first { pipeline.removeHandler(first, promise: nil) }
        (guest, first) = (nil, nil)
        limiter.connections.remove(context.channel)
    }
}

/// Hears what comes before it is taken apart: the pieces of a head, and of the handshake of TLS.
private final class FirstBytes: ChannelInboundHandler, RemovableChannelHandler {
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

/// Sees the requests and answers of one connection, taken apart.
private final class GuestHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// How often the clock is looked at, at least and at most.
    private static let leastCheck = Duration.milliseconds(50)
    private static let mostCheck = Duration.seconds(5)
    /// How long nothing is read, after each reading, of a body whose answer has gone: what comes is
    /// dropped, and whoever sends four megabytes to be refused would keep the loop from others.
    private static let drainingPause = Duration.milliseconds(20)
    /// Requests of one connection that may wait for their answers.
    ///
    /// One reading brings up to 1,700 of them. As long as any connection has more to answer, the
    /// loop finds tasks, and reads from nobody else: fifty connections kept all others waiting for
    /// seven seconds. What programs that pipeline send together is a few.
    private static let mostUnanswered = 16

    private let limiter: ConnectionLimiter
    private let verdict: ConnectionCounts.Verdict
    private var pace: ConnectionPace
    private var timer: Scheduled<Void>?
    private var parts = SmallParts()
    /// The end of a pause in which nothing is read.
    private var pause: Scheduled<Void>?
    /// Whether it has been told that it must go, so that nothing of it is heard any more.
    private var isTold = false
    /// Whether the answer that goes out says that it is the last.
    private var isLast = false
    /// How many requests came whose answer has not gone.
    private var unanswered = 0
    /// Whether a head has come.
    private var hasAsked = false
    /// Whether nothing is read any more after the newest request.
    private var isDeaf = false
    /// Whether more requests came than may wait: those beyond are dropped, and the client asks
    /// again on another connection, as it does after the last answer of any (RFC 9112, §9.3.2).
    private var isFull = false
    /// Whether the newest request is of HTTP/1.0, whose connections end with the answer unless it
    /// was asked that they are kept.
    private var isOld = false
    private var isKept = false
    /// How often it was told that the end goes on; `nil` before the end.
    private var hours: Int?
    /// How many answers have begun.
    private var answers = 0
    /// Which of them waited for its client when it was last told that.
    private var untaken: Int?

    init(limiter: ConnectionLimiter, verdict: ConnectionCounts.Verdict, now: Duration) {
        self.limiter = limiter
        self.verdict = verdict
        pace = ConnectionPace(limiter.bounds, at: now)
        if verdict != .served { pace.end(at: now) }
    }

    func handlerAdded(context: ChannelHandlerContext) {
        limiter.noteIdle(context.channel)
        check(context)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        end()
        guard let pause else { return }
        self.pause = nil
        pause.cancel()
        context.channel.read()
    }

    func end() {
        timer?.cancel()
        timer = nil
    }

    func hear(at now: Duration) {
        pace.hear(at: now)
    }

    // MARK: What comes and goes

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isTold else { return }
        guard verdict == .served else {
            if case .head = unwrapInboundIn(data) { refuse(context) }
            return
        }
        guard !isFull else { return }
        switch unwrapInboundIn(data) {
        case .head where unanswered == Self.mostUnanswered:
            isFull = true
            return
        case .head(var head):
            if let fault = head.fault { return refuse(fault, context) }
            pace.head(at: context.eventLoop.pace)
            unanswered += 1
            if !hasAsked || limiter.makesRoom { limiter.noteRequest(on: context.channel) }
            hasAsked = true
            isDeaf = head.endsReading
            isOld = head.version.isOld
            isKept = head.isKeepAlive
            // A server ignores what HTTP/1.0 asks for there (RFC 9110, §7.8).
            guard isOld, head.headers.contains(name: "upgrade") else { break }
            head.headers.remove(name: "upgrade")
            return context.fireChannelRead(wrapInboundOut(.head(head)))
        case .body(let part): return pass(parts.add(part), context)
        case .end:
            pass(parts.take(), context)
            pace.requestEnded(at: context.eventLoop.pace)
        }
        context.fireChannelRead(data)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        pass(parts.take(), context)
        context.fireChannelReadComplete()
    }

    /// Hands parts of a body on.
    private func pass(_ parts: [ByteBuffer], _ context: ChannelHandlerContext) {
        guard !parts.isEmpty, !isTold else { return }
        let now = context.eventLoop.pace
        for part in parts {
            pace.body(part.readableBytes, at: now)
            context.fireChannelRead(wrapInboundOut(.body(part)))
        }
    }

    /// Reads on, after a while if the last reading brought a body in very many parts, or if what
    /// comes is only dropped.
    func read(context: ChannelHandlerContext) {
        guard pause == nil else { return }
        let isDrained = isTold || isFull || isLast && pace.isEnding
        let time = parts.pauseAfterReading() ?? (isDrained ? Self.drainingPause : nil)
        guard let time else { return context.read() }
        pause = context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(time)) { [self] in
            pause = nil
            context.read()
        }
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard !isTold else {
            promise?.fail(ChannelError.ioOnClosedChannel)
            return
        }
        let now = context.eventLoop.pace
        var data = data
        switch unwrapOutboundIn(data) {
        // That it may go on with its body is no answer, whose time would run while that comes.
        case .head(let head) where Self.isInformational(head): break
        case .head(var head):
            if isDeaf || isFull || isOld || hours != nil, head.status.code >= 200 {
                suit(&head)
                data = wrapOutboundOut(.head(head))
            }
            isLast = Self.saysClose(head)
            if head.headers["content-type"].contains(where: { $0.hasPrefix("text/event-stream") }) {
                pace.stream()
            }
            answers += 1
            pace.answer(0, at: now)
        case .body(let part): pace.answer(part.readableBytes, at: now)
        case .end:
            unanswered -= 1
            if unanswered == 0 { limiter.noteIdle(context.channel) }
            let written = promise ?? context.eventLoop.makePromise(of: Void.self)
            written.futureResult.assumeIsolated().whenComplete { [self] _ in
                let now = context.eventLoop.pace
                pace.answerTaken(at: now)
                // What the client sends still is dropped, while it reads the answer and goes; but
                // what came before it could know of the end is answered.
                guard isLast, hours == nil || unanswered == 0 else { return }
                pace.end(at: now)
                check(context)
                context.close(mode: .output, promise: nil)
            }
            return context.write(data, promise: written)
        }
        context.write(data, promise: promise)
    }

    /// Says in the head of an answer how its connection goes on, where the request decides that, or
    /// the relay's end.
    private func suit(_ head: inout HTTPResponseHead) {
        // At the end nobody is to send another request on the heels of the last (RFC 9112, §9.6).
        var ends = (isDeaf || isFull || hours != nil) && unanswered == 1
        if isOld {
            // HTTP/1.0 knows no chunks: what does not say its length ends with the connection.
            let isMeasured = head.headers.contains(name: "content-length")
            if !isMeasured { head.version = .http1_0 }
            ends = ends || !isMeasured || !isKept && unanswered == 1
            if !ends, !Self.saysClose(head) {
                head.headers.add(name: "Connection", value: "keep-alive")
            }
        }
        if ends, !Self.saysClose(head) { head.headers.add(name: "Connection", value: "close") }
    }

    private static func isInformational(_ head: HTTPResponseHead) -> Bool {
        (100..<200).contains(head.status.code) && head.status != .switchingProtocols
    }

    private static func saysClose(_ head: HTTPResponseHead) -> Bool {
        head.headers["connection"].contains { $0.lowercased() == "close" }
    }

    // MARK: Ending it

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is ConnectionLimiter.GiveWay {
            // What came at the same moment is answered, as the last.
            if unanswered > 0 { isDeaf = true } else { context.close(promise: nil) }
            return
        }
        guard let hour = event as? OpenConnections.LateHour else {
            if event is ChannelShouldQuiesceEvent { hours = 0 }
            return context.fireUserInboundEventTriggered(event)
        }
        // Its listener may not have been told yet, and serves it as ever.
        guard let before = hours else { return }
        hours = before + 1
        let former = untaken
        untaken = pace.isAnswering && pending(context) ?? 0 > 0 ? answers : nil
        // Who was told, and a stream that was ended before, had the time to take it since. What is
        // only being written has had none, and is the relay's to end.
        let isSlow = hour.isUrgent && untaken != nil && untaken == former
        let isLate = before > 0 && (pace.isStreamed || isSlow)
        if isTold || isLate { return context.close(promise: nil) }
        guard hour.isUrgent else { return }
        guard pace.isReceiving else {
            // What only asks, and is worked still, is ended by whoever watches for its client.
            if before > 0 { context.fireUserInboundEventTriggered(hour) }
            return
        }
        guard pace.mayBeTold else { return }
        tell(context, .serviceUnavailable, "the relay is shutting down")
    }

    /// Looks whether the client is too slow, and comes back in time.
    private func check(_ context: ChannelHandlerContext) {
        end()
        let now = context.eventLoop.pace
        if pace.isAnswering, let pending = pending(context) { pace.answerWaits(pending, at: now) }
        let deadline = pace.deadline
        if let deadline, deadline.moment <= now {
            limiter.meter.count(deadline.slowness)
            guard pace.mayBeTold, !isTold else {
                context.close(promise: nil)
                return
            }
            tell(
                context, .requestTimeout,
                "the \(deadline.slowness.rawValue) of the request came too slowly")
        }
        let next = pace.deadline.map { min($0.moment - now, Self.mostCheck) } ?? Self.mostCheck
        let pause = TimeAmount(max(next, Self.leastCheck))
        timer = context.eventLoop.assumeIsolated().scheduleTask(in: pause) { [self] in
            check(context)
        }
    }

    /// The bytes that the system has not taken.
    private func pending(_ context: ChannelHandlerContext) -> Int? {
        try? context.channel.syncOptions?.getOption(ChannelOptions.bufferedWritableBytes)
    }

    private func refuse(_ context: ChannelHandlerContext) {
        let reason =
            verdict.refusal == .address
            ? "your address has as many connections as one may have"
            : "the relay has as many connections as it takes"
        tell(context, .serviceUnavailable, reason)
    }

    private func refuse(_ fault: String, _ context: ChannelHandlerContext) {
        // Behind requests that are being answered there is no place for an answer.
        guard unanswered == 0 else { return context.close(promise: nil) }
        tell(context, .badRequest, fault)
    }

    /// Answers in the relay's place, and closes: first its own side, so that the client can read
    /// the answer, and soon all of it.
    private func tell(
        _ context: ChannelHandlerContext, _ status: HTTPResponseStatus, _ reason: String
    ) {
        isTold = true
        pace.end(at: context.eventLoop.pace)
        let answer = UnroutedAnswer(
            status: Int(status.code), reason: reason, uuid: limiter.identifiers.uuid())
        let head = HTTPResponseHead(
            version: .http1_1, status: status, headers: HTTPHeaders(answer.headers))
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.write(
            wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: answer.body)))), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        context.close(mode: .output, promise: nil)
    }
}

extension EventLoop {
    /// The moment, by the loop's own clock.
    var pace: Duration { .nanoseconds(Int64(clamping: now.uptimeNanoseconds)) }
}
