import HTTPTypes
import Live
import NIOCore
import RelayModel
import Synchronization

/// The WebSockets of a relay: the hubs of the event loops, the periodic work, and the shutdown.
final class LiveSockets: Sendable {
    /// The interval of the periodic work.
    private static let look = Duration.seconds(5)
    /// The number of intervals after which a stream is told how far everything has been sent.
    private static let looksPerBeat = 5
    /// The number of steps in which connections are told to go.
    private static let slices = 20

    let access: LiveAccess
    private let proxies: TrustedProxies
    private let clock: any Clock<Duration>
    private let now: @Sendable () -> Timestamp
    private let connections: OpenConnections
    private let state = Mutex(State())

    private struct State {
        var hubs: [ObjectIdentifier: LoopHub] = [:]
        var isOpen = true
        /// The last upgrade request, without what is specific to its client.
        var last: RelayRequest?
    }

    init(
        _ access: LiveAccess, proxies: TrustedProxies, connections: OpenConnections,
        clock: any Clock<Duration>, now: @escaping @Sendable () -> Timestamp
    ) {
        self.access = access
        self.proxies = proxies
        self.connections = connections
        self.clock = clock
        self.now = now
    }

    /// Whether new connections are admitted.
    var isOpen: Bool { state.withLock { $0.isOpen } }

    /// Returns the hub of an event loop.
    func hub(of loop: any EventLoop) -> LoopHub {
        state.withLock { state in
            if let hub = state.hubs[ObjectIdentifier(loop)] { return hub }
            let hub = LoopHub(loop)
            state.hubs[ObjectIdentifier(loop)] = hub
            return hub
        }
    }

    /// Returns the request for an upgrade from `client` to the address `own`; `nil` for another
    /// path.
    func request(
        of head: HTTPRequest, from client: ClientAddress?, to own: ClientAddress?
    ) -> RelayRequest? {
        guard var request = request(to: head.path ?? "") else { return nil }
        request.headers = Self.kept(head.headerFields)
        request.uuid = access.identifiers.uuid()
        request.receivedAt = now()
        request.authority = head.authority
        request.peer = client.map { address in
            proxies.peer(
                at: address, reached: own,
                forwardedFor: head.headerFields[values: .forwardedFor])
        }
        return request
    }

    /// Returns the common part of all requests for one target; `nil` for another path.
    ///
    /// A connection keeps its request while it is open, and nearly all name the same target.
    private func request(to target: String) -> RelayRequest? {
        let last = state.withLock { $0.last }
        if let last, last.target.utf8.elementsEqual(target.utf8) { return last }
        let parts = target.prefix { $0 != "?" }.split(
            separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 5, parts[1] == "live", parts[2] == "1" else { return nil }
        let request = RelayRequest(
            method: "GET", target: target,
            parameters: [
                "container": QueryParameters.decodePath(parts[3]),
                "environment": QueryParameters.decodePath(parts[4]),
            ], uuid: "", receivedAt: now())
        state.withLock { $0.last = request }
        return request
    }

    /// Returns the header fields that are kept while a connection is open: those that identify the
    /// client, and none of what browsers, proxies or others add.
    static func kept(_ fields: HTTPFields) -> HTTPFields {
        var kept = HTTPFields()
        for field in fields
        where useful.contains(field.name.canonicalName)
            && field.value.utf8.count <= longestField
        {
            kept.append(field)
        }
        return kept
    }

    /// The fields that are needed when a client says `hello` or renews its token.
    private static let useful: Set<String> = [
        "authorization", "ckapitoken", "host", "origin", "x-apple-cloudkit-request-iso8601date",
        "x-apple-cloudkit-request-keyid", "x-apple-cloudkit-request-signaturev1", "x-belfry-user",
    ]
    /// The maximum length of a kept field; no token is as long.
    private static let longestField = 16 * 1024

    /// Counts a connection among the open ones again, now that HTTP has left it.
    func note(_ channel: any Channel) {
        connections.add(channel)
        channel.closeFuture.whenComplete { [connections] _ in connections.remove(channel) }
    }

    // MARK: Time

    /// Does the periodic work until the task is cancelled.
    func run() async throws {
        for look in 1... {
            try await clock.sleep(for: Self.look)
            let moment = now()
            for hub in hubs { beat(hub, moment) }
            await access.look(at: moment, beats: look.isMultiple(of: Self.looksPerBeat))
        }
    }

    private var hubs: [LoopHub] { state.withLock { Array($0.hubs.values) } }

    private func beat(_ hub: LoopHub, _ moment: Timestamp) {
        let engine = access.engine
        hub.numbers(where: { $0.look(at: hub.loop.now, moment) }) { numbers in
            Task { await engine.beat(numbers) }
        }
    }

    /// Ends the connections that depend on what was revoked.
    ///
    /// After it returns, nothing more is shown under a schema that was replaced.
    func end(_ revocation: Revocation) async {
        if case .schema(let container) = revocation {
            await access.engine.noteSchemaChange(of: container)
        }
        access.end(revocation)
        let end = revocation.end
        for hub in hubs {
            hub.forEach { socket in
                if socket.session.depends(on: revocation) { socket.close(end) }
            }
        }
    }

    /// Returns the end for one of `count` clients, with the time to come back.
    private static func farewell(to number: UInt64, of count: Int) -> LiveEnd {
        LiveEnd(
            .goingAway,
            APIError(
                .tryAgainLater, "the relay is shutting down",
                retryAfter: 1 + Int64(number % UInt64(2 + count / 1000))))
    }

    /// Tells all clients to come back, spread over time, so that neither their going nor their
    /// return is a stampede.
    ///
    /// It takes a second for each thousand clients, and at most the configured time.
    func drain() async {
        state.withLock { $0.isOpen = false }
        let count = await access.engine.counts.clients
        access.endStreams(saying: { Self.farewell(to: $0, of: count) })
        let duration = min(access.bounds.drain, Duration.milliseconds(count))
        for slice in 0..<Self.slices {
            let isLast = slice == Self.slices - 1
            for hub in hubs {
                hub.forEach { socket in
                    guard isLast || socket.number % UInt64(Self.slices) == UInt64(slice) else {
                        return
                    }
                    socket.close(Self.farewell(to: socket.number, of: count))
                }
            }
            if !isLast { try? await clock.sleep(for: duration / Self.slices) }
        }
        // A waiting call would keep its listener, and so the relay, from ending if the database is
        // away.
        await access.engine.endWaiting()
    }
}
