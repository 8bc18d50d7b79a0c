import HTTPTypes
import NIOCore
import NIOHTTPTypes

/// Delays the head of an answer until the first part of its body, so that both are sent in one
/// write; each connection has one.
///
/// A client that receives a 421 in two packets may conclude that it must not use the connection,
/// and send the request again on another one before it reads the body (the Fetch standard, and
/// Node's).
final class WholeAnswers: ChannelOutboundHandler, RemovableChannelHandler {
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private var hasHeadAlone = false

    func write(
        context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?
    ) {
        switch unwrapOutboundIn(data) {
        // An informational head is an answer of its own.
        case .head(let head): hasHeadAlone = head.status.kind != .informational
        case .body, .end: hasHeadAlone = false
        }
        context.write(data, promise: promise)
    }

    func flush(context: ChannelHandlerContext) {
        if !hasHeadAlone { context.flush() }
    }
}
