import HummingbirdCore
import Logging
import NIOCore
import NIOHTTPTypes
import Synchronization

/// Hummingbird's HTTP channel, for connections that may be dropped before they are served.
///
/// A connection that is accepted at the moment at which its listener ends is dropped behind the
/// listener. NIO traps if an unfinished writer is deallocated.
struct TakenChannel: ServerChildChannel {
    let base: HTTP1Channel

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<TakenConnection> {
        base.setup(channel: channel, logger: logger).map { TakenConnection($0) }
    }

    func handle(value: TakenConnection, logger: Logger) async {
        await base.handle(value: value.take(), logger: logger)
    }
}

/// A connection on its way to the code that serves it; it is closed if it does not get there.
final class TakenConnection: ServerChildChannelValue {
    /// Tells the handlers of a connection that it will not be served, before it is closed.
    struct Dropped: Sendable {}

    private let value: HTTP1Channel.Value
    private let isTaken = Atomic(false)

    init(_ value: HTTP1Channel.Value) {
        self.value = value
    }

    var channel: any Channel { value.channel }

    /// Hands the connection over.
    func take() -> HTTP1Channel.Value {
        isTaken.store(true, ordering: .relaxed)
        return value
    }

    deinit {
        guard !isTaken.load(ordering: .relaxed) else { return }
        let value = value
        value.channel.pipeline.fireUserInboundEventTriggered(Dropped())
        Task { try? await value.executeThenClose { _, _ in } }
    }
}
