import GatewaySimulator
import NIOCore
import NIOHPACK
import NIOHTTP2
import NIOPosix
import NIOSSL
import Synchronization

/// The outcome of a push as its sender sees it.
enum SenderOutcome: Equatable {
    /// A status, the headers of the answer by name, and its body.
    case answered(status: Int, headers: [String: String], body: String)
    /// RST_STREAM with this code.
    case reset(HTTP2ErrorCode)
    /// The connection ended before an answer.
    case lost

    /// The status and the body in one text, for comparing.
    var summary: String {
        switch self {
        case .answered(let status, _, let body): body.isEmpty ? "\(status)" : "\(status) \(body)"
        case .reset(let code): "reset \(code.networkCode)"
        case .lost: "lost"
        }
    }
}

/// Everything that a sender saw on its connection; tests wait for events and never sleep.
final class SenderInbox: Sendable {
    struct GoodBye: Equatable {
        var lastStream: Int
        var code: HTTP2ErrorCode
        var debugData: String
    }

    struct State {
        var outcomes: [Int: SenderOutcome] = [:]
        var order: [Int] = []
        var limits: [Int] = []
        var goAways: [GoodBye] = []
        var isClosed = false
        var isCancelled = false
        var waiters: [Waiter] = []
    }

    struct Waiter {
        var condition: (State) -> Bool
        var continuation: CheckedContinuation<Void, Never>
    }

    private let state = Mutex(State())

    func change(_ body: (inout State) -> Void) {
        let due = state.withLock { state in
            body(&state)
            let waiters = state.waiters
            state.waiters = []
            let now = state
            state.waiters = waiters.filter { !now.isCancelled && !$0.condition(now) }
            return waiters.filter { now.isCancelled || $0.condition(now) }.map(\.continuation)
        }
        for continuation in due { continuation.resume() }
    }

    func read<Value>(_ body: (State) -> sending Value) -> Value {
        state.withLock { state in body(state) }
    }

    /// Waits until `condition` holds, or until the test is cancelled by its time limit.
    func wait(until condition: @escaping @Sendable (State) -> Bool) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isDue = state.withLock { state in
                    if state.isCancelled || condition(state) { return true }
                    state.waiters.append(Waiter(condition: condition, continuation: continuation))
                    return false
                }
                if isDue { continuation.resume() }
            }
        } onCancel: {
            change { $0.isCancelled = true }
        }
    }
}

/// Passes the frames of a connection to the inbox.
private final class SenderFrames: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame
    typealias OutboundOut = HTTP2Frame

    private let inbox: SenderInbox
    private let early: [TestPush]
    private var partial: [HTTP2StreamID: (status: Int, headers: [String: String], body: String)] =
        [:]

    init(_ inbox: SenderInbox, early: [TestPush]) {
        self.inbox = inbox
        self.early = early
    }

    /// Sends the early pushes right after the preface, before the TLS handshake.
    ///
    /// At this point the server's SETTINGS cannot have arrived.
    func channelActive(context: ChannelHandlerContext) {
        for (index, push) in early.enumerated() {
            for payload in push.frames {
                let frame = HTTP2Frame(streamID: HTTP2StreamID(2 * index + 1), payload: payload)
                context.write(wrapOutboundOut(frame), promise: nil)
            }
        }
        context.flush()
        context.fireChannelActive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        switch frame.payload {
        case .headers(let content):
            var headers: [String: String] = [:]
            for field in content.headers { headers[field.name] = field.value }
            partial[frame.streamID] = (Int(headers[":status"] ?? "") ?? 0, headers, "")
            if content.endStream { finish(frame.streamID) }
        case .data(let content):
            if case .byteBuffer(let bytes) = content.data {
                partial[frame.streamID]?.body += String(buffer: bytes)
            }
            if content.endStream { finish(frame.streamID) }
        case .rstStream(let code):
            inbox.change { $0.outcomes[Int(frame.streamID)] = .reset(code) }
        case .settings(.settings(let settings)):
            for setting in settings where setting.parameter == .maxConcurrentStreams {
                inbox.change { $0.limits.append(setting.value % LimitBlindfold.offset) }
            }
        case .goAway(let lastStream, let code, let debugData):
            let goodBye = SenderInbox.GoodBye(
                lastStream: Int(lastStream), code: code,
                debugData: debugData.map { String(buffer: $0) } ?? "")
            inbox.change { $0.goAways.append(goodBye) }
        default: break
        }
    }

    private func finish(_ id: HTTP2StreamID) {
        guard let answer = partial.removeValue(forKey: id) else { return }
        inbox.change {
            $0.order.append(Int(id))
            $0.outcomes[Int(id)] = .answered(
                status: answer.status, headers: answer.headers, body: answer.body)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        inbox.change { $0.isClosed = true }
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {}
}

/// Hides the gateway's stream limit from the client's HTTP/2 handler, which would obey it.
final class LimitBlindfold: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    static let offset = 1_000_000
    private var pending = ByteBuffer()

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        pending.writeImmutableBuffer(unwrapInboundIn(data))
        while let high = pending.getInteger(at: pending.readerIndex, as: UInt8.self),
            let low = pending.getInteger(at: pending.readerIndex + 1, as: UInt16.self),
            let type = pending.getInteger(at: pending.readerIndex + 3, as: UInt8.self),
            var frame = pending.readSlice(length: 9 + Int(high) << 16 + Int(low))
        {
            if type == 4 { hideLimit(in: &frame) }
            context.fireChannelRead(wrapInboundOut(frame))
        }
    }

    private func hideLimit(in frame: inout ByteBuffer) {
        for index in stride(from: 9, to: frame.readableBytes, by: 6) {
            let place = frame.readerIndex + index
            guard frame.getInteger(at: place, as: UInt16.self) == 3,
                let limit = frame.getInteger(at: place + 2, as: UInt32.self)
            else { continue }
            frame.setInteger(limit + UInt32(Self.offset), at: place + 2)
        }
    }
}

