import NIOCore
import RelayModel
import Storage

/// What a connection holds of what has come, and who ends it from outside.
extension LiveSocket {
    /// Notes how much is held of frames, and ends the connection if there is no room for it.
    func noteHeld() {
        // Of whoever is told to go it is not counted, and so not kept.
        if isClosing { messages.drop(beyond: FrameRoom.free) }
        guard context != nil, !isClosing else { return }
        let bytes = messages.pending + inbox.reduce(working ?? 0) { $0 + $1.count }
        let container = session.identity?.settings.key
        guard !access.frames.set(&held, to: bytes, of: container) else { return }
        close(
            LiveEnd(
                .notNow,
                APIError(
                    .tryAgainLater, "there is no memory for these frames now", retryAfter: 5)))
    }

    /// Gives back what is held.
    func forgetHeld() { _ = access.frames.set(&held, to: 0, of: nil) }

    /// A client that says no more has gone: it could not even answer a close (RFC 6455, §7.1.1).
    ///
    /// The listener leaves half a connection open, for the sake of HTTP.
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
