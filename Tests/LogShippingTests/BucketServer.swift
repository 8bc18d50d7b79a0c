import NIOCore
import NIOHTTP1
import NIOPosix
import RelayModel
import Synchronization

@testable import LogShipping

/// A loopback server in place of an S3-like store: it answers as the test says and keeps the
/// requests.
final class BucketServer: Sendable {
    struct Question: Sendable {
        var method: String
        var uri: String
        var headers: HTTPHeaders
        var body: [UInt8]
    }

    struct Answer: Sendable {
        var status = 200
        var body = ""
        /// Whether the head announces a body twice as long, the rest of which never comes.
        var stalls = false
        /// Whether the head announces another megabyte, which comes byte by byte.
        var drips = false
    }

    final class Answering: Sendable {
        let questions = Mutex<[Question]>([])
        let answer: @Sendable (Question) -> Answer

        init(_ answer: @escaping @Sendable (Question) -> Answer) {
            self.answer = answer
        }
    }

    private let channel: any Channel
    private let answering: Answering

    private init(_ channel: any Channel, _ answering: Answering) {
        self.channel = channel
        self.answering = answering
    }

    static func start(
        _ answer: @escaping @Sendable (Question) -> Answer
    ) async throws -> BucketServer {
        let answering = Answering(answer)
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                    try channel.pipeline.syncOperations.addHandler(BucketAnswerer(answering))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        return BucketServer(channel, answering)
    }

    /// The requests received so far.
    var questions: [Question] { answering.questions.withLock { $0 } }

    var host: String { "127.0.0.1:\(channel.localAddress?.port ?? 0)" }

    /// Returns a destination for this bucket, whose requests time out after `timeout`.
    func destination(timeout: Duration = .seconds(60)) throws -> BucketDestination {
        var settings = BucketSettings()
        settings.endpoint = "http://\(host)"
        settings.accessKeyID = "key"
        settings.secret = "secret"
        settings.sessionToken = "token"
        settings.timeout = timeout
        return try BucketDestination(
            "bucket", prefix: "relay/", settings: settings,
            now: { Timestamp(seconds: 1_700_000_000) })
    }

    func stop() async throws { try await channel.close() }
}

private final class BucketAnswerer: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let answering: BucketServer.Answering
    private var head: HTTPRequestHead?
    private var body: [UInt8] = []

    init(_ answering: BucketServer.Answering) {
        self.answering = answering
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            self.head = head
            body = []
        case .body(let buffer): body.append(contentsOf: buffer.readableBytesView)
        case .end:
            guard let head else { return }
            let question = BucketServer.Question(
                method: head.method.rawValue, uri: head.uri, headers: head.headers, body: body)
            answering.questions.withLock { $0.append(question) }
            write(answering.answer(question), context)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    private func write(_ answer: BucketServer.Answer, _ context: ChannelHandlerContext) {
        let bytes = Array(answer.body.utf8)
        let length =
            answer.drips ? bytes.count + 1_000_000 : answer.stalls ? 2 * bytes.count : bytes.count
        let head = HTTPResponseHead(
            version: .http1_1, status: HTTPResponseStatus(statusCode: answer.status),
            headers: ["Content-Length": "\(length)"])
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: bytes)))), promise: nil)
        if !answer.stalls, !answer.drips {
            context.write(wrapOutboundOut(.end(nil)), promise: nil)
        }
        context.flush()
        if answer.drips { drip(context) }
    }

    /// Sends a byte now and then until the client closes the connection.
    private func drip(_ context: ChannelHandlerContext) {
        guard context.channel.isActive else { return }
        let byte = HTTPServerResponsePart.body(.byteBuffer(ByteBuffer(bytes: [0])))
        context.writeAndFlush(wrapOutboundOut(byte), promise: nil)
        _ = context.eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(10)) {
            self.drip(context)
        }
    }
}
