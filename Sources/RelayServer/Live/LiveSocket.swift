import Live
import NIOCore
import NIOWebSocket
import RelayModel

/// One WebSocket connection, on its event loop.
///
/// What comes in is worked in order, one frame at a time. What goes out is bounded by what the
/// connection has not taken: beyond that the client lags, nothing more is queued, and once it has
/// read what was under way it is told from the log what happened since.
final class LiveSocket: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = WebSocketFrame
    typealias OutboundOut = ByteBuffer

    /// What a connection may not have taken before its client lags, and when it goes on.
    static let marks = ChannelOptions.Types.WriteBufferWaterMark(low: 64 * 1024, high: 256 * 1024)
    /// What it may not have taken in all: results are sent whole.
    private static let mostPending = 32 * 1024 * 1024
    /// Frames of a client in a second, and at once.
    private static let framesPerSecond = 20
    private static let framesAtOnce = 100

    let number: UInt64
    /// Where it stands in the lists of its groups.
    var places: [UInt32: Int] = [:]
    private let session: LiveSession
    private let door: LiveDoor
    private let hub: LoopHub
    private var context: ChannelHandlerContext?
    private var message: ByteBuffer?
    private var inbox: [[UInt8]] = []
    private var isWorking = false
    private var isClosing = false
    private var isTouched = false
    private(set) var reader = LiveReader.server
    private(set) var device: DeviceID?
    private var lastAt = LogPosition.start
    private var lagging: (from: LogPosition, since: NIODeadline)?
    private var isCatchingUp = false
    private var heard: NIODeadline
    private var spoke: NIODeadline
    private let opened: NIODeadline
    private var isNoticed = false
    private var allowance = LiveSocket.framesAtOnce
    private var allowed: NIODeadline

    init(_ door: LiveDoor, _ session: LiveSession, at hub: LoopHub) {
        self.door = door
        self.session = session
        self.hub = hub
        number = session.number
        let now = hub.loop.now
        (heard, spoke, opened, allowed) = (now, now, now, now)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        hub.add(self)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        hub.remove(self)
        self.context = nil
        session.end()
    }

    func channelInactive(context: ChannelHandlerContext) {
        hub.remove(self)
        session.end()
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error as? NIOWebSocketError {
        case .invalidFrameLength?:
            close(LiveEnd(.tooLarge, APIError(.quotaExceeded, "a frame is too long")))
        case nil: context.close(promise: nil)
        default:
            close(LiveEnd(.notUnderstood, APIError(.badRequest, "a frame breaks RFC 6455")))
        }
    }

    // MARK: What comes

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        heard = hub.loop.now
        guard !isClosing else {
            // The client has heard that it is over.
            if frame.opcode == .connectionClose { context.close(promise: nil) }
            return
        }
        guard frame.maskKey != nil else {
            return close(
                LiveEnd(.notUnderstood, APIError(.badRequest, "a client masks its frames")))
        }
        switch frame.opcode {
        case .text, .continuation: take(frame)
        case .binary:
            close(LiveEnd(.notUnderstood, APIError(.badRequest, "frames are texts, not bytes")))
        case .ping:
            send(Self.control(0x8A, Array(frame.unmaskedData.readableBytesView)))
            flush()
        case .pong: break
        case .connectionClose: answerClose(frame)
        default:
            close(LiveEnd(.notUnderstood, APIError(.badRequest, "an opcode is unknown")))
        }
    }

    private func take(_ frame: WebSocketFrame) {
        let isFirst = frame.opcode == .text
        guard isFirst == (message == nil) else {
            return close(
                LiveEnd(
                    .notUnderstood, APIError(.badRequest, "fragments of a frame are out of order")))
        }
        var part = frame.unmaskedData
        if message == nil { message = part } else { message?.writeBuffer(&part) }
        guard let message, message.readableBytes <= LiveSession.frameBytes else {
            return close(
                LiveEnd(
                    .tooLarge,
                    APIError(
                        .quotaExceeded, "a frame has at most \(LiveSession.frameBytes) bytes")))
        }
        guard frame.fin else { return }
        self.message = nil
        guard String(validating: message.readableBytesView, as: UTF8.self) != nil else {
            return close(LiveEnd(.notUnderstood, APIError(.badRequest, "a frame is no UTF-8")))
        }
        guard mayTake() else {
            return close(
                LiveEnd(
                    .tooMany,
                    APIError(
                        .throttled, "more than \(Self.framesPerSecond) frames in a second",
                        retryAfter: 5)))
        }
        inbox.append(Array(message.readableBytesView))
        work()
    }

    private func mayTake() -> Bool {
        let now = hub.loop.now
        let earned = Int((now - allowed).nanoseconds * Int64(Self.framesPerSecond) / 1_000_000_000)
        if earned > 0 {
            allowance = min(Self.framesAtOnce, allowance + earned)
            allowed = now
        }
        guard allowance > 0 else { return false }
        allowance -= 1
        return true
    }

    /// Works what came, one after the other, off the loop.
    private func work() {
        guard !isWorking, !isClosing, !inbox.isEmpty, let context else { return }
        isWorking = true
        let text = inbox.removeFirst()
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
        isWorking = false
        if let identity = session.identity {
            reader = identity.reader
            device = identity.device
            isNoticed = false
        }
        if let end { close(end) } else { work() }
    }

    private func answerClose(_ frame: WebSocketFrame) {
        let bytes = Array(frame.unmaskedData.readableBytesView.prefix(2))
        send(Self.control(0x88, bytes.count == 2 ? bytes : []))
        flush()
        isClosing = true
        context?.close(promise: nil)
    }

    // MARK: What goes

    /// Queues what is for this client alone.
    func send(_ bytes: ByteBuffer) {
        guard let context, !isClosing || bytes.getInteger(at: bytes.readerIndex) != UInt8(0x81)
        else { return }
        spoke = hub.loop.now
        context.write(wrapOutboundOut(bytes), promise: nil)
    }

    func flush() {
        context?.flush()
        bound()
    }

    /// Queues what the client's groups are told; says whether it is the first since the last `at`.
    func take(_ bytes: ByteBuffer) -> Bool {
        guard lagging == nil, !isClosing else { return false }
        send(bytes)
        guard !isTouched else { return false }
        isTouched = true
        return true
    }

    /// Has the next `at` sent.
    func touch() { isTouched = true }

    /// Closes what was queued, and sends it.
    func finish(_ at: ByteBuffer, _ position: LogPosition) {
        guard isTouched, lagging == nil else { return }
        isTouched = false
        send(at)
        lastAt = position
        context?.flush()
        guard let context, !context.channel.isWritable else { return }
        lagging = (position, hub.loop.now)
        bound()
    }

    /// Ends a client for whom too much is queued.
    private func bound() {
        guard let context, !isClosing, !context.channel.isWritable,
            let pending = try? context.channel.syncOptions?.getOption(
                ChannelOptions.bufferedWritableBytes),
            pending > Self.mostPending
        else { return }
        close(Self.slow)
    }

    private static let slow = LiveEnd(
        .slow,
        APIError(
            .throttled, "the client does not read what it is sent", retryAfter: 1))

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable, let lagging, !isCatchingUp {
            isCatchingUp = true
            let engine = door.engine
            let number = number
            Task { await engine.catchUp(number, from: lagging.from) }
        }
        context.fireChannelWritabilityChanged()
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
            if now - opened > TimeAmount(LiveTimes.hello) {
                close(
                    LiveEnd(.noHello, APIError(.badRequest, "no \"hello\" in time")))
            }
            return false
        }
        if let lagging, !isCatchingUp, now - lagging.since > TimeAmount(LiveTimes.drain) {
            close(Self.slow)
            return false
        }
        if now - heard > TimeAmount(LiveTimes.silence) {
            close(LiveEnd(.slow, APIError(.throttled, "nothing was heard", retryAfter: 1)))
            return false
        }
        if let endsAt = identity.endsAt {
            if endsAt <= moment {
                close(
                    LiveEnd(
                        .unauthorized,
                        APIError(
                            .authenticationRequired, "the user token has ended",
                            details: ["liveError": "tokenExpired"])))
                return false
            }
            let left = endsAt.duration(since: moment)
            if !isNoticed, left <= LiveTimes.notice {
                isNoticed = true
                send(
                    LoopSockets.wire(
                        LiveFrame([
                            "type": "tokenExpires", "seconds": .integer(left.components.seconds),
                        ])))
                flush()
            }
        }
        guard lagging == nil, now - spoke > TimeAmount(LiveTimes.heartbeat) else { return false }
        send(Self.control(0x89, []))
        return true
    }

    /// Whose connection it is, for those who end some.
    var identity: LiveIdentity? { session.identity }

    /// Says goodbye and closes, soon wholly.
    func close(_ end: LiveEnd) {
        guard let context, !isClosing else { return }
        send(LoopSockets.wire(end.bye(uuid: door.identifiers.uuid())))
        isClosing = true
        inbox = []
        let code = end.code.rawValue
        let reason = Array(end.error.reason.utf8.prefix(120))
        send(
            Self.control(
                0x88,
                [UInt8(code >> 8), UInt8(code & 0xFF)]
                    + (String(validating: reason, as: UTF8.self) == nil ? [] : reason)))
        context.flush()
        let here = NIOLoopBound(context, eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: .seconds(2)) { here.value.close(promise: nil) }
        session.end()
        hub.remove(self)
    }

    /// A control frame.
    private static func control(_ first: UInt8, _ payload: [UInt8]) -> ByteBuffer {
        var buffer = ByteBufferAllocator().buffer(capacity: payload.count + 2)
        buffer.writeInteger(first)
        buffer.writeInteger(UInt8(payload.count))
        buffer.writeBytes(payload)
        return buffer
    }
}
