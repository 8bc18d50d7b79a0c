import HTTPTypes
import NIOCore
import NIOHTTPTypes

/// Holds the head of an answer back until there is something of its body, so that both leave in one
/// write; one for each connection.
///
/// A client that gets a 421 in two packets may take the connection for one that it should not have
/// used, and asks again on another before it has read the body (the Fetch standard, and Node's).
final class WholeAnswers: ChannelOutboundHandler, RemovableChannelHandler {
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private var hasHeadAlone = false

    func write(
        context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?
    ) {
        switch unwrapOutboundIn(data) {
        // What is informational is an answer of its own.
        case .head(let head): hasHeadAlone = head.status.kind != .informational
        case .body, .end: hasHeadAlone = false
        }
        context.write(data, promise: promise)
    }

    func flush(context: ChannelHandlerContext) {
        if !hasHeadAlone { context.flush() }
    }
}
