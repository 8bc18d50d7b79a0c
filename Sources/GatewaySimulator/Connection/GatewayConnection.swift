import Logging
import NIOCore
import NIOHPACK
import NIOHTTP2
import NIOPosix
import NIOSSL

/// One sender's connection: collects its pushes, has them judged, and carries the answers out.
///
/// It works on whole HTTP/2 frames, because a gateway's misbehaviour is made of frames. All of it
/// runs on the connection's event loop.
final class GatewayConnection: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame
    typealias OutboundOut = HTTP2Frame

    /// A push that has no answer yet.
    struct OpenStream {
        /// The header block.
        var headers: [HeaderField]
        /// The body so far, cut at ``maximumKeptBytes``.
        var body: [UInt8] = []
        /// The bytes of the body so far, those that were not kept included.
        var bodyBytes = 0
        /// The bytes of the body that the sender's window was not yet given back.
        var unacknowledgedBytes = 0
        /// The push, once it has arrived whole and was judged.
        var push: ReceivedPush?
    }

    /// Which limit is in force, and what will change it.
    enum LimitState {
        /// Nobody has shown a valid provider token.
        case initial
        /// The full limit.
        case full
        /// A refusal has shrunk it.
        case shrunk
        /// A script has set it.
        case scripted
    }

    /// The part of a body that is kept and checked; more is PayloadTooLarge anyway.
    static let maximumKeptBytes = 65_536
    /// A body beyond this is cut off.
    static let maximumBodyBytes = 1 << 20
    /// The receive window of connections and streams (RFC 9113 §6.9.2; APNs has the default).
    static let windowBytes = 65_535

    let configuration: SimulatedGatewayConfiguration
    let ledger: GatewayLedger
    let judge: GatewayJudge
    let tap: StreamLimitTap
    private(set) var number = 0
    var authority: ConnectionAuthority
    var context: ChannelHandlerContext?
    var streams: [HTTP2StreamID: OpenStream] = [:]
    var highestStream = HTTP2StreamID.rootStream
    var limitState = LimitState.initial
    var limit: Int
    var unacknowledgedSettings = 1
    var isFrozen = false
    /// How many pushes arrived whole.
    private var requests = 0
    /// The last stream of a GOAWAY that was sent, and what is to follow it.
    var departure: (lastStream: HTTP2StreamID, ending: GoAway.Ending)?
    /// Whether an error of HTTP/2 has ended this connection.
    private var hasFailed = false

    /// A connection that was just accepted.
    init(
        configuration: SimulatedGatewayConfiguration, ledger: GatewayLedger, judge: GatewayJudge,
        tap: StreamLimitTap
    ) {
        self.configuration = configuration
        self.ledger = ledger
        self.judge = judge
        self.tap = tap
        authority = ConnectionAuthority(judge.authorityRules)
        limit = configuration.initialStreamLimit
    }

    /// Keeps the context for answers that come later.
    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    /// Lets go of the context.
    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
    }

    /// Forgets what is open.
    func channelInactive(context: ChannelHandlerContext) {
        streams.removeAll()
        if number > 0 { ledger.count { $0.openConnections -= 1 } }
        context.fireChannelInactive()
    }

    /// Takes a frame.
    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if number == 0 { begin() }
        guard !isFrozen else { return }
        let frame = unwrapInboundIn(data)
        switch frame.payload {
        case .headers(let content): received(content, on: frame.streamID)
        case .data(let content): received(content, on: frame.streamID)
        case .rstStream: abandon(frame.streamID)
        case .settings(.ack): unacknowledgedSettings = max(0, unacknowledgedSettings - 1)
        case .settings, .ping, .windowUpdate, .goAway, .priority, .pushPromise,
            .alternativeService, .origin:
            break
        }
    }

    /// Sends the answers to all that was read together.
    func channelReadComplete(context: ChannelHandlerContext) {
        context.flush()
    }

    /// Gives the sender back the connection's window.
    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard let update = event as? NIOHTTP2WindowUpdatedEvent, update.streamID == .rootStream,
            let size = update.inboundWindowSize, size < Self.windowBytes / 2, !isFrozen
        else { return }
        write(.windowUpdate(windowSizeIncrement: Self.windowBytes - size), on: .rootStream)
    }

    /// Closes the connection after an error that is not of a single stream.
    ///
    /// The HTTP/2 handler has sent RST_STREAM for an error of a stream and GOAWAY for one of the
    /// connection, but it does not close it.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // Most senders close without TLS's close_notify; nobody needs to know.
        let isFarewell = error as? NIOSSLError == .uncleanShutdown
        configuration.logger.log(
            level: isFarewell ? .debug : .info, "error on a connection",
            metadata: ["connection": "\(number)", "error": "\(error)"])
        if error is NIOSSLError || error is BoringSSLError || error is IOError {
            return context.close(promise: nil)
        }
        // What was read together with the frame in error may bring further errors.
        guard tap.hasSentGoAway, departure == nil, !hasFailed else { return }
        hasFailed = true
        if error is NIOHTTP2Errors.MaxStreamsViolation { recordViolation(highestStream) }
        ledger.count { $0.protocolErrors += 1 }
        context.close(promise: nil)
    }

    private func begin() {
        number = ledger.count { totals in
            totals.connections += 1
            totals.openConnections += 1
            return totals.connections
        }
    }
}

