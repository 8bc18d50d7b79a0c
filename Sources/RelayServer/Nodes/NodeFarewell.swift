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

/// Ends a connection from another relay when this relay ends; one for each connection.
///
/// A call that is on its way to a connection which closes may have been worked, for all that the
/// other relay knows, which has to refuse it then. So no connection closes before the other relay
/// was told that nothing more is taken: in the head of the answer that is the last, or, where none
/// is under way or its head has gone, in an informational answer to nothing. What comes after that
/// is worked by nobody, and the other relay knows it; a former version, which takes such an answer
/// for a word to go on, is told in the answer that it waits for.
final class NodeFarewell: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    /// How long the other relay has to close a connection that was given up.
    private static let patience = TimeAmount.milliseconds(750)
    /// What gives it up; a relay that does not know it closes one on which it waits for nothing.
    private static let leaving = HTTPResponse(
        status: HTTPResponse.Status(code: 199, reasonPhrase: "Leaving"),
        headerFields: [.nodeDeclined: "it takes nothing more here"])
    /// What answers a call that was on its way by then.
    private static let declining = HTTPResponse(
        status: .misdirectedRequest,
        headerFields: [
            .nodeDeclined: "it takes nothing more here", .connection: "close",
            .contentLength: "0",
        ])

    private let calls: NodeCalls
    private var open = 0
    private var isEnding = false
    /// Whether those behind are to be told of the end still.
    private var owesEnd = false
    /// Whether the head of the answer under way has gone, and did not say that it is the last.
    private var isPlain = false
    /// Whether the connection becomes another protocol's.
    private var isUpgraded = false
    /// Whether the other relay was told that nothing more is taken.
    private var hasLeft = false
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
        guard !hasLeft else { return decline(unwrapInboundIn(data), context) }
        if case .head = unwrapInboundIn(data) {
            open += 1
            calls.begin()
        }
        context.fireChannelRead(data)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        // Nobody will work what has come, and none of it was answered.
        if event is TakenConnection.Dropped { return leave(context) }
        guard event is ChannelShouldQuiesceEvent else {
            return context.fireUserInboundEventTriggered(event)
        }
        guard !isEnding else { return }
        (isEnding, owesEnd) = (true, true)
        // Those behind know of the call, and close the connection after its answer.
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
            // Nobody is to send another call on its heels.
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

    /// Says that nothing is taken any more, and nothing was since the last whole answer.
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
