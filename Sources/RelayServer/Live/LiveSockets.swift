import HTTPTypes
import Live
import NIOCore
import RelayModel
import Synchronization

/// The WebSockets of a relay: the hubs of the event loops, time, and the end.
final class LiveSockets: Sendable {
    /// How often the clock is looked at.
    private static let look = Duration.seconds(5)
    /// How many looks pass before a stream is told how far everything has been told.
    private static let looksPerBeat = 5
    /// Slices in which connections are told to go.
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
        /// The last request for an upgrade, without what is its own.
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

    /// Whether newcomers are taken.
    var isOpen: Bool { state.withLock { $0.isOpen } }

    /// The hub of an event loop.
    func hub(of loop: any EventLoop) -> LoopHub {
        state.withLock { state in
            if let hub = state.hubs[ObjectIdentifier(loop)] { return hub }
            let hub = LoopHub(loop)
            state.hubs[ObjectIdentifier(loop)] = hub
            return hub
        }
    }

    /// What a request for an upgrade asks for, from `client` to `own`; `nil` if its path is another
    /// one.
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

    /// What all requests for one target have in common; `nil` if its path is another one.
    ///
    /// A connection keeps it for as long as it stands, and nearly all ask for the same.
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

    /// What is kept of a head for as long as its connection stands: what says who it is, and
    /// nothing of what browsers, proxies and whoever likes send besides.
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

    /// The fields that are asked for when somebody says `hello`, or renews a token.
    private static let useful: Set<String> = [
        "authorization", "ckapitoken", "host", "origin", "x-apple-cloudkit-request-iso8601date",
        "x-apple-cloudkit-request-keyid", "x-apple-cloudkit-request-signaturev1", "x-belfry-user",
    ]
    /// No token has as many bytes.
    private static let longestField = 16 * 1024

    /// Counts a connection among the open ones again, once HTTP has left it.
    func note(_ channel: any Channel) {
        connections.add(channel)
        channel.closeFuture.whenComplete { [connections] _ in connections.remove(channel) }
    }

    // MARK: Time

    /// Looks after heartbeats and tokens until the task is cancelled.
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

    /// Ends the connections of those whose right to be here has ended.
    ///
    /// When it returns, a schema that is no more shows nobody anything.
    func end(_ revocation: Revocation) async {
        if case .schema(let container) = revocation {
            await access.engine.noteSchemaChange(of: container)
        }
        access.end(revocation)
        let end = revocation.end
        for hub in hubs {
            hub.forEach { socket in
                guard let identity = socket.identity, revocation.concerns(identity) else { return }
                socket.close(end)
            }
        }
    }

    /// Tells one of so many when to come back.
    private static func farewell(to number: UInt64, of count: Int) -> LiveEnd {
        LiveEnd(
            .goingAway,
            APIError(
                .tryAgainLater, "the relay is shutting down",
                retryAfter: 1 + Int64(number % UInt64(2 + count / 1000))))
    }

    /// Tells all to come back, spread over time, so that neither their going nor their return is a
    /// stampede: a second for each thousand, as many at most as were configured.
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
        // A call would keep its listener, and that the relay, where the database is away.
        await access.engine.endWaiting()
    }
}