extension GatewayConnection {
    private func received(_ content: HTTP2Frame.FramePayload.Headers, on id: HTTP2StreamID) {
        if streams[id] == nil {
            guard open(id, content.headers) else { return }
        }
        if content.endStream { complete(id) }
    }

    /// Opens a stream, unless it is too many or comes after a GOAWAY.
    private func open(_ id: HTTP2StreamID, _ headers: HPACKHeaders) -> Bool {
        if let departure, id > departure.lastStream { return false }
        let previous = highestStream
        highestStream = max(highestStream, id)
        streams[id] = OpenStream(
            headers: headers.map { HeaderField(name: $0.name, value: $0.value) })
        guard streams.count > limit else { return true }
        recordViolation(id)
        let isAcknowledged = unacknowledgedSettings == 0
        switch isAcknowledged
            ? configuration.overLimit : configuration.overLimitBeforeAcknowledgement
        {
        case .serves: return true
        case .refuses:
            streams[id] = nil
            write(.rstStream(.refusedStream), on: id)
        case .sendsGoAway:
            goAway(
                GoAway(
                    lastStream: .beforeThis, ending: .close, errorCode: .enhanceYourCalm,
                    reason: "Maximum active streams violated for this endpoint"),
                lastStream: previous)
        }
        return false
    }

    /// Says goodbye with the last push that a connection may have.
    private func departIfWornOut(at id: HTTP2StreamID) {
        requests += 1
        guard let limit = configuration.requestLimit, requests == limit.count else { return }
        goAway(GoAway(ending: limit.ending, reason: nil), lastStream: id)
    }

    private func recordViolation(_ id: HTTP2StreamID) {
        ledger.record(
            StreamLimitViolation(
                connection: number, stream: Int(id), openStreams: streams.count, limit: limit,
                isAcknowledged: unacknowledgedSettings == 0))
    }

    private func received(_ content: HTTP2Frame.FramePayload.Data, on id: HTTP2StreamID) {
        guard case .byteBuffer(let bytes) = content.data, var stream = streams[id] else { return }
        streams[id] = nil
        stream.bodyBytes += bytes.readableBytes
        stream.unacknowledgedBytes += bytes.readableBytes
        let room = Self.maximumKeptBytes - stream.body.count
        stream.body.append(contentsOf: bytes.readableBytesView.prefix(room))
        guard stream.bodyBytes <= Self.maximumBodyBytes else {
            return write(.rstStream(.enhanceYourCalm), on: id)
        }
        if !content.endStream, stream.unacknowledgedBytes > Self.windowBytes / 2 {
            write(.windowUpdate(windowSizeIncrement: stream.unacknowledgedBytes), on: id)
            stream.unacknowledgedBytes = 0
        }
        streams[id] = stream
        if content.endStream { complete(id) }
    }

    private func abandon(_ id: HTTP2StreamID) {
        guard streams.removeValue(forKey: id) != nil else { return }
        ledger.count { $0.abandonedStreams += 1 }
        closeIfDrained()
    }

    /// Judges a push that has arrived whole, enters it, and has the answer given in its time.
    private func complete(_ id: HTTP2StreamID) {
        guard let stream = streams[id], stream.push == nil else { return }
        let verdict = judge.judge(
            GatewayJudge.Arrival(
                connection: number, stream: Int(id), headers: stream.headers, payload: stream.body),
            authority: &authority)
        let push = ledger.record(verdict.push)
        streams[id]?.push = push
        configuration.onPush?(push)
        departIfWornOut(at: id)
        guard verdict.delay > .zero, let eventLoop = context?.eventLoop else {
            return answer(push, on: id, isAuthenticated: verdict.isAuthenticated)
        }
        let bound = NIOLoopBound(self, eventLoop: eventLoop)
        let isAuthenticated = verdict.isAuthenticated
        eventLoop.scheduleTask(in: TimeAmount(verdict.delay)) {
            bound.value.answer(push, on: id, isAuthenticated: isAuthenticated)
            bound.value.context?.flush()
        }
    }
}
