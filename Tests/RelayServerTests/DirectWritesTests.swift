import NIOCore
import NIOPosix
import NIOSSL
import Synchronization
import Testing

@testable import RelayServer

@Suite struct DirectWritesTests {
    /// The end of the connection that writes.
    private final class Writer: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer

        private let writes = Mutex(DirectWrites())
        private let opened: @Sendable (any Channel) -> Void

        /// `opened` is called once bytes can be sent.
        init(opened: @escaping @Sendable (any Channel) -> Void) { self.opened = opened }

        func handlerAdded(context: ChannelHandlerContext) {
            let direct = DirectWrites(of: context)
            writes.withLock { $0 = direct }
        }

        func channelActive(context: ChannelHandlerContext) {
            opened(context.channel)
            context.fireChannelActive()
        }

        var isEncrypted: Bool { writes.withLock { $0.isEncrypted } }

        func send(_ bytes: ByteBuffer, of channel: any Channel) -> ByteBuffer? {
            writes.withLock { $0.send(bytes, of: channel) }
        }
    }

    /// What the other end has read.
    private final class Reader: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer

        let bytes = Mutex<[UInt8]>([])

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let came = Array(unwrapInboundIn(data).readableBytesView)
            bytes.withLock { $0 += came }
        }
    }

    private struct Ends {
        let writer: Writer
        let channel: any Channel
        let reader: Reader
        let client: any Channel
        let server: any Channel

        /// Sends directly, on the loop of the connection.
        func send(_ bytes: ByteBuffer) async throws -> ByteBuffer? {
            let (writer, channel) = (writer, channel)
            return try await channel.eventLoop.submit { writer.send(bytes, of: channel) }.get()
        }

        func close() async throws {
            try? await client.close().get()
            try? await channel.close().get()
            try await server.close().get()
        }
    }

    /// Connects two ends over the loopback interface, of which the other one reads when asked.
    ///
    /// With `pass`, TLS encrypts the connection, and the other end reads from the beginning.
    private static func connect(_ pass: NodePass? = nil) async throws -> Ends {
        let accepted = AsyncStream.makeStream(of: (any Channel).self)
        let (writer, reader) = (Writer { accepted.continuation.yield($0) }, Reader())
        let group = MultiThreadedEventLoopGroup.singleton
        let serving = try pass.map { try NIOSSLContext(configuration: $0.listening) }
        let asking = try pass?.asking()
        let server = try await ServerBootstrap(group: group)
            .childChannelOption(.socketOption(.so_sndbuf), value: 16 * 1024)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    if let serving {
                        try pipeline.addHandler(NIOSSLServerHandler(context: serving))
                    }
                    try pipeline.addHandler(writer)
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let client = try await ClientBootstrap(group: group)
            .channelOption(.autoRead, value: pass != nil)
            .channelOption(.socketOption(.so_rcvbuf), value: 16 * 1024)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    if let asking {
                        try pipeline.addHandler(
                            try NIOSSLClientHandler(context: asking, serverHostname: nil))
                    }
                    try pipeline.addHandler(reader)
                }
            }
            .connect(to: #require(server.localAddress)).get()
        var channels = accepted.stream.makeAsyncIterator()
        let channel = try #require(await channels.next())
        return Ends(
            writer: writer, channel: channel, reader: reader, client: client, server: server)
    }

    @Test func `bytes beyond what the connection takes go through the channel in order`()
        async throws
    {
        let ends = try await Self.connect()
        var sent: [UInt8] = []
        var left: ByteBuffer?
        for number in 0..<4096 where left == nil {
            let piece = [UInt8](repeating: UInt8(number % 251), count: 1000)
            sent += piece
            left = try await ends.send(ByteBuffer(bytes: piece))
        }
        let rest = try #require(left, "nobody reads, and everything was taken")
        let written = ends.channel.eventLoop.makePromise(of: Void.self)
        ends.channel.writeAndFlush(rest, promise: written)
        // What the channel holds comes first.
        let behind = ByteBuffer(bytes: [UInt8](repeating: 252, count: 10))
        #expect(try await ends.send(behind) == behind)
        try await ends.client.setOption(.autoRead, value: true).get()
        try await written.futureResult.get()
        #expect(try await ends.send(behind) == nil)
        sent += [UInt8](repeating: 252, count: 10)
        try await ends.channel.close().get()
        try await ends.client.closeFuture.get()
        #expect(ends.reader.bytes.withLock { $0 } == sent)
        try await ends.close()
    }

    @Test func `nothing is sent on a connection that was closed`() async throws {
        let ends = try await Self.connect()
        #expect(!ends.writer.isEncrypted)
        let bytes = ByteBuffer(string: "{}")
        #expect(try await ends.send(bytes) == nil)
        let (writer, channel) = (ends.writer, ends.channel)
        let left = try await channel.eventLoop.submit {
            // The number of its socket may be that of another connection from here on.
            channel.close(promise: nil)
            return writer.send(bytes, of: channel)
        }.get()
        #expect(left == bytes)
        try await ends.close()
    }

    /// Bytes beside TLS would be plain text, and end the connection.
    @Test func `nothing is sent past TLS`() async throws {
        let ends = try await Self.connect(try NodePass { World.real.randomBytes($0) })
        #expect(ends.writer.isEncrypted)
        let bytes = ByteBuffer(string: "{}")
        #expect(try await ends.send(bytes) == bytes)
        try await ends.channel.writeAndFlush(bytes).get()
        #expect(try await ends.send(bytes) == bytes)
        try await ends.channel.close().get()
        try await ends.client.closeFuture.get()
        #expect(ends.reader.bytes.withLock { $0 } == Array("{}".utf8))
        try await ends.close()
    }
}
