import HummingbirdCore
import NIOCore
import NIOHTTP1

/// Takes HTTP off a connection that is another protocol's from now on.
enum HTTPDeparture {
    /// Puts `handler` before everything of HTTP, which hears and says nothing any more.
    ///
    /// What can go, goes. Called on the connection's event loop, once the last of HTTP is written.
    static func replace(
        _ pipeline: ChannelPipeline.SynchronousOperations, by handler: any ChannelHandler
    ) throws {
        let http = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
        try pipeline.addHandler(handler, position: .before(http))
        pipeline.removeHandler(http, promise: nil)
        let watch = try pipeline.handler(type: ConnectionWatch.self)
        pipeline.removeHandler(watch, promise: nil)
        for handler in [
            try pipeline.handler(type: HTTPResponseEncoder.self) as any RemovableChannelHandler,
            try pipeline.handler(type: HTTPConnectionStateHandler.self),
            try pipeline.handler(type: ClientWatch.self),
            try pipeline.handler(type: WholeAnswers.self),
        ] { pipeline.removeHandler(handler, promise: nil) }
    }
}