/// A sender with one connection that ignores stream limits.
final class TestSender: Sendable {
    let inbox: SenderInbox
    private let channel: any Channel
    private let opened: Mutex<Int>

    private init(channel: any Channel, inbox: SenderInbox, opened: Int) {
        self.channel = channel
        self.inbox = inbox
        self.opened = Mutex(opened)
    }

    /// Connects to `gateway`, trusting its certificate authority only.
    ///
    /// It begins the pushes `early` on streams 1, 3, … before it can know the stream limit.
    static func connect(
        to gateway: SimulatedGateway, trusting pem: String? = nil, host: String = "localhost",
        early: [TestPush] = []
    ) async throws -> TestSender {
        var tls = TLSConfiguration.makeClientConfiguration()
        let authority = try NIOSSLCertificate.fromPEMBytes(
            Array((pem ?? gateway.caCertificatePEM).utf8))
        tls.trustRoots = .certificates(authority)
        tls.applicationProtocols = ["h2"]
        let tlsContext = try NIOSSLContext(configuration: tls)
        let inbox = SenderInbox()
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    let name = host == "localhost" ? host : nil
                    try pipeline.addHandler(
                        NIOSSLClientHandler(context: tlsContext, serverHostname: name))
                    try pipeline.addHandler(LimitBlindfold())
                    try pipeline.addHandler(NIOHTTP2Handler(mode: .client))
                    try pipeline.addHandler(SenderFrames(inbox, early: early))
                }
            }
            .connect(host: "127.0.0.1", port: gateway.port).get()
        return TestSender(channel: channel, inbox: inbox, opened: early.count)
    }

    /// Begins pushes, all in one write; returns their streams.
    @discardableResult
    func begin(_ pushes: [TestPush]) -> [Int] {
        let streams = opened.withLock { count in
            defer { count += pushes.count }
            return pushes.indices.map { 2 * (count + $0) + 1 }
        }
        channel.eventLoop.execute { [channel] in
            for (push, stream) in zip(pushes, streams) {
                for payload in push.frames {
                    channel.write(
                        HTTP2Frame(streamID: HTTP2StreamID(stream), payload: payload),
                        promise: nil)
                }
            }
            channel.flush()
        }
        return streams
    }

    /// Waits for the outcome of the push on `stream`.
    func outcome(of stream: Int) async -> SenderOutcome {
        await inbox.wait { $0.outcomes[stream] != nil || $0.isClosed }
        return inbox.read { $0.outcomes[stream] } ?? .lost
    }

    /// Sends a push, and waits for its outcome.
    @discardableResult
    func send(_ push: TestPush) async -> SenderOutcome {
        await outcome(of: begin([push])[0])
    }

    /// Cancels a push.
    func cancel(_ stream: Int) {
        channel.writeAndFlush(
            HTTP2Frame(streamID: HTTP2StreamID(stream), payload: .rstStream(.cancel)),
            promise: nil)
    }

    /// Closes the connection.
    func close() async {
        try? await channel.close()
    }
}
