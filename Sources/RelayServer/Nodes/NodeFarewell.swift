import HTTPTypes
import NIOCore
import NIOHTTPTypes
import ServiceLifecycle
import Synchronization

/// How many calls of other relays are open, over all their connections.
final class NodeCalls: Sendable {
    private let count = Atomic<Int>(0)

    /// Whether any is.
    var isAny: Bool { count.load(ordering: .acquiring) > 0 }

    func begin() { count.wrappingAdd(1, ordering: .acquiringAndReleasing) }
    func end() { count.wrappingSubtract(1, ordering: .acquiringAndReleasing) }
}

/// Keeps a connection from another relay for a moment when this relay ends, if nothing is open on
/// it; one for each connection.
///
/// A call that is on its way to a connection which closes may have been worked, for all that the
/// other relay knows, which has to refuse it then. So the connection ends after the next call,
/// which is declined, or once the other relays have seen that another one owns the store.
final class NodeFarewell: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    /// How long it is kept: three times as long as all shards take to be looked at.
    private static let patience = TimeAmount.milliseconds(750)

    private let calls: NodeCalls
    private var open = 0
    private var isEnding = false
    /// Whether those behind are to be told of the end still.
    private var owesEnd = false
    private var context: ChannelHandlerContext?

    init(_ calls: NodeCalls) { self.calls = calls }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        // Where HTTP is taken off the connection, nothing else is heard of its end.
        context.channel.closeFuture.assumeIsolated().whenComplete { [self] _ in
            while open > 0 { finish() }
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if case .head = unwrapInboundIn(data) {
            open += 1
            calls.begin()
        }
        context.fireChannelRead(data)
        // Those behind know of the call now, and close the connection after its answer.
        tellEnd()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event is ChannelShouldQuiesceEvent else {
            return context.fireUserInboundEventTriggered(event)
        }
        guard !isEnding else { return }
        (isEnding, owesEnd) = (true, true)
        guard open == 0 else { return tellEnd() }
        _ = context.eventLoop.assumeIsolated().scheduleTask(in: Self.patience) { [weak self] in
            self?.tellEnd()
        }
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .head(var head) where isEnding && head.status.kind != .informational:
            // Nobody is to send another call on its heels.
            head.headerFields[.connection] = "close"
            return context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .head(let head): if head.status == .switchingProtocols { finish() }
        case .body: break
        case .end: finish()
        }
        context.write(data, promise: promise)
    }

    private func finish() {
        guard open > 0 else { return }
        open -= 1
        calls.end()
    }

    private func tellEnd() {
        guard owesEnd else { return }
        owesEnd = false
        context?.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
    }
}

/// The listener for other relays: an orderly end waits for the calls that are open there, and not
/// for connections that are kept.
final class NodeListener: Service {
    /// How often it is looked whether calls are open still.
    private static let look = Duration.milliseconds(5)

    private let listener: any Service
    private let calls: NodeCalls
    private let clock: any Clock<Duration>
    private let serving = Mutex<Task<Void, any Error>?>(nil)

    /// `listener` counts its calls in `calls`.
    init(_ listener: any Service, _ calls: NodeCalls, clock: any Clock<Duration>) {
        self.listener = listener
        self.calls = calls
        self.clock = clock
    }

    func run() async throws {
        let serving = Task { [listener] in try await listener.run() }
        self.serving.withLock { $0 = serving }
        let (ends, end) = AsyncStream.makeStream(
            of: Result<Void, any Error>.self, bufferingPolicy: .bufferingOldest(1))
        Task { _ = end.yield(await serving.result) }
        Task { [calls, clock] in
            try? await gracefulShutdown()
            while calls.isAny { try? await clock.sleep(for: Self.look) }
            end.yield(.success(()))
        }
        for await first in ends { return try first.get() }
    }

    /// Returns once the connections that are kept have gone too.
    func farewell() async { _ = await serving.withLock { $0 }?.result }
}
