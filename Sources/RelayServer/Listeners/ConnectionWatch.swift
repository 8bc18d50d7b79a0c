import NIOCore
import NIOHTTP1

/// Watches one connection: closes those that are too slow, and answers those that are refused.
///
/// All of it happens on the connection's event loop. One timer for each connection checks the clock
/// every few seconds; requests need none of their own.
final class ConnectionWatch: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = Any
    typealias InboundOut = Any

    /// The buffer size for reading.
    ///
    /// A connection keeps its buffer while it is open, even for hours without traffic; large pieces
    /// make it grow.
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
            // A connection that cannot be watched is not served.
            channel.close(promise: nil)
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        guest?.end()
        // If the connection changes to another protocol, all handlers of the watch are removed.
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

/// Sees the decoded requests and answers of one connection.
final class GuestHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// The shortest and the longest time between two checks of the clock.
    private static let leastCheck = Duration.milliseconds(50)
    private static let mostCheck = Duration.seconds(5)
    /// The pause after each read of a body whose answer was sent already; its bytes are dropped.
    ///
    /// Without it, a refused client that sends four megabytes would keep the event loop busy.
    private static let drainingPause = Duration.milliseconds(20)
    /// The maximum number of requests of one connection that wait for their answers.
    ///
    /// One read can bring 1,700 of them. While any connection has more to answer, the event loop
    /// finds tasks and reads from no other connection: fifty such connections kept all others
    /// waiting for seven seconds. Programs that pipeline send a few requests together.
    private static let mostUnanswered = 16

    private let limiter: ConnectionLimiter
    private let verdict: ConnectionCounts.Verdict
    private var pace: ConnectionPace
    private var timer: Scheduled<Void>?
    private var parts = SmallParts()
    /// The end of a pause in which nothing is read.
    private var pause: Scheduled<Void>?
    /// Whether the client was told that the connection ends, so that its data is ignored.
    private var isTold = false
    /// Whether the current answer says that it is the last.
    private var isLast = false
    /// The number of requests whose answer was not sent.
    private var unanswered = 0
    /// Whether a head has arrived.
    private var hasAsked = false
    /// Whether nothing is read after the newest request.
    private var isDeaf = false
    /// Whether more requests came than may wait.
    ///
    /// Further ones are dropped, and the client repeats them on another connection, as it does
    /// after the last answer of a connection (RFC 9112, §9.3.2).
    private var isFull = false
    /// Whether the newest request is HTTP/1.0, whose connection ends with the answer by default.
    private var isOld = false
    private var isKept = false
    /// How often it was told that the relay is ending; `nil` before that.
    private var hours: Int?
    /// The number of answers that have begun.
    private var answers = 0
    /// The answer that the client had not received when the connection was last told of the end.
    private var untaken: Int?
    private var answerBytes = AnswerBytes()

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
            head.takeHostOfTarget()
            pace.head(at: context.eventLoop.pace)
            unanswered += 1
            if !hasAsked || limiter.makesRoom { limiter.noteRequest(on: context.channel) }
            hasAsked = true
            isDeaf = head.endsReading
            isOld = head.version.isOld
            isKept = head.isKeepAlive
            // A server ignores an upgrade in HTTP/1.0 (RFC 9110, §7.8).
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

    /// Passes parts of a body on.
    private func pass(_ parts: [ByteBuffer], _ context: ChannelHandlerContext) {
        guard !parts.isEmpty, !isTold else { return }
        let now = context.eventLoop.pace
        for part in parts {
            pace.body(part.readableBytes, at: now)
            context.fireChannelRead(wrapInboundOut(.body(part)))
        }
    }

    /// Reads on, after a pause if a body came in very many parts or the data is only dropped.
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
        // Unlike an answer, a `100 Continue` starts no clock while the body arrives.
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
        case .body(let part):
            pace.answer(part.readableBytes, at: now)
            if !pace.isStreamed { note(answerBytes.add(part.readableBytes), context) }
        case .end:
            unanswered -= 1
            if unanswered == 0 { limiter.noteIdle(context.channel) }
            let written = promise ?? context.eventLoop.makePromise(of: Void.self)
            let bytes = answerBytes.end()
            written.futureResult.assumeIsolated().whenComplete { [self] _ in
                let now = context.eventLoop.pace
                pace.answerTaken(at: now)
                note(answerBytes.take(bytes), context)
                // What still arrives is dropped while the client reads the answer, but requests
                // that it sent before it could know of the end are answered.
                guard isLast, hours == nil || unanswered == 0 else { return }
                pace.end(at: now)
                check(context)
                context.close(mode: .output, promise: nil)
            }
            return context.write(data, promise: written)
        }
        context.write(data, promise: promise)
    }

    /// Notes how many bytes of answers are untaken; `nil` if they are too few to count.
    ///
    /// What streams leave untaken is counted with their clients.
    private func note(_ untaken: Int?, _ context: ChannelHandlerContext) {
        guard let untaken else { return }
        limiter.noteUntaken(untaken, on: context.channel)
    }

    /// Sets in an answer's head how its connection continues after this request or at the end.
    private func suit(_ head: inout HTTPResponseHead) {
        // At the end, the client must not send another request right after the last (RFC 9112,
        // §9.6).
        var ends = (isDeaf || isFull || hours != nil) && unanswered == 1
        if isOld {
            // HTTP/1.0 has no chunks: an answer without a length ends with the connection.
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
            // A request that arrived at the same moment is answered as the last one.
            if unanswered > 0 { isDeaf = true } else { context.close(promise: nil) }
            return
        }
        guard let hour = event as? OpenConnections.LateHour else {
            if event is ChannelShouldQuiesceEvent { hours = 0 }
            return context.fireUserInboundEventTriggered(event)
        }
        // Its listener may not know of the end yet, and serves it as usual.
        guard let before = hours else { return }
        hours = before + 1
        let former = untaken
        untaken = pace.isAnswering && pending(context) ?? 0 > 0 ? answers : nil
        // A client that was told of the end, or of the end of its stream, had time to receive the
        // answer since. One that is just being written must be completed.
        let isSlow = hour.isUrgent && untaken != nil && untaken == former
        let isLate = before > 0 && (pace.isStreamed || isSlow)
        if isTold || isLate { return context.close(promise: nil) }
        guard hour.isUrgent else { return }
        guard pace.isReceiving else {
            // A request that is still being handled is ended by the handler that watches for its
            // client's departure.
            if before > 0 { context.fireUserInboundEventTriggered(hour) }
            return
        }
        guard pace.mayBeTold else { return }
        tell(context, .serviceUnavailable, "the relay is shutting down")
    }

    /// Checks whether the client is too slow, and schedules the next check.
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
                "the \(deadline.slowness.rawValue) of the request arrived too slowly")
        }
        let next = pace.deadline.map { min($0.moment - now, Self.mostCheck) } ?? Self.mostCheck
        let pause = TimeAmount(max(next, Self.leastCheck))
        timer = context.eventLoop.assumeIsolated().scheduleTask(in: pause) { [self] in
            check(context)
        }
    }

    /// Returns the number of bytes that the system has not sent.
    private func pending(_ context: ChannelHandlerContext) -> Int? {
        try? context.channel.syncOptions?.getOption(ChannelOptions.bufferedWritableBytes)
    }

    private func refuse(_ context: ChannelHandlerContext) {
        let reason =
            verdict.refusal == .address
            ? "your address already has the maximum number of connections"
            : "the relay already has the maximum number of connections"
        tell(context, .serviceUnavailable, reason)
    }

    private func refuse(_ fault: String, _ context: ChannelHandlerContext) {
        // After requests that are still being answered, this answer could not be matched.
        guard unanswered == 0 else { return context.close(promise: nil) }
        tell(context, .badRequest, fault)
    }

    /// Answers a head that is too long, which the decoder gives up.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard case .headerOverflow? = error as? HTTPParserError, unanswered == 0, !isTold else {
            return context.fireErrorCaught(error)
        }
        tell(
            context, .requestHeaderFieldsTooLarge,
            "the header fields of the request are too long, or too many")
    }

    /// Answers in place of the routes; closes the sending side now, and the rest soon.
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
    /// The present moment of the loop's own clock.
    var pace: Duration { .nanoseconds(Int64(clamping: now.uptimeNanoseconds)) }
}
