import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// An HTTP/2 server that only knows frames.
///
/// It keeps the bytes that it receives after TLS, and answers the end of each request with status
/// 200 or as a test says.
final class RawServer: Sendable {
    /// Decides the answer to the `number`-th request of a connection, which ended on `stream`.
    typealias Answering = @Sendable (_ number: Int, _ stream: UInt32) -> Answer

    /// Frames that are written together, so that they are read together.
    struct Answer: Sendable {
        var frames: [RawFrame] = []
        /// Whether the connection is closed after the frames.
        var isLast = false
    }

    /// The bytes that one connection sent, and the client certificate that it showed.
    struct Connection: Sendable {
        var bytes: [UInt8] = []
        var clientCertificate: [UInt8]?
    }

    private let kept = Mutex<[Connection]>([])
    private let channel: any Channel
    let answering: Answering

    /// Starts on a free port of the loopback interface, with the simulator's certificate in
    /// `folder`.
    ///
    /// It asks for the client certificate `trusting`, a PEM text.
    static func start(
        certificatesIn folder: String, trusting: String? = nil,
        answering: @escaping Answering = { _, stream in Answer(frames: [.status(200, stream)]) }
    ) async throws -> RawServer {
        var tls = TLSConfiguration.makeServerConfiguration(
            certificateChain: try NIOSSLCertificate.fromPEMFile("\(folder)/server.pem")
                .map { .certificate($0) },
            privateKey: .privateKey(
                try NIOSSLPrivateKey(file: "\(folder)/server-key.pem", format: .pem)))
        tls.applicationProtocols = ["h2"]
        if let trusting {
            tls.certificateVerification = .noHostnameVerification
            tls.trustRoots = .certificates(
                try NIOSSLCertificate.fromPEMBytes(Array(trusting.utf8)))
        }
        let context = try NIOSSLContext(configuration: tls)
        let box = Box()
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandlers(
                        NIOSSLServerHandler(context: context), RawAnswerer(box))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let server = RawServer(channel, answering)
        box.server.withLock { $0 = server }
        return server
    }

    private init(_ channel: any Channel, _ answering: @escaping Answering) {
        self.channel = channel
        self.answering = answering
    }

    var port: Int { channel.localAddress?.port ?? 0 }

    /// The connections so far.
    var connections: [Connection] { kept.withLock { $0 } }

    func stop() async throws { try await channel.close() }

    final class Box: Sendable {
        let server = Mutex<RawServer?>(nil)
    }

    func open(_ certificate: [UInt8]?) -> Int {
        kept.withLock { kept in
            kept.append(Connection(clientCertificate: certificate))
            return kept.count - 1
        }
    }

    func keep(_ bytes: ByteBufferView, of connection: Int) {
        kept.withLock { $0[connection].bytes.append(contentsOf: bytes) }
    }
}

/// One frame of HTTP/2 (RFC 9113 §4.1).
struct RawFrame: Sendable {
    static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    var kind: UInt8
    var flags: UInt8
    var stream: UInt32
    var payload: [UInt8]

    /// Returns a HEADERS frame with only a status; its name is entry 8 of the static table.
    static func status(_ status: Int, _ stream: UInt32, isLast: Bool = true) -> RawFrame {
        RawFrame(
            kind: 1, flags: isLast ? 5 : 4, stream: stream,
            payload: [0x08, 3] + Array(String(status).utf8))
    }

    /// Returns an RST_STREAM frame.
    static func reset(_ code: UInt8, _ stream: UInt32) -> RawFrame {
        RawFrame(kind: 3, flags: 0, stream: stream, payload: [0, 0, 0, code])
    }

    /// The frame's bytes as sent.
    var bytes: [UInt8] {
        let count = [16, 8, 0].map { UInt8(truncatingIfNeeded: payload.count >> $0) }
        let place = [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: stream >> UInt32($0)) }
        return count + [kind, flags] + place + payload
    }

    /// Returns the complete frames after the connection preface.
    static func frames(of bytes: [UInt8]) -> [RawFrame] {
        var frames: [RawFrame] = []
        var rest = bytes.dropFirst(preface.count)
        while rest.count >= 9 {
            let head = Array(rest.prefix(9))
            let length = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
            guard rest.count >= 9 + length else { break }
            let stream = head[5...8].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } & 0x7FFF_FFFF
            frames.append(
                RawFrame(
                    kind: head[3], flags: head[4], stream: stream,
                    payload: Array(rest.dropFirst(9).prefix(length))))
            rest = rest.dropFirst(9 + length)
        }
        return frames
    }
}

private final class RawAnswerer: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let box: RawServer.Box
    private var number: Int?
    private var bytes: [UInt8] = []
    private var answered = 0
    private var requests = 0

    init(_ box: RawServer.Box) {
        self.box = box
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let buffer = unwrapInboundIn(data)
        guard let server = box.server.withLock({ $0 }) else { return }
        if number == nil {
            let tls = try? context.pipeline.syncOperations.handler(type: NIOSSLServerHandler.self)
            number = server.open(try? tls?.peerCertificate?.toDERBytes())
            write([0, 0, 0, 4, 0, 0, 0, 0, 0], context)  // SETTINGS without any.
        }
        if let number { server.keep(buffer.readableBytesView, of: number) }
        bytes.append(contentsOf: buffer.readableBytesView)
        let frames = RawFrame.frames(of: bytes)
        var isLast = false
        for frame in frames.dropFirst(answered) where !isLast {
            // END_STREAM: the request is complete.
            if frame.kind <= 1, frame.flags & 1 == 1 {
                requests += 1
                let answer = server.answering(requests, frame.stream)
                write(answer.frames.flatMap(\.bytes), context)
                isLast = answer.isLast
            }
            let isSettings = frame.kind == 4 && frame.flags & 1 == 0
            if isSettings { write([0, 0, 0, 4, 1, 0, 0, 0, 0], context) }
        }
        answered = frames.count
        context.flush()
        if isLast { context.close(promise: nil) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    private func write(_ bytes: [UInt8], _ context: ChannelHandlerContext) {
        context.write(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil)
    }
}
