import Live
import NIOCore
import RelayModel

/// One WebSocket connection, on its event loop.
///
/// Received frames are worked in order, one at a time. Frames are written while the connection
/// takes them, and the rest waits; results wait as they are, before their frames are made. A client
/// that does not take its groups' frames lags: nothing more is queued for it, and once it has read
/// what was under way, it is sent from the log what happened since.
final class LiveSocket: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The bytes in the connection above which its client lags, and below which it goes on.
    static let marks = ChannelOptions.Types.WriteBufferWaterMark(low: 64 * 1024, high: 256 * 1024)
    /// The bytes that are written in one go, before other connections of the loop have their turn.
    private static let bytesAtATime = 1024 * 1024
    /// The bytes of received frames that may wait while one is worked.
    private static let inboxBytes = 2 * LiveSession.frameBytes

    let number: UInt64
    /// Its indices in the member lists of its groups.
    var places: [UInt32: Int] = [:]
    let session: LiveSession
    let access: LiveAccess
    private let hub: LoopHub
    var context: ChannelHandlerContext?
    private(set) var direct = DirectWrites()
    var messages = WebSocketReader(most: LiveSession.frameBytes)
    /// The bytes received before the client was authenticated.
    private var strange = 0
    /// The payload of the last ping in what was just received.
    private var pinged: [UInt8]?
    var inbox: [[UInt8]] = []
    /// The bytes of the frame that is being worked.
    var working: Int?
    /// The room taken for all of these.
    var held = FrameRoom.Part()
    var outbox = LiveOutbox<ByteBuffer>(LoopSockets.wire, size: { $0.readableBytes })
    /// The amount in the outbox as last reported, and for whom.
    var noted: (party: LiveBacklog.Party, steps: Int)?
    /// The bytes of frames for this client alone that were handed to a connection with no room.
    var ownUnderWay = 0
    /// The bytes of control frames that were handed to it meanwhile.
    var controlsUnderWay = 0
    private var isWriting = false
    private var isKnown = false
    var isClosing = false
    private var isTouched = false
    /// The reader and device, once they are known.
    var known: Looker?
    /// When the client fell behind; it is sent no changes since then.
    var lagging: LiveLag?
    private var lags = 0
    private var taking: LiveTaking
    private var isCatchingUp = false
    private var pulse: LivePulse
    private let opened: NIODeadline
    private var notice = TokenNotice()
    /// The proof for the client's device, once that is known.
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

    /// Reads on; the handler that did this has been removed with HTTP.
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
        // All events are collected before any is handled: a write that fails makes the channel read
        // the rest of the connection, so that this method is called again in the middle of it.
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
        // Only the last of several pings is answered, as RFC 6455, §5.5.3 allows: each answer is a
        // write, during which no other connection of the loop has its turn.
        if let pinged, !isClosing { write(LoopSockets.control(0x8A, pinged)) }
        pinged = nil
        noteHeld()
    }

    private func take(_ event: WebSocketReader.Event) {
        guard !isClosing else {
            // The client has answered the close.
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

    /// Works the received frames one after the other, off the loop.
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
            // An authenticated client may send larger frames.
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

    /// Sends a control frame, ahead of what waits.
    private func write(_ control: ByteBuffer) {
        direct.noteQueue()
        controlsUnderWay += control.readableBytes
        context?.writeAndFlush(wrapOutboundOut(control), promise: nil)
        bound()
    }

    /// Writes what waits, as far as the connection takes it.
    func flush() {
        guard !isWriting, !isClosing, !outbox.isEmpty, let context else { return }
        isWriting = true
        var bytes = 0
        let own = outbox.ownBytes
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
        ownUnderWay = context.channel.isWritable ? 0 : ownUnderWay + own - outbox.ownBytes
        if context.channel.isWritable, !outbox.isEmpty {
            // Other connections have their turn first.
            let here = NIOLoopBound(self, eventLoop: context.eventLoop)
            context.eventLoop.execute { here.value.flush() }
        }
        bound()
        noteWaiting()
        catchUpIfRead()
    }

    /// Queues a frame for a group of the client; returns whether it is the first one since the last
    /// `at` frame.
    func take(_ bytes: ByteBuffer, of change: LogPosition?) -> Bool {
        guard lagging == nil, !isClosing else { return false }
        queue(bytes)
        if let change { note(told: [change]) }
        guard !isTouched else { return false }
        isTouched = true
        return true
    }

    /// Makes the next `at` frame be sent.
    func touch() { isTouched = true }

    /// Sends what was queued, closed by an `at` frame.
    func finish(_ at: ByteBuffer, _ position: LogPosition) {
        guard isTouched else { return }
        // Also if the client lags: what it is sent later is closed by another `at` frame.
        isTouched = false
        tell(at, position)
    }

    /// Sends bytes that end with the `at` frame of a position, and that tell of these changes.
    func tell(_ bytes: ByteBuffer, _ position: LogPosition, of changes: [LogPosition] = []) {
        guard lagging == nil, !isClosing, let context else { return }
        defer { note(told: changes) }
        if outbox.isEmpty, !isWriting, context.channel.isWritable {
            // Nothing waits, as for nearly all members of a large group.
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
        noteWaiting()
        fallBehind(at: lag)
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable {
            ownUnderWay = 0
            flush()
            noteWaiting()
            catchUpIfRead()
        }
        context.fireChannelWritabilityChanged()
    }

    /// Asks the engine to catch up once a client that fell behind has read what was under way.
    private func catchUpIfRead() {
        guard let lagging, !isCatchingUp, outbox.isEmpty, context?.channel.isWritable == true else {
            return
        }
        isCatchingUp = true
        let engine = access.engine
        let number = number
        Task { await engine.catchUp(number, from: lagging) }
    }

    /// Notes that the engine is sending what happened since the client fell behind.
    func catchUp() {
        lagging = nil
        isCatchingUp = false
    }

    // MARK: Time

    /// Does the periodic work of a connection, every few seconds.
    ///
    /// - Returns: Whether it is time to tell the client how far everything has been sent.
    func look(at now: NIODeadline, _ moment: Timestamp) -> Bool {
        guard !isClosing else { return false }
        guard let identity = session.identity else {
            // A `hello` that is being worked is no reason: among thousands at once it may take
            // longer.
            if working == nil, now - opened > TimeAmount(LiveTimes.hello) {
                close(
                    LiveEnd(.noHello, APIError(.badRequest, "no \"hello\" came in time")))
            }
            return false
        }
        weighWaiting()
        guard !isClosing else { return false }
        let isWaiting = lagging != nil || !outbox.isEmpty || ownUnderWay > 0
        if isWaiting || pulse.isQuiet(at: now) {
            // A client that reads is alive, although pings wait behind what it reads.
            if taking.look(at: now, bytesUnderWay) { pulse.heard = now }
        } else {
            taking.forget()
        }
        if isWaiting, !isCatchingUp, taking.isStuck(at: now) {
            close(Self.slow)
            return false
        }
        if pulse.isGone(at: now) {
            close(
                LiveEnd(.slow, APIError(.throttled, "nothing came from the client", retryAfter: 1)))
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

    /// The identity of the client.
    var identity: LiveIdentity? { session.identity }

    /// Sends the last frame and a close frame; the connection is closed two seconds later at the
    /// latest.
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
