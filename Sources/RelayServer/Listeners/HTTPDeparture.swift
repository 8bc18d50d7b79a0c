import HummingbirdCore
import NIOCore
import NIOHTTP1

/// Removes HTTP from a connection that changes to another protocol.
enum HTTPDeparture {
    /// Puts `handler` before all handlers of HTTP, which then receive and send nothing more.
    ///
    /// Handlers that can be removed are removed. It must be called on the connection's event loop,
    /// after the last part of HTTP was written.
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
