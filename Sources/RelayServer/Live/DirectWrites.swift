import NIOCore
import NIOSSL
import Platform

/// Writes to a connection past its channel, while the channel has nothing of its own to write.
///
/// One change for ten thousand clients is ten thousand writes. For each of them, the channel's
/// pipeline and queue would cost a quarter of the relay's processor time.
struct DirectWrites {
    /// `nil` if bytes have to go through the channel, because TLS encrypts them there.
    private let socket: SocketHandle?
    /// Whether TLS encrypts what is sent, so that this connection's bytes are like no other's.
    let isEncrypted: Bool
    /// Whether the channel may still have bytes that must be sent first.
    private var mayHaveQueue = true

    /// Creates the writes of a connection that is not open yet.
    init() { (socket, isEncrypted) = (nil, false) }

    /// Creates the writes of the connection that `context` belongs to.
    init(of context: ChannelHandlerContext) {
        let pipeline = context.pipeline.syncOperations
        isEncrypted = (try? pipeline.context(handlerType: NIOSSLServerHandler.self)) != nil
        let handle = try? pipeline.withUnsafeTransportIfAvailable { (handle: CInt) in handle }
        socket = isEncrypted ? nil : handle.map { SocketHandle($0) }
    }

    /// Notes that the channel has been given bytes.
    mutating func noteQueue() { mayHaveQueue = true }

    /// Sends what the connection takes at once; on its event loop.
    ///
    /// - Returns: The bytes that must be given to the channel; `nil` if all have been sent.
    mutating func send(_ bytes: ByteBuffer, of channel: any Channel) -> ByteBuffer? {
        // A channel that has closed its socket is no longer active, from the same turn on.
        guard let socket, channel.isActive, !hasQueue(channel) else {
            mayHaveQueue = true
            return bytes
        }
        let count = socket.send(bytes.readableBytesSpan)
        guard count < bytes.readableBytes else { return nil }
        mayHaveQueue = true
        var rest = bytes
        rest.moveReaderIndex(forwardBy: count)
        return rest
    }

    private mutating func hasQueue(_ channel: any Channel) -> Bool {
        guard mayHaveQueue else { return false }
        let queued = try? channel.syncOptions?.getOption(ChannelOptions.bufferedWritableBytes)
        mayHaveQueue = queued != 0
        return mayHaveQueue
    }
}
