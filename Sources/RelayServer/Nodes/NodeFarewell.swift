import HTTPTypes
import NIOCore
import NIOHTTPTypes
import ServiceLifecycle
import Synchronization

/// The number of open calls of other relays, over all their connections.
final class NodeCalls: Sendable {
    private let count = Atomic<Int>(0)

    /// Whether there is any.
    var isAny: Bool { count.load(ordering: .acquiring) > 0 }

    func begin() { count.wrappingAdd(1, ordering: .acquiringAndReleasing) }
    func end() { count.wrappingSubtract(1, ordering: .acquiringAndReleasing) }
}

/// Ends a connection from another relay when this relay ends; each connection has one.
///
/// If a connection closes while a call is on its way, the other relay cannot know whether the call
/// was handled, and has to refuse it. So no connection closes before the other relay was told that
/// nothing more is taken. This is in the head of the last answer. If no answer is in progress, or
/// its head was already sent, it is in an informational answer (199) that belongs to no request.
/// Later requests are not handled, and the other relay knows that. An older version takes the 199
/// for a permission to continue; it learns the truth from the answer to its call.
final class NodeFarewell: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    /// How long the other relay has to close a connection that was given up.
    private static let patience = TimeAmount.milliseconds(750)
    /// The informational answer that gives the connection up.
    ///
    /// A relay that does not know it closes a connection on which it waits for nothing.
    private static let leaving = HTTPResponse(
        status: HTTPResponse.Status(code: 199, reasonPhrase: "Leaving"),
        headerFields: [.nodeDeclined: "no more calls on this connection"])
    /// The answer to a call that was on its way by then.
    private static let declining = HTTPResponse(
        status: .misdirectedRequest,
        headerFields: [
            .nodeDeclined: "no more calls on this connection", .connection: "close",
            .contentLength: "0",
        ])

    private let calls: NodeCalls
    private var open = 0
    private var isEnding = false
    /// Whether later handlers still have to be told of the end.
    private var owesEnd = false
    /// Whether the head of the current answer was sent without saying that it is the last.
    private var isPlain = false
    /// Whether the connection changes to another protocol.
    private var isUpgraded = false
    /// Whether the other relay was told that nothing more is taken.
    private var hasLeft = false
    private var context: ChannelHandlerContext?

    init(_ calls: NodeCalls) { self.calls = calls }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        // If HTTP is removed from the connection, no other event tells of its end.
        context.channel.closeFuture.assumeIsolated().whenComplete { [self] _ in
            while open > 0 { finish() }
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !hasLeft else { return decline(unwrapInboundIn(data), context) }
        if case .head = unwrapInboundIn(data) {
            open += 1
            calls.begin()
        }
        context.fireChannelRead(data)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        // What arrived will not be handled, and nothing of it was answered.
        if event is TakenConnection.Dropped { return leave(context) }
        guard event is ChannelShouldQuiesceEvent else {
            return context.fireUserInboundEventTriggered(event)
        }
        guard !isEnding else { return }
        (isEnding, owesEnd) = (true, true)
        // Later handlers know the call, and close the connection after its answer.
        guard open == 0 else { return tellEnd() }
        leave(context)
        _ = context.eventLoop.assumeIsolated().scheduleTask(in: Self.patience) { [weak self] in
            self?.tellEnd()
        }
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .head(let head) where head.status.kind == .informational:
            guard head.status == .switchingProtocols else { break }
            isUpgraded = true
            finish()
        case .head(var head):
            isPlain = !isEnding
            guard isEnding else { break }
            // The other relay must not send another call right after this one.
            head.headerFields[.connection] = "close"
            return context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .body: break
        case .end:
            finish()
            guard isEnding, isPlain else { break }
            context.write(data, promise: promise)
            return leave(context)
        }
        context.write(data, promise: promise)
    }

    /// Tells the other relay that nothing more is taken, and nothing was since the last complete
    /// answer.
    private func leave(_ context: ChannelHandlerContext) {
        guard !hasLeft, !isUpgraded else { return }
        hasLeft = true
        context.write(wrapOutboundOut(.head(Self.leaving)), promise: nil)
        context.flush()
    }

    private func decline(_ part: HTTPRequestPart, _ context: ChannelHandlerContext) {
        guard case .head = part else { return }
        context.write(wrapOutboundOut(.head(Self.declining)), promise: nil)
        context.write(wrapOutboundOut(.end(nil)), promise: nil)
        context.flush()
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

/// The listener for other relays, whose orderly end waits for open calls but not for idle
/// connections.
final class NodeListener: Service {
    /// How often it checks for open calls.
    private static let look = Duration.milliseconds(5)

    private let listener: any Service
    private let calls: NodeCalls
    private let clock: any Clock<Duration>
    private let serving = Mutex<Task<Void, any Error>?>(nil)

    /// Creates the service around `listener`, which counts its calls in `calls`.
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

    /// Waits until the idle connections have closed too.
    func farewell() async { _ = await serving.withLock { $0 }?.result }
}
