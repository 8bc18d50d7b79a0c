import Live
import NIOCore
import RelayModel

/// One WebSocket connection, on its event loop.
///
/// What comes in is worked in order, one frame at a time. What goes out is written while the
/// connection takes it; what it does not take waits, results as they are and not as frames. A
/// client that does not take what its groups are told lags: nothing more is queued, and once it has
/// read what was under way it is told from the log what happened since.
final class LiveSocket: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// What a connection may not have taken before its client lags, and when it goes on.
    static let marks = ChannelOptions.Types.WriteBufferWaterMark(low: 64 * 1024, high: 256 * 1024)
    /// What is written in one go, before other connections of the loop have their turn.
    private static let bytesAtATime = 1024 * 1024
    /// Bytes of frames that wait while one is worked.
    private static let inboxBytes = 2 * LiveSession.frameBytes

    let number: UInt64
    /// Where it stands in the lists of its groups.
    var places: [UInt32: Int] = [:]
    let session: LiveSession
    let access: LiveAccess
    private let hub: LoopHub
    var context: ChannelHandlerContext?
    private var direct = DirectWrites()
    var messages = WebSocketReader(most: LiveSession.frameBytes)
    /// Bytes that came while it was not known whose they were.
    private var strange = 0
    /// What the last ping of what came brought with it.
    private var pinged: [UInt8]?
    var inbox: [[UInt8]] = []
    /// The bytes of the frame that is worked.
    var working: Int?
    /// What has been taken for all of these.
    var held = FrameRoom.Part()
    var outbox = LiveOutbox<ByteBuffer>(LoopSockets.wire, size: { $0.readableBytes })
    /// How much of that waits, and for whom, as far as the others know.
    var noted: (party: LiveBacklog.Party, steps: Int)?
    private var isWriting = false
    private var isKnown = false
    var isClosing = false
    private var isTouched = false
    /// Who looks, once it was asked and known.
    var known: Looker?
    /// When the client fell behind that has been told nothing of changes since.
    var lagging: LiveLag?
    /// How often it fell behind.
    private var lags = 0
    private var taking: LiveTaking
    private var isCatchingUp = false
    private var pulse: LivePulse
    private let opened: NIODeadline
    private var notice = TokenNotice()
    /// What it proves for its device, once that is known.
    var proof: LiveProof?
    private var allowance: FrameAllowance

    init(_ access: LiveAccess, _ session: LiveSession, at hub: LoopHub) {
        self.access = access
        self.session = session
        self.hub = hub
        number = session.number
        let now = hub.loop.now
        opened = now
        taking = LiveTaking(at: now)
        pulse = LivePulse(at: now)
        allowance = FrameAllowance(at: now)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        direct = DirectWrites(of: context)
        hub.add(self)
        context.read()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        endProof()
        forgetWaiting()
        hub.remove(self)
        self.context = nil
        session.end()
    }

    /// What asked for more by itself has left with HTTP.
    func channelReadComplete(context: ChannelHandlerContext) {
        context.read()
    }

    func channelInactive(context: ChannelHandlerContext) {
        endProof()
        forgetWaiting()
        hub.remove(self)
        session.end()
        context.fireChannelInactive()
    }

    // MARK: What comes

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data)
        pulse.heard = hub.loop.now
        if !isKnown {
            strange += bytes.readableBytes
            guard strange <= StrangerBytes.most else { return close(.tooLong) }
        }
        // Taken apart first, and then taken: a write that fails has the channel read what is left
        // of the connection in the middle of it, so that this is called again.
        var came: [WebSocketReader.Event] = []
        var violation: WebSocketReader.Violation?
        do throws(WebSocketReader.Violation) {
            try messages.read(Array(bytes.readableBytesView)) { event in
                came.append(event)
                return true
            }
        } catch {
            violation = error
        }
        for event in came { take(event) }
        if let violation { close(LiveEnd(violation)) }
        // Of many pings the last is answered (RFC 6455, §5.5.3): each answer is a write, and no
        // other connection of the loop has its turn meanwhile.
        if let pinged, !isClosing { write(LoopSockets.control(0x8A, pinged)) }
        pinged = nil
        noteHeld()
    }

    private func take(_ event: WebSocketReader.Event) {
        guard !isClosing else {
            // The client has heard that it is over.
            if case .close = event { context?.close(promise: nil) }
            return
        }
        switch event {
        case .text(let text): take(text)
        case .ping(let bytes): pinged = bytes
        case .pong(let bytes): proof?.take(pong: bytes)
        case .close(let reason): answerClose(reason)
        }
    }

    private func take(_ text: [UInt8]) {
        guard allowance.take(at: pulse.heard) else {
            return close(
                LiveEnd(
                    .tooMany,
                    APIError(
                        .throttled, "more than \(FrameAllowance.perSecond) frames in a second",
                        retryAfter: 5)))
        }
        guard inbox.reduce(text.count, { $0 + $1.count }) <= Self.inboxBytes else {
            return close(
                LiveEnd(
                    .tooMany,
                    APIError(
                        .throttled, "more than \(Self.inboxBytes) bytes of frames at once",
                        retryAfter: 5)))
        }
        inbox.append(text)
        work()
    }

    /// Works what came, one after the other, off the loop.
    private func work() {
        guard working == nil, !isClosing, !inbox.isEmpty, let context else { return }
        let text = inbox.removeFirst()
        working = text.count
        let session = session
        let here = NIOLoopBound(self, eventLoop: context.eventLoop)
        let loop = context.eventLoop
        Task {
            var end: LiveEnd?
            do throws(LiveEnd) { try await session.take(text) } catch { end = error }
            loop.execute { [end] in here.value.worked(end) }
        }
    }

    private func worked(_ end: LiveEnd?) {
        working = nil
        if let identity = session.identity {
            // Whoever is known may send larger frames.
            isKnown = true
            beginProof(identity)
        }
        if let end { close(end) } else { work() }
        noteHeld()
    }

    private func answerClose(_ reason: [UInt8]) {
        write(LoopSockets.control(0x88, WebSocketReader.answer(toClose: reason)))
        isClosing = true
        forgetWaiting()
        context?.close(promise: nil)
    }

    // MARK: What goes

    func queue(_ bytes: ByteBuffer) {
        guard !isClosing else { return }
        outbox.append(bytes)
    }

    /// Sends a frame of the protocol's own, past what waits.
    private func write(_ control: ByteBuffer) {
        direct.noteQueue()
        context?.writeAndFlush(wrapOutboundOut(control), promise: nil)
        bound()
    }

    /// Writes what waits, as far as the connection takes it.
    func flush() {
        guard !isWriting, !isClosing, !outbox.isEmpty, let context else { return }
        isWriting = true
        var bytes = 0
        while context.channel.isWritable, bytes < Self.bytesAtATime, let piece = outbox.next() {
            bytes += piece.readableBytes
            context.write(wrapOutboundOut(piece), promise: nil)
        }
        if bytes > 0 {
            pulse.spoke = hub.loop.now
            taking.take(at: pulse.spoke)
            direct.noteQueue()
            context.flush()
        }
        isWriting = false
        if context.channel.isWritable, !outbox.isEmpty {
            // Others have their turn.
            let here = NIOLoopBound(self, eventLoop: context.eventLoop)
            context.eventLoop.execute { here.value.flush() }
        }
        bound()
        noteWaiting()
        catchUpIfRead()
    }

    /// Queues what the client's groups are told of a change; says whether it is the first since the
    /// last `at`.
    func take(_ bytes: ByteBuffer, of change: LogPosition?) -> Bool {
        guard lagging == nil, !isClosing else { return false }
        queue(bytes)
        if let change { note(told: [change]) }
        guard !isTouched else { return false }
        isTouched = true
        return true
    }

    /// Has the next `at` sent.
    func touch() { isTouched = true }

    /// Closes what was queued, and sends it.
    func finish(_ at: ByteBuffer, _ position: LogPosition) {
        guard isTouched else { return }
        // Also where the client lags and is told nothing: what it is told later is closed anew.
        isTouched = false
        tell(at, position)
    }

    /// Sends what ends with the `at` of a position, and tells of these changes.
    func tell(_ bytes: ByteBuffer, _ position: LogPosition, of changes: [LogPosition] = []) {
        guard lagging == nil, !isClosing, let context else { return }
        defer { note(told: changes) }
        if outbox.isEmpty, !isWriting, context.channel.isWritable {
            // Nothing waits, which is so for nearly all of those who are told the same.
            pulse.spoke = hub.turn
            taking.take(at: pulse.spoke)
            if let rest = direct.send(bytes, of: context.channel) {
                context.writeAndFlush(wrapOutboundOut(rest), promise: nil)
            }
            if context.channel.isWritable { return }
        } else {
            queue(bytes)
            flush()
        }
        guard !context.channel.isWritable || !outbox.isEmpty else { return }
        lags += 1
        let lag = LiveLag(position, count: lags)
        lagging = lag
        fallBehind(at: lag)
    }

    /// Ends a client for whom too much is queued.
    private func bound() {
        // What the connection still takes is within bounds.
        guard let context, !isClosing, !context.channel.isWritable || outbox.isOverfull
        else { return }
        if outbox.isOverfull || bytesUnderWay > Self.inboxBytes + Self.bytesAtATime {
            close(Self.slow)
        }
    }

    static let slow = LiveEnd(
        .slow,
        APIError(
            .throttled, "the client does not read what it is sent", retryAfter: 1))

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable {
            flush()
            catchUpIfRead()
        }
        context.fireChannelWritabilityChanged()
    }

    /// Once a client that fell behind has read what was under way, it is told what happened since.
    private func catchUpIfRead() {
        guard let lagging, !isCatchingUp, outbox.isEmpty, context?.channel.isWritable == true else {
            return
        }
        isCatchingUp = true
        let engine = access.engine
        let number = number
        Task { await engine.catchUp(number, from: lagging) }
    }

    /// The engine tells what happened since.
    func catchUp() {
        lagging = nil
        isCatchingUp = false
    }

    // MARK: Time

    /// Looks at the clock, every few seconds.
    ///
    /// - Returns: whether it is time to say how far everything has been told.
    func look(at now: NIODeadline, _ moment: Timestamp) -> Bool {
        guard !isClosing else { return false }
        guard let identity = session.identity else {
            // Not of one whose "hello" is worked: of thousands at once it may take that long.
            if working == nil, now - opened > TimeAmount(LiveTimes.hello) {
                close(
                    LiveEnd(.noHello, APIError(.badRequest, "no \"hello\" in time")))
            }
            return false
        }
        weighWaiting()
        guard !isClosing else { return false }
        let isWaiting = lagging != nil || !outbox.isEmpty
        if isWaiting || pulse.isQuiet(at: now) {
            // Who reads lives, though pings come behind what it reads.
            if taking.look(at: now, bytesUnderWay) { pulse.heard = now }
        } else {
            taking.forget()
        }
        if isWaiting, !isCatchingUp, taking.isStuck(at: now) {
            close(Self.slow)
            return false
        }
        if pulse.isGone(at: now) {
            close(LiveEnd(.slow, APIError(.throttled, "nothing was heard", retryAfter: 1)))
            return false
        }
        if let endsAt = identity.endsAt {
            if endsAt <= moment {
                close(.tokenEnded)
                return false
            }
            if let seconds = notice.seconds(until: endsAt, at: moment) {
                send(LiveFrame(["type": "tokenExpires", "seconds": .integer(seconds)]))
                flush()
            }
        }
        let isUntold = lagging == nil && pulse.isUntold(at: now)
        if isUntold || pulse.isQuiet(at: now) { write(LoopSockets.control(0x89, [])) }
        if isUntold { pulse.spoke = now }
        return isUntold
    }

    /// Whose connection it is, for those who end some.
    var identity: LiveIdentity? { session.identity }

    /// Says goodbye and closes, soon wholly.
    func close(_ end: LiveEnd) {
        guard let context, !isClosing else { return }
        isClosing = true
        endProof()
        access.count(end)
        inbox = []
        forgetWaiting()
        noteHeld()
        let bye = end.bye(uuid: access.identifiers.uuid())
        context.write(wrapOutboundOut(LoopSockets.wire(bye)), promise: nil)
        let code = end.code.rawValue
        let reason = Array(end.error.reason.utf8.prefix(120))
        let payload =
            [UInt8(code >> 8), UInt8(code & 0xFF)]
            + (String(utf8: reason) == nil ? [] : reason)
        context.writeAndFlush(wrapOutboundOut(LoopSockets.control(0x88, payload)), promise: nil)
        let here = NIOLoopBound(context, eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: .seconds(2)) { here.value.close(promise: nil) }
        session.end()
        hub.remove(self)
    }
}
