import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// An HTTP/2 server that knows frames and nothing more: it keeps the bytes that it is sent, as they
/// are after TLS, and answers the end of each request with status 200.
final class RawServer: Sendable {
    /// What one connection sent, and what TLS knows of it.
    struct Connection: Sendable {
        var bytes: [UInt8] = []
        var clientCertificate: [UInt8]?
    }

    private let kept = Mutex<[Connection]>([])
    private let channel: any Channel

    /// Serves on a free port of the loopback with the simulator's certificate of `folder`;
    /// `trusting` is the PEM text of the client certificate that it asks for.
    static func start(
        certificatesIn folder: String, trusting: String? = nil
    ) async throws
        -> RawServer
    {
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
        let server = RawServer(channel)
        box.server.withLock { $0 = server }
        return server
    }

    private init(_ channel: any Channel) {
        self.channel = channel
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
struct RawFrame {
    static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    var kind: UInt8
    var flags: UInt8
    var stream: UInt32
    var payload: [UInt8]

    /// The whole frames after the connection preface.
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
        for frame in frames.dropFirst(answered) {
            // The end of a request: HEADERS with `:status` 200, entry 8 of the static table.
            if frame.kind <= 1, frame.flags & 1 == 1 {
                let stream = [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: frame.stream >> $0) }
                write([0, 0, 1, 1, 5] + stream + [0x88], context)
            }
            let isSettings = frame.kind == 4 && frame.flags & 1 == 0
            if isSettings { write([0, 0, 0, 4, 1, 0, 0, 0, 0], context) }
        }
        answered = frames.count
        context.flush()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    private func write(_ bytes: [UInt8], _ context: ChannelHandlerContext) {
        context.write(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil)
    }
}
