import Fanout
import Hummingbird
import RelayModel
import ServiceLifecycle
import Storage
import StoragePostgreSQL
import Synchronization

/// Decides which relay answers the calls that come to this relay's listeners.
final class NodeAnswering: Sendable {
    private struct State {
        var sockets: LiveSockets?
        /// Whether this relay accepts calls that other relays forward.
        var isTaking = true
        /// The owner that was last asked for its readiness, and the result.
        var answer: (owner: StoreOwner, readiness: Readiness)?
        /// The time since the database last said which relay owns the store.
        var sight: Stopwatch?
        /// The reason why the database has not said it since; `nil` if it is not known.
        var blindness: String?
        /// The follower that has the store's state while another relay owns the store.
        var standby: StandbyFollower?
    }

    /// The name of the listener for other relays.
    static let listener = "nodes"
    /// The interval at which the owner is asked whether it can serve.
    private static let pause = Duration.milliseconds(500)
    /// The age of the last look at the database beyond which this relay is not ready.
    ///
    /// A relay that cannot reach the database neither sees the next owner nor can become it.
    private static let oldestSight = Duration.seconds(3)
    /// How long an owner may send nothing on a call, beyond the longest time that a call may take.
    private static let courtesy = Duration.seconds(300)

    let current = CurrentAnswerer()
    private let forwarding: CallForwarding
    /// The shards of the service; `nil` if the store is the only one.
    let shards: ShardDirectory?
    private let responders: [String: SwitchedResponder]
    private let state = Mutex(State())
    private let clock: any Clock<Duration>

    /// The names of the listeners for clients and operators.
    var names: [String] { responders.keys.sorted() }

    init(_ maker: ListenerMaker) {
        let (world, configuration) = (maker.world, maker.configuration)
        clock = world.clock
        let longest = max(
            configuration.fetching.polls.hold, configuration.queries.time,
            configuration.queries.uploadTime)
        let (isSharded, meter) = (configuration.nodes.isSharded, ForwardingMeter(maker.metrics))
        func way(_ shard: String?, _ current: CurrentAnswerer) -> CallForwarding {
            CallForwarding(
                current, patience: configuration.nodes.patience, silence: longest + Self.courtesy,
                identifiers: RandomIdentifiers { world.randomBytes($0) }, meter: meter,
                places: isSharded
                    ? CallPlaces(CallPlaces.Bounds(connections: maker.clients.connections)) : nil,
                shard: shard)
        }
        forwarding = way(nil, current)
        shards =
            isSharded
            ? ShardDirectory(
                own: configuration.storageSchema, schemas: configuration.nodes.schemas,
                clock: world.clock, logger: maker.logger, metrics: maker.metrics, way: way) : nil
        let names = configuration.sharesListener ? ["http"] : ["http", "admin"]
        responders = Dictionary(
            uniqueKeysWithValues: names.map { name in
                (
                    name,
                    SwitchedResponder { _, _ in Response(status: .serviceUnavailable) }
                )
            })
        for (name, responder) in responders {
            let showsMetrics = Self.showsMetrics(at: name, configuration)
            responder.change(
                to: standing(maker, showsMetrics: showsMetrics, servesPages: name != "admin"))
        }
    }

    /// Returns whether a relay that stands by serves metrics on a listener.
    ///
    /// It does where it would as the owner: on the operator's listener, and on the clients' only if
    /// `http.metrics` says so.
    static func showsMetrics(at listener: String, _ configuration: RelayConfiguration) -> Bool {
        listener == "admin" || configuration.listening.showsMetrics
    }

    /// Returns the routes of a relay that stands by: the calls about this relay itself.
    private func standing(
        _ maker: ListenerMaker, showsMetrics: Bool, servesPages: Bool
    ) -> SwitchedResponder.Routes {
        let (world, metrics) = (maker.world, maker.metrics)
        let operations = OperationRoutes(
            readiness: { [weak self] in self?.readiness ?? .notReady(["relay": "stopped"]) },
            renderMetrics: { metrics.render() },
            role: { [weak self] in .standingBy(owner: self?.owner, self?.standby) })
        let routes = operations.routes.filter {
            CallForwarding.ownPaths.contains($0.path) && ($0.surface != .metrics || showsMetrics)
        }
        let configuration = maker.configuration
        let handler = RequestHandler(
            turnstile: Turnstile(
                configuration.listening.rates, clock: world.clock, metrics: metrics),
            proxies: configuration.listening.proxies, limits: configuration.limits,
            meter: RequestMeter(metrics),
            accessLog: AccessLog(configuration.accessLog, logger: maker.logger), now: world.now,
            identifiers: RandomIdentifiers { world.randomBytes($0) }, servesPages: servesPages)
        let responder = RelayRouter.make(routes, handler).buildResponder()
        return { try await responder.respond(to: $0, context: $1) }
    }

