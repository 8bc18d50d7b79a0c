import NIOCore
import RelayModel
import Synchronization

/// Notices that the client of a connection has gone; each connection has one.
///
/// Once a request was read completely, no other code watches the connection. Without this handler,
/// the answer would be computed although the client has gone.
final class ClientWatch: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = Any
    typealias InboundOut = Any

    private let departure = ClientDeparture()

    /// Returns the departure of the client behind `context`.
    static func departure(of context: RelayContext) async throws -> ClientDeparture {
        guard let channel = context.channel else { return ClientDeparture() }
        return try await channel.eventLoop.submit {
            // A connection without a watch, as in tests, never departs.
            (try? channel.pipeline.syncOperations.handler(type: ClientWatch.self).departure)
                ?? ClientDeparture()
        }.get()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed? = event as? ChannelEvent { departure.happen() }
        if event is OpenConnections.LateHour { departure.happen(forRelaysEnd: true) }
        context.fireUserInboundEventTriggered(event)
    }

    func channelInactive(context: ChannelHandlerContext) {
        departure.happen()
        context.fireChannelInactive()
    }
}

/// Whether a client has gone, with the work that must end then.
///
/// Concurrency: a lock protects the list; no closure is called while it is held.
final class ClientDeparture: Sendable {
    private struct State {
        var hasGone = false
        /// Whether the reason is the end of the relay.
        var isRelaysEnd = false
        var last: UInt64 = 0
        var endings: [UInt64: @Sendable () -> Void] = [:]
    }

    private let state = Mutex(State())

    /// Notes that the client has gone, or that the relay ends and the end is urgent.
    func happen(forRelaysEnd isRelaysEnd: Bool = false) {
        let endings = state.withLock { state in
            if !state.hasGone { state.isRelaysEnd = isRelaysEnd }
            state.hasGone = true
            defer { state.endings = [:] }
            return Array(state.endings.values)
        }
        for end in endings { end() }
    }

    /// Runs `body`, and cancels it if the client goes.
    ///
    /// - Throws: 499 for a client that has gone, to which no answer is sent; 503 if the relay ends,
    ///   so that the client retries; and what `body` throws.
    func ending<Value: Sendable>(
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let task = Task { try await body() }
        let number = add { task.cancel() }
        defer { remove(number) }
        do {
            return try await withTaskCancellationHandler {
                try await task.value
            } onCancel: {
                task.cancel()
            }
        } catch is CancellationError where state.withLock({ $0.hasGone }) {
            guard !state.withLock({ $0.isRelaysEnd }) else {
                throw APIError(.tryAgainLater, "the relay is shutting down", retryAfter: 1)
            }
            throw Self.gone
        }
    }

    /// The error of a request whose client has gone; it is not a failure of the relay, and is not
    /// sent.
    static let gone = APIError(.badRequest, "the client has gone", httpStatus: 499)

    /// Whether the client has gone, and not because the relay ends.
    var isClients: Bool { state.withLock { $0.hasGone && !$0.isRelaysEnd } }

    /// Calls `end` once the client goes, or at once if it has gone.
    ///
    /// - Returns: A function that cancels the registration.
    func whenGone(_ end: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
        let number = add(end)
        return { [self] in remove(number) }
    }

    private func add(_ end: @escaping @Sendable () -> Void) -> UInt64 {
        let (number, hasGone) = state.withLock { state in
            state.last += 1
            if !state.hasGone { state.endings[state.last] = end }
            return (state.last, state.hasGone)
        }
        if hasGone { end() }
        return number
    }

    private func remove(_ number: UInt64) {
        _ = state.withLock { $0.endings.removeValue(forKey: number) }
    }
}
