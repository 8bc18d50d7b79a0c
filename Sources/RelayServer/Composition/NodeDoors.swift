import Hummingbird
import Logging
import Metrics
import NIOCore
import RelayModel
import ServiceLifecycle
import StoragePostgreSQL
import Synchronization

/// The listeners of a relay whose store another relay may own.
///
/// They stand before the store is open, and as long as the process does. What comes in is handed to
/// the owner, and answered here from the moment at which this relay owns the store. One listener
/// more is for relays that hand on what came to them.
final class NodeDoors: Sendable {
    /// What the listeners know, and whoever opens the store tells them.
    let desk: NodeDesk
    /// What made the listeners.
    let maker: ListenerMaker
    /// Where others reach this relay.
    let door: StoreDoor
    private let group: ServiceGroup
    private let running: Task<Void, any Error>
    private let probing: Task<Void, Never>

    private init(
        _ desk: NodeDesk, _ maker: ListenerMaker, _ door: StoreDoor, _ group: ServiceGroup,
        _ running: Task<Void, any Error>
    ) {
        self.desk = desk
        self.maker = maker
        self.door = door
        self.group = group
        self.running = running
        probing = Task { [clock = maker.world.clock] in await desk.probe(by: clock) }
    }

    /// The listeners end with the relay that they are of, also with one that was never made.
    deinit { end() }

    /// Opens the listeners.
    ///
    /// - Parameters:
    ///   - maker: Makes listeners.
    ///   - own: The address by which this machine reaches the database.
    /// - Returns: `nil` if the relay is not to be reached by others.
    /// - Throws: ``AddressError`` if an address cannot be had.
    static func opened(_ maker: ListenerMaker, own: String) async throws -> NodeDoors? {
        let settings = maker.configuration.nodes
        guard let place = settings.listening(on: own) else { return nil }
        let pass = try NodePass(drawnFrom: maker.world.randomBytes)
        let desk = NodeDesk(maker)
        let services = try desk.listeners(maker, at: place, pass)
        var quiet = maker.logger
        quiet.logLevel = .error
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: services.map {
                    ServiceGroupConfiguration.ServiceConfiguration(
                        service: $0, successTerminationBehavior: .gracefullyShutdownGroup,
                        failureTerminationBehavior: .gracefullyShutdownGroup)
                }, logger: quiet))
        let running = Task { try await group.run() }
        let port = try await port(of: desk, maker.ports, running, group)
        let address = settings.door(on: own, port: port)
        maker.logger.info("other relays reach this one", metadata: ["address": "\(address)"])
        return NodeDoors(
            desk, maker, StoreDoor(address: "\(address)", pass: pass.text), group, running)
    }

    /// The port for other relays, once all listeners stand.
    private static func port(
        of desk: NodeDesk, _ ports: ServedPorts, _ running: Task<Void, any Error>,
        _ group: ServiceGroup
    ) async throws -> Int {
        let waiting = Task {
            for name in desk.names { _ = try await ports.port(of: name) }
            return try await ports.port(of: NodeDesk.listener)
        }
        Task {
            _ = await running.result
            waiting.cancel()
        }
        do {
            return try await withTaskCancellationHandler {
                try await waiting.value
            } onCancel: {
                waiting.cancel()
            }
        } catch {
            await group.triggerGracefulShutdown()
            try await running.value
            throw error
        }
    }

    /// Answers here from now on, because this relay owns the store.
    func serve(_ routes: [String: SwitchedResponder.Routes], _ sockets: LiveSockets?) {
        probing.cancel()
        desk.serve(routes, sockets)
    }

    /// What goes on as long as the relay does, and ends the listeners with it.
    var service: any Service { Running(doors: self) }

    private struct Running: Service {
        let doors: NodeDoors

        func run() async throws {
            try await withGracefulShutdownHandler {
                try await doors.running.value
            } onGracefulShutdown: {
                doors.end()
            }
        }
    }

    /// Begins the end: whoever is in the middle of a call has the grace of the relay's end.
    func end() {
        probing.cancel()
        desk.end()
        // Not with `self`, which may be going.
        Task { [group] in await group.triggerGracefulShutdown() }
    }

    /// Ends the listeners, of which the store was never opened.
    func close() async {
        end()
        _ = await running.result
    }
}

/// What the listeners of a relay know of who answers.
final class NodeDesk: Sendable {
    private struct State {
        var sockets: LiveSockets?
        /// Whether calls of other relays are taken.
        var isTaking = true
        /// What came of asking the owner last, and under which number it owned the store.
        var answer: (epoch: Int64, readiness: Readiness)?
        /// How long ago the database last said who owns the store.
        var sight: Stopwatch?
    }

    /// What the listener for other relays is called.
    static let listener = "nodes"
    /// How often the owner is asked whether it can serve.
    private static let pause = Duration.milliseconds(500)
    /// How old the word of the database may be of a relay that is ready: who has lost it neither
    /// sees the next owner nor can be it.
    private static let oldestSight = Duration.seconds(3)
    /// What an owner may be silent about a call beyond the longest that a call is meant to take.
    private static let courtesy = Duration.seconds(300)

    let board = OwnerBoard()
    private let forwarding: CallForwarding
    private let responders: [String: SwitchedResponder]
    private let state = Mutex(State())
    private let clock: any Clock<Duration>

    /// The listeners for everybody else.
    var names: [String] { responders.keys.sorted() }

