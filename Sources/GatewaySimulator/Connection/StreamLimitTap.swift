import NIOCore
import NIOHTTP2

/// Writes the true stream limit into outgoing SETTINGS frames without the HTTP/2 handler's
/// knowledge.
///
/// The handler would enforce a limit that it knows by closing the connection. Here, a violation
/// must be seen, recorded and answered by the configured policy. So the handler is given
/// ``concealed(_:)``, a limit that no sender reaches, and the true limit replaces it in the frame
/// on its way out. The tap can also hold back all output, so that the SETTINGS arrive late.
final class StreamLimitTap: ChannelOutboundHandler, NIOHTTP2FrameDelegate {
    typealias OutboundIn = IOData
    typealias OutboundOut = ByteBuffer

    /// The sizes of a frame's header and of a setting of 16 and 32 bits (RFC 9113 §§4.1 and 6.5.1).
    private static let headerBytes = 9
    private static let settingBytes = 6
    private static let concealment = 0x4000_0000

    private let delay: TimeAmount
    private var held: [(ByteBuffer, EventLoopPromise<Void>?)]?
    private var isSettingsNext = false
    /// Whether a GOAWAY was written, by this gateway's code or by the HTTP/2 handler.
    private(set) var hasSentGoAway = false

    /// Creates a tap that holds back all output for `delay` after the connection was opened.
    init(delay: TimeAmount) {
        self.delay = delay
    }

    /// Returns the setting that announces `limit`, in the form that the HTTP/2 handler must see.
    static func concealed(_ limit: Int) -> HTTP2Setting {
        HTTP2Setting(parameter: .maxConcurrentStreams, value: concealment + limit)
    }

    /// Notes each frame just before its bytes pass.
    func wroteFrame(_ frame: HTTP2Frame) {
        switch frame.payload {
        case .settings(.settings): isSettingsNext = true
        case .goAway: hasSentGoAway = true
        default: break
        }
    }

    /// Starts to hold back output, if there is a delay.
    func handlerAdded(context: ChannelHandlerContext) {
        guard delay > .nanoseconds(0) else { return }
        held = []
        let bound = NIOLoopBound((tap: self, context: context), eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: delay) {
            bound.value.tap.release(context: bound.value.context)
        }
    }

    /// Fails the writes that are still held back.
    func handlerRemoved(context: ChannelHandlerContext) {
        let held = held ?? []
        self.held = nil
        for (_, promise) in held { promise?.fail(ChannelError.ioOnClosedChannel) }
    }

    /// Passes bytes on, with the true stream limit in place.
    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .byteBuffer(var buffer) = unwrapOutboundIn(data) else {
            return context.write(data, promise: promise)
        }
        if isSettingsNext {
            isSettingsNext = false
            Self.reveal(in: &buffer)
        }
        if held != nil {
            held?.append((buffer, promise))
        } else {
            context.write(wrapOutboundOut(buffer), promise: promise)
        }
    }

    private func release(context: ChannelHandlerContext) {
        let frames = held ?? []
        held = nil
        for (buffer, promise) in frames { context.write(wrapOutboundOut(buffer), promise: promise) }
        context.flush()
    }

    /// Replaces each concealed limit in the SETTINGS frame with the true one.
    private static func reveal(in frame: inout ByteBuffer) {
        var index = frame.readerIndex + headerBytes
        while let identifier = frame.getInteger(at: index, as: UInt16.self),
            let value = frame.getInteger(at: index + 2, as: UInt32.self)
        {
            if identifier == 3, value >= UInt32(concealment) {
                frame.setInteger(value - UInt32(concealment), at: index + 2)
            }
            index += settingBytes
        }
    }
}
