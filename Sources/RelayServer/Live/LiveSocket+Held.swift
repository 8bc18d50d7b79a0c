import NIOCore
import RelayModel
import Storage

/// What a connection holds of received frames, and how it ends from outside.
extension LiveSocket {
    /// Notes how many bytes of frames are held, and ends the connection if there is no room for
    /// them.
    func noteHeld() {
        // A connection that is closing is not counted, so its frames are not kept.
        if isClosing { messages.drop(beyond: FrameRoom.free) }
        guard context != nil, !isClosing else { return }
        let bytes = messages.pending + inbox.reduce(working ?? 0) { $0 + $1.count }
        let container = session.identity?.settings.key
        guard !access.frames.set(&held, to: bytes, of: container) else { return }
        close(
            LiveEnd(
                .notNow,
                APIError(
                    .tryAgainLater, "there is not enough memory for these frames at the moment",
                    retryAfter: 5)))
    }

    /// Gives the room of the held frames back.
    func forgetHeld() { _ = access.frames.set(&held, to: 0, of: nil) }

    /// Closes the connection if the client will send nothing more, because it could not even answer
    /// a close frame (RFC 6455, §7.1.1).
    ///
    /// The listener keeps half-closed connections open, for HTTP.
    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed? = event as? ChannelEvent {
            context.close(promise: nil)
        } else {
            context.fireUserInboundEventTriggered(event)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }
}
