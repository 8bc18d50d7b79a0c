import Glibc
import Matching
import NIOCore
import NIOPosix
import NIOSSL

/// A minimal HTTP/2 server over TLS that accepts every push.
///
/// It parses frames and no headers, so that the measurement is of the sender. It runs on one
/// thread of its own, whose CPU time can be told apart.
final class BenchPushSink: Sendable {
    private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    private let channel: any Channel

    /// Starts on a free port of the loopback interface, with `server.pem` and `server-key.pem` of
    /// a folder.
    init(certificates folder: String) async throws {
        let chain = try NIOSSLCertificate.fromPEMFile("\(folder)/server.pem")
        var tls = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain.map { .certificate($0) },
            privateKey: .privateKey(
                try NIOSSLPrivateKey(file: "\(folder)/server-key.pem", format: .pem)))
        tls.applicationProtocols = ["h2"]
        let context = try NIOSSLContext(configuration: tls)
        channel = try await ServerBootstrap(group: group)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandlers(
                        NIOSSLServerHandler(context: context), FrameAnswerer())
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
    }

    /// The URL of the server.
    var url: String { "https://127.0.0.1:\(channel.localAddress?.port ?? 0)" }

    /// The CPU seconds that the server's thread has used.
    var cpuSeconds: Double {
        get async throws {
            try await channel.eventLoop.submit { ThreadTime.seconds }.get()
        }
    }

    /// The CPU seconds, for callers that cannot suspend; do not call it on the server's own
    /// thread.
    var cpuSecondsNow: Double {
        (try? channel.eventLoop.submit { ThreadTime.seconds }.wait()) ?? 0
    }

    /// Stops serving.
    func close() async throws {
        try await channel.close()
        try await group.shutdownGracefully()
    }
}

/// Answers the end of each request of a connection with status 200 (RFC 9113).
private final class FrameAnswerer: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private enum Kind {
        static let data: UInt8 = 0
        static let headers: UInt8 = 1
        static let settings: UInt8 = 4
        static let ping: UInt8 = 6
        static let windowUpdate: UInt8 = 8
    }

    private static let prefaceBytes = 24
    private static let headerBytes = 9
    /// The number of bytes for which a connection gets credit at a time.
    private static let windowStep: UInt32 = 1 << 20

    private var input = ByteBuffer()
    private var output = ByteBuffer()
    private var sawPreface = false
    private var unacknowledged: UInt32 = 0

    func channelActive(context: ChannelHandlerContext) {
        // MAX_CONCURRENT_STREAMS (3) 1000.
        writeFrame(Kind.settings, flags: 0, stream: 0, [0, 3, 0, 0, 0x03, 0xE8])
        writeWindowUpdate(Self.windowStep)
        flush(context)
        context.fireChannelActive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var buffer = unwrapInboundIn(data)
        input.writeBuffer(&buffer)
        if !sawPreface, input.readableBytes >= Self.prefaceBytes {
            input.moveReaderIndex(forwardBy: Self.prefaceBytes)
            sawPreface = true
        }
        if sawPreface { while answerFrame() {} }
        input.discardReadBytes()
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        flush(context)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    /// Answers the next frame if it has come completely; returns whether it did.
    private func answerFrame() -> Bool {
        let start = input.readerIndex
        guard input.readableBytes >= Self.headerBytes,
            let head: UInt32 = input.getInteger(at: start),
            let flags: UInt8 = input.getInteger(at: start + 4),
            let stream: UInt32 = input.getInteger(at: start + 5)
        else { return false }
        let length = Int(head >> 8)
        guard input.readableBytes >= Self.headerBytes + length else { return false }
        let payload = input.getBytes(
            at: start + Self.headerBytes, length: head & 0xFF == 6 ? length : 0)
        input.moveReaderIndex(forwardBy: Self.headerBytes + length)
        let isAcknowledgement = flags & 1 == 1
        switch UInt8(truncatingIfNeeded: head) {
        case Kind.data:
            unacknowledged += UInt32(length)
            if unacknowledged > Self.windowStep / 2 {
                writeWindowUpdate(unacknowledged)
                unacknowledged = 0
            }
            if isAcknowledgement { accept(stream) }
        case Kind.headers where isAcknowledgement: accept(stream)
        case Kind.settings where !isAcknowledgement:
            writeFrame(Kind.settings, flags: 1, stream: 0, [])
        case Kind.ping where !isAcknowledgement:
            writeFrame(Kind.ping, flags: 1, stream: 0, payload ?? [])
        default: break
        }
        return true
    }

    /// Ends a stream with `:status 200`, which is entry 8 of the static table (RFC 7541).
    private func accept(_ stream: UInt32) {
        writeFrame(Kind.headers, flags: 0x5, stream: stream, [0x88])
    }

    private func writeWindowUpdate(_ bytes: UInt32) {
        let parts = [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: bytes >> $0) }
        writeFrame(Kind.windowUpdate, flags: 0, stream: 0, parts)
    }

    private func writeFrame(_ kind: UInt8, flags: UInt8, stream: UInt32, _ payload: [UInt8]) {
        output.writeInteger(UInt32(payload.count) << 8 | UInt32(kind))
        output.writeInteger(flags)
        output.writeInteger(stream)
        output.writeBytes(payload)
    }

    private func flush(_ context: ChannelHandlerContext) {
        guard output.readableBytes > 0 else { return }
        context.writeAndFlush(wrapOutboundOut(output), promise: nil)
        output = context.channel.allocator.buffer(capacity: 4096)
    }
}