    /// Creates the listeners: those for clients and operators, and the one for other relays.
    func listeners(
        _ maker: ListenerMaker, at place: NodeAddress, _ pass: NodePass
    ) throws -> (clients: [any Service], relays: NodeListener) {
        let configuration = maker.configuration
        let listening = configuration.listening
        let (forwarding, responders, shards) = (forwarding, responders, shards)
        let sockets: @Sendable () -> LiveSockets? = { [weak self] in
            self?.state.withLock { $0.sockets }
        }
        let theirs = try names.map { name in
            let isOperators = name == "admin"
            let routes = responders[name]
            return try maker.listener(
                isOperators ? configuration.admin : configuration.http,
                maker.limiter(
                    name, isOperators ? listening.administrativeListener : maker.clients),
                { try await routes?.respond(to: $0, context: $1) ?? Response(status: .notFound) },
                {
                    [
                        CallForwarder(
                            forwarding, listener: name, shards: shards,
                            isOperators: isOperators || configuration.sharesListener)
                    ]
                        + (isOperators ? [] : [LiveUpgrade { _ in sockets() }])
                }, security: maker.certificate?.configuration)
        }
        let inner = NodeResponder(responders: responders) { [weak self] in
            self?.isTaking ?? false
        }
        let count = maker.clients.connections
        let calls = NodeCalls()
        let relays = try maker.listener(
            RelayConfiguration.Listener(host: place.host, port: place.port),
            maker.limiter(
                Self.listener, ConnectionCounts.Bounds(connections: count, perAddress: count),
                pace: listening.pace.ofRelays),
            { try await inner.respond(to: $0, context: $1) },
            {
                [
                    NodeFarewell(calls),
                    LiveUpgrade { head in
                        // Operators have no live connections, whichever relay they call.
                        head.headerFields[.nodeListener] == "http" ? sockets() : nil
                    } origin: { fields in
                        let origin = CallOrigin(takenFrom: &fields)
                        return (origin.peer, origin.own)
                    },
                ]
            }, security: pass.listening)
        return (theirs, NodeListener(relays, calls, clock: clock))
    }

    // MARK: Who answers

    /// Whether this relay accepts calls that other relays forward.
    private var isTaking: Bool {
        guard case .here = current.answerer else { return false }
        return state.withLock { $0.isTaking }
    }

    /// Switches the listeners to the relay's own routes, because it owns the store now.
    func serve(_ routes: [String: SwitchedResponder.Routes], _ sockets: LiveSockets?) {
        for (name, routes) in routes { responders[name]?.change(to: routes) }
        state.withLock { ($0.sockets, $0.standby) = (sockets, nil) }
        current.post(.here)
    }

    /// Records that the database has just said which relay owns the store.
    func noteSight() {
        let sight = clock.measureStart()
        state.withLock { ($0.sight, $0.blindness) = (sight, nil) }
    }

    /// Records why the database could not be asked.
    func noteNoSight(_ error: StorageError) {
        guard case .inaccessible(_, let reason) = error else { return }
        let told = Self.told(reason)
        state.withLock { $0.blindness = told }
    }

    /// Returns the part of a failure's reason that callers may see.
    ///
    /// The server's own words, which include its address and the role, are only for the log.
    static func told(_ reason: String) -> String { reason.replacing(#/ \(.*\)/#, with: "") }

    /// Sets the follower that has the store's state while another relay owns the store.
    func note(_ standby: StandbyFollower?) {
        state.withLock { $0.standby = standby }
    }

    /// Stops forwarding calls, and stops accepting forwarded ones.
    func end() {
        state.withLock { $0.isTaking = false }
        shards?.end()
        if case .here = current.answerer { return }
        current.post(.ended)
    }

    // MARK: Whether the owner can serve

    private var owner: String? {
        guard case .owner(let route) = current.answerer else { return nil }
        return route.name
    }

    private var standby: StandbyStatus? { state.withLock { $0.standby }?.status }

    private var readiness: Readiness {
        switch current.answerer {
        case .here: .notReady(["relay": "it is starting to serve"])
        case .ended: .notReady(["relay": "it is shutting down"])
        case .nobody(let reason): .notReady(["owner": reason])
        case .owner(let route): readiness(by: route)
        }
    }

    private func readiness(by route: OwnerRoute) -> Readiness {
        let (answer, sight, blindness) = state.withLock { ($0.answer, $0.sight, $0.blindness) }
        if let sight, sight.elapsed() > Self.oldestSight {
            return .notReady(["storage": blindness ?? "the database cannot be reached"])
        }
        guard let answer, answer.owner == route.owner else {
            return .notReady(["owner": "it has not been asked yet"])
        }
        return answer.readiness
    }

    /// Asks the owner repeatedly whether it can serve, until the task is cancelled.
    func probe(by clock: any Clock<Duration>) async {
        var last: StoreOwner?
        while !Task.isCancelled {
            if case .owner(let route) = current.answerer {
                let readiness = await ask(route)
                state.withLock { $0.answer = (route.owner, readiness) }
                last = route.owner
            }
            // A new owner is asked at once, not after the pause.
            for _ in 0..<10 {
                guard (try? await clock.sleep(for: Self.pause / 10)) != nil else { return }
                if let owner = current.owner, owner != last { break }
            }
        }
    }

    private func ask(_ route: OwnerRoute) async -> Readiness {
        do {
            let status = try await OwnerProbe.status(of: route, by: forwarding)
            switch status {
            case 200: return .ready
            case 421: return .notReady(["owner": "\(route.name) does not answer calls yet"])
            default:
                return .notReady(["owner": "\(route.name) is not ready; its own /readyz says why"])
            }
        } catch {
            return .notReady([
                "owner":
                    "\(route.name) cannot be reached at \(route.address): check nodes.advertise, "
                    + "nodes.port and the network between the relays"
            ])
        }
    }
}

extension NodeAnswering {
    /// Sets the owner to which calls are forwarded from now on.
    func note(_ owner: StoreOwner) { current.note(owner) }
}
