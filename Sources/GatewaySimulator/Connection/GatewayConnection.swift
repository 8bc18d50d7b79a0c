import Logging
import NIOCore
import NIOHPACK
import NIOHTTP2
import NIOPosix
import NIOSSL

/// One sender's connection: collects its pushes, has them judged, and carries out the answers.
///
/// It works on whole HTTP/2 frames, because a gateway's faults are made of frames. All of it runs
/// on the connection's event loop.
final class GatewayConnection: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame
    typealias OutboundOut = HTTP2Frame

    /// A push that has no answer yet.
    struct OpenStream {
        /// The header block.
        var headers: [HeaderField]
        /// The body so far, cut at ``maximumKeptBytes``.
        var body: [UInt8] = []
        /// The bytes of the body so far, including those that were not kept.
        var bodyBytes = 0
        /// The received bytes of the body for which the sender has not yet got a window update.
        var unacknowledgedBytes = 0
        /// The push, once it has arrived completely and was judged.
        var push: ReceivedPush?
    }

    /// The stream limit in force, which determines what changes it.
    enum LimitState {
        /// No valid provider token has been shown yet.
        case initial
        /// The full limit.
        case full
        /// A refusal has reduced the limit.
        case shrunk
        /// A script has set the limit.
        case scripted
    }

    /// How many bytes of a body are kept and checked.
    ///
    /// A longer one is PayloadTooLarge anyway.
    static let maximumKeptBytes = 65_536
    /// The maximum size of a body, in bytes.
    ///
    /// The stream of a larger one is reset.
    static let maximumBodyBytes = 1 << 20
    /// The receive window of connections and streams, in bytes (RFC 9113 §6.9.2; APNs uses the
    /// default).
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
    /// The number of pushes that arrived completely.
    private var requests = 0
    /// The last stream of the GOAWAY that was sent, and what happens to the connection after it.
    var departure: (lastStream: HTTP2StreamID, ending: GoAway.Ending)?
    /// Whether an HTTP/2 error has ended this connection.
    private var hasFailed = false

    /// Creates the handler of a connection that was just accepted.
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

    /// Keeps the context for answers that are sent later.
    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    /// Releases the context.
    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
    }

    /// Drops the open streams and counts the connection as closed.
    func channelInactive(context: ChannelHandlerContext) {
        streams.removeAll()
        if number > 0 { ledger.count { $0.openConnections -= 1 } }
        context.fireChannelInactive()
    }

    /// Handles one frame.
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

    /// Flushes the answers to all frames that were read together.
    func channelReadComplete(context: ChannelHandlerContext) {
        context.flush()
    }

    /// Reopens the connection's receive window once less than half of it is left.
    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard let update = event as? NIOHTTP2WindowUpdatedEvent, update.streamID == .rootStream,
            let size = update.inboundWindowSize, size < Self.windowBytes / 2, !isFrozen
        else { return }
        write(.windowUpdate(windowSizeIncrement: Self.windowBytes - size), on: .rootStream)
    }

    /// Closes the connection after an error that concerns more than a single stream.
    ///
    /// The HTTP/2 handler has already sent RST_STREAM for a stream error or GOAWAY for a connection
    /// error, but it does not close the connection.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // Most senders close without TLS's close_notify, so this is not worth more than a debug
        // message.
        let isFarewell = error as? NIOSSLError == .uncleanShutdown
        configuration.logger.log(
            level: isFarewell ? .debug : .info, "error on a connection",
            metadata: ["connection": "\(number)", "error": "\(error)"])
        if error is NIOSSLError || error is BoringSSLError || error is IOError {
            return context.close(promise: nil)
        }
        // Frames that were read together with the faulty one may cause further errors.
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

    /// Opens a stream, unless it exceeds the limit or comes after a GOAWAY.
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

    /// Sends a GOAWAY with the last push that the connection's request limit allows.
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

    /// Judges a push that has arrived completely, records it, and answers it after the script's
    /// delay.
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