    init(_ maker: ListenerMaker) {
        let (world, configuration) = (maker.world, maker.configuration)
        clock = world.clock
        let longest = max(
            configuration.fetching.polls.hold, configuration.queries.time,
            configuration.queries.uploadTime)
        forwarding = CallForwarding(
            board, patience: configuration.nodes.patience, silence: longest + Self.courtesy,
            identifiers: RandomIdentifiers { world.randomBytes($0) },
            meter: ForwardingMeter(maker.metrics))
        let names = configuration.sharesListener ? ["http"] : ["http", "admin"]
        responders = Dictionary(
            uniqueKeysWithValues: names.map { name in
                (
                    name,
                    SwitchedResponder { _, _ in Response(status: .serviceUnavailable) }
                )
            })
        for (name, responder) in responders {
            let showsMetrics =
                name == "admin" || configuration.sharesListener
                || configuration.listening.showsMetrics
            responder.change(to: standing(maker, showsMetrics: showsMetrics))
        }
    }

    /// The routes of a relay that stands by: what it is asked of itself.
    private func standing(_ maker: ListenerMaker, showsMetrics: Bool) -> SwitchedResponder.Routes {
        let (world, metrics) = (maker.world, maker.metrics)
        let operations = OperationRoutes(
            readiness: { [weak self] in self?.readiness ?? .notReady(["relay": "stopped"]) },
            renderMetrics: { metrics.render() },
            role: { [weak self] in .standingBy(owner: self?.owner) })
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
            identifiers: RandomIdentifiers { world.randomBytes($0) })
        let responder = RelayRouter.make(routes, handler).buildResponder()
        return { try await responder.respond(to: $0, context: $1) }
    }

    /// Makes the listeners.
    func listeners(
        _ maker: ListenerMaker, at place: NodeAddress, _ pass: NodePass
    ) throws -> [any Service] {
        let configuration = maker.configuration
        let listening = configuration.listening
        let (forwarding, responders) = (forwarding, responders)
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
                    [CallForwarder(forwarding, listener: name)]
                        + (isOperators ? [] : [LiveUpgrade { _ in sockets() }])
                }, security: maker.certificate?.configuration)
        }
        let inner = NodeResponder(responders: responders) { [weak self] in
            self?.isTaking ?? false
        }
        let count = maker.clients.connections
        let relays = try maker.listener(
            RelayConfiguration.Listener(host: place.host, port: place.port),
            maker.limiter(
                Self.listener, ConnectionCounts.Bounds(connections: count, perAddress: count)),
            { try await inner.respond(to: $0, context: $1) },
            {
                [
                    LiveUpgrade { head in
                        // Operators have none, whichever relay they ask.
                        head.headerFields[.nodeListener] == "http" ? sockets() : nil
                    } origin: { fields in
                        let origin = CallOrigin(takenFrom: &fields)
                        return (origin.peer, origin.own)
                    }
                ]
            }, security: pass.listening)
        return theirs + [relays]
    }

    // MARK: Who answers

    /// Whether calls that other relays hand on are taken.
    private var isTaking: Bool {
        guard case .here = board.answerer else { return false }
        return state.withLock { $0.isTaking }
    }

    /// Answers here from now on.
    func serve(_ routes: [String: SwitchedResponder.Routes], _ sockets: LiveSockets?) {
        for (name, routes) in routes { responders[name]?.change(to: routes) }
        state.withLock { $0.sockets = sockets }
        board.post(.here)
    }

    /// Notes that the database has just said who owns the store.
    func noteSight() {
        let sight = clock.measureStart()
        state.withLock { $0.sight = sight }
    }

    /// Hands nothing on, and takes nothing from others, any more.
    func end() {
        state.withLock { $0.isTaking = false }
        if case .here = board.answerer { return }
        board.post(.ended)
    }

    // MARK: Whether the owner can serve

    private var owner: String? {
        guard case .owner(let route) = board.answerer else { return nil }
        return route.name
    }

    private var readiness: Readiness {
        switch board.answerer {
        case .here: .notReady(["relay": "it begins to serve"])
        case .ended: .notReady(["relay": "it is shutting down"])
        case .nobody(let reason): .notReady(["owner": reason])
        case .owner(let route): readiness(by: route)
        }
    }

    private func readiness(by route: OwnerRoute) -> Readiness {
        let (answer, sight) = state.withLock { ($0.answer, $0.sight) }
        if let sight, sight.elapsed() > Self.oldestSight {
            return .notReady(["storage": "the database cannot be reached"])
        }
        guard let answer, answer.epoch == route.epoch else {
            return .notReady(["owner": "it was not asked yet"])
        }
        return answer.readiness
    }

    /// Asks the owner whether it can serve, again and again, until the task is cancelled.
    func probe(by clock: any Clock<Duration>) async {
        var last: Int64?
        while !Task.isCancelled {
            if case .owner(let route) = board.answerer {
                let readiness = await ask(route)
                state.withLock { $0.answer = (route.epoch, readiness) }
                last = route.epoch
            }
            // A new owner is asked at once.
            for _ in 0..<10 {
                guard (try? await clock.sleep(for: Self.pause / 10)) != nil else { return }
                if let epoch = board.epoch, epoch != last { break }
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
                return .notReady(["owner": "\(route.name) is not ready: ask it for its reasons"])
            }
        } catch {
            return .notReady([
                "owner": "\(route.name) cannot be reached at \(route.address): look at "
                    + "nodes.advertise, nodes.port and the network between"
            ])
        }
    }
}
