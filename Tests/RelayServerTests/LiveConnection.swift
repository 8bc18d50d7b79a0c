import Foundation
import NIOCore
import NIOPosix
import RelayModel
import Synchronization

/// A WebSocket client for tests, written after RFC 6455 and without any code of the relay's.
final class LiveConnection: Sendable {
    private let channel: any Channel
    private let heard: AsyncStream<ByteBuffer>
    private let rest = Mutex(ByteBuffer())
    /// The close code that the relay sent.
    let closeCode = Mutex<UInt16?>(nil)
    /// Whether it answers pings, as browsers do.
    ///
    /// It answers those that a test comes across while it reads.
    let answersPings = Mutex(false)

    private final class Heard: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer

        let continuation: AsyncStream<ByteBuffer>.Continuation

        init(_ continuation: AsyncStream<ByteBuffer>.Continuation) {
            self.continuation = continuation
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            continuation.yield(unwrapInboundIn(data))
        }

        func channelInactive(context: ChannelHandlerContext) { continuation.finish() }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            context.close(promise: nil)
        }
    }

    private init(_ channel: any Channel, _ heard: AsyncStream<ByteBuffer>) {
        self.channel = channel
        self.heard = heard
    }

    /// Connects and asks for an upgrade, followed by the bytes of `first`.
    ///
    /// - Returns: The connection, and the head of the response.
    static func open(
        _ port: Int, path: String, headers: [String] = [], first: String = ""
    ) async throws -> (LiveConnection, head: String) {
        let (stream, continuation) = AsyncStream.makeStream(of: ByteBuffer.self)
        let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .channelInitializer { $0.pipeline.addHandler(Heard(continuation)) }
            .connect(host: "127.0.0.1", port: port).get()
        let connection = LiveConnection(channel, stream)
        let lines =
            [
                "GET \(path) HTTP/1.1", "Host: localhost", "Upgrade: websocket",
                "Connection: Upgrade", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
                "Sec-WebSocket-Version: 13", "Sec-WebSocket-Protocol: belfry.live.v1",
            ] + headers
        try await channel.writeAndFlush(
            ByteBuffer(string: first + lines.joined(separator: "\r\n") + "\r\n\r\n"))
        return (connection, await connection.head())
    }

    private func head() async -> String {
        while true {
            let text = rest.withLock { String(buffer: $0) }
            if let end = text.firstRange(of: "\r\n\r\n") {
                let head = String(text[..<end.lowerBound])
                rest.withLock { $0.moveReaderIndex(forwardBy: head.utf8.count + 4) }
                return head
            }
            guard await more() else { return text }
        }
    }

    private func more() async -> Bool {
        for await var part in heard {
            rest.withLock { _ = $0.writeBuffer(&part) }
            return true
        }
        return false
    }

    // MARK: Frames

    /// Sends a text frame, or one with another opcode, unfinished or unmasked.
    func send(
        _ text: String, opcode: UInt8 = 1, isLast: Bool = true, masks: Bool = true
    ) async throws {
        var buffer = ByteBuffer()
        buffer.writeInteger(opcode | (isLast ? 0x80 : 0))
        let count = text.utf8.count
        let mask: UInt8 = masks ? 0x80 : 0
        switch count {
        case ..<126: buffer.writeInteger(UInt8(count) | mask)
        case ..<65_536:
            buffer.writeInteger(126 | mask)
            buffer.writeInteger(UInt16(count))
        default:
            buffer.writeInteger(127 | mask)
            buffer.writeInteger(UInt64(count))
        }
        let key: [UInt8] = [1, 2, 3, 4]
        if masks { buffer.writeBytes(key) }
        buffer.writeBytes(
            text.utf8.enumerated().map { masks ? $1 ^ key[$0 % 4] : $1 })
        try await channel.writeAndFlush(buffer)
    }

    /// Answers a ping.
    func pong(_ payload: [UInt8]) async throws {
        let key: [UInt8] = [1, 2, 3, 4]
        var buffer = ByteBuffer(bytes: [0x8A, UInt8(payload.count) | 0x80] + key)
        buffer.writeBytes(payload.enumerated().map { $1 ^ key[$0 % 4] })
        try await channel.writeAndFlush(buffer)
    }

    func send(_ json: JSONValue) async throws { try await send(json.text) }

    func close() async throws { try await channel.close() }

    /// Sends empty frames, and resets the connection while the relay reads them.
    func reset(sending count: Int, _ opcode: UInt8) async throws {
        let provider = channel as? any SocketOptionProvider
        try await provider?.setSoLinger(linger(l_onoff: 1, l_linger: 0)).get()
        var buffer = ByteBuffer()
        for _ in 0..<count { buffer.writeBytes([0x80 | opcode, 0x80, 0, 0, 0, 0]) }
        channel.writeAndFlush(buffer, promise: nil)
        try? await channel.close()
    }

    /// Stops reading from the network until ``resume()``.
    func pause() async throws { try await channel.setOption(.autoRead, value: false).get() }

    /// Reads from the network again.
    func resume() async throws { try await channel.setOption(.autoRead, value: true).get() }

    /// Returns the next text frame; `nil` once the connection is closed.
    func frame() async -> JSONObject? {
        while true {
            if let (opcode, payload) = take() {
                if opcode == 8 {
                    closeCode.withLock { code in
                        code = payload.count < 2 ? 0 : UInt16(payload[0]) << 8 | UInt16(payload[1])
                    }
                    return nil
                }
                if opcode == 9, answersPings.withLock({ $0 }) { try? await pong(payload) }
                guard opcode == 1 else { continue }
                if case .object(let object)? = try? JSONValue(parsing: payload) { return object }
                return nil
            }
            guard await more() else { return nil }
        }
    }

    private func take() -> (opcode: UInt8, payload: [UInt8])? {
        rest.withLock { rest in
            var reading = rest
            guard let first = reading.readInteger(as: UInt8.self),
                let second = reading.readInteger(as: UInt8.self)
            else { return nil }
            var count = Int(second)
            if second == 126 {
                guard let long = reading.readInteger(as: UInt16.self) else { return nil }
                count = Int(long)
            } else if second == 127 {
                guard let long = reading.readInteger(as: UInt64.self) else { return nil }
                count = Int(long)
            }
            guard let payload = reading.readBytes(length: count) else { return nil }
            rest = reading
            return (first & 0x0F, payload)
        }
    }

    /// Returns the next frame of this type.
    func frame(_ type: String) async -> JSONObject? {
        while let frame = await frame() {
            if frame["type"] == .string(type) { return frame }
        }
        return nil
    }

    /// Returns the frames up to and including the next one of this type.
    func frames(until type: String) async -> [JSONObject] {
        var frames: [JSONObject] = []
        while let frame = await frame() {
            frames.append(frame)
            if frame["type"] == .string(type) { break }
        }
        return frames
    }
}
