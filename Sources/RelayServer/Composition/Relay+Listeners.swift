import Delivery
import Fanout
import Gateway
import Hummingbird
import LogShipping
import Logging
import RelayModel
import ServiceLifecycle
import Storage
import StorageSQL
import Synchronization

extension Relay {
    /// Creates the HTTP listeners: one for clients and change sources and one for the operator, or
    /// one for both.
    func listeners() throws -> [any Service] {
        var dependencies = dependencies()
        if configuration.storageURL != nil {
            dependencies.courierShard = configuration.storageSchema
        }
        let listening = configuration.listening
        let followers = followers(dependencies)
        dependencies.followers = followers
        let render = dependencies.renderMetrics
        dependencies.renderMetrics = {
            followers.updateMetrics()
            return render()
        }
        let maker = nodeListeners?.maker ?? listenerMaker(isForwarding: false)
        let live = live(dependencies, maker)
        let walking = live.services + [LoopService { try await followers.run() }]
        dependencies.live = live.access
        dependencies.revoked = live.sockets.end
        var surfaces: Set<RelayRoute.Surface> = [.client, .changes, .operation]
        if listening.showsMetrics { surfaces.insert(.metrics) }
        var served: [String: Set<RelayRoute.Surface>] = [:]
        if configuration.sharesListener {
            served["http"] = surfaces.union([.administration, .console])
        } else {
            served["http"] = surfaces
            served["admin"] = [.administration, .console, .operation, .metrics]
        }
        let routes = served.mapValues { surfaces -> SwitchedResponder.Routes in
            let responder = RelayRouter.make(dependencies, surfaces: surfaces).buildResponder()
            return { try await responder.respond(to: $0, context: $1) }
        }
        if let nodeListeners {
            nodeListeners.serve(routes, live.sockets)
            return walking + [nodeListeners.service, live.drain]
        }
        let listeners = try routes.sorted { $0.key > $1.key }.map { name, routes in
            let isOperators = name == "admin"
            return try maker.listener(
                isOperators ? configuration.admin : configuration.http,
                maker.limiter(
                    name, isOperators ? listening.administrativeListener : maker.clients), routes,
                { isOperators ? [] : [LiveUpgrade { _ in live.sockets }] },
                security: certificate?.configuration)
        }
        return walking + listeners + [live.drain]
    }

    /// The name of the administrative listener; that of the clients' if both share one port.
    package var administrativeListener: String { configuration.sharesListener ? "http" : "admin" }

    private func listenerMaker(isForwarding: Bool) -> ListenerMaker {
        ListenerMaker(
            configuration, world: world, metrics: metrics, logger: logger, ports: ports,
            certificate: certificate, isForwarding: isForwarding)
    }

    private func dependencies() -> RelayDependencies {
        let world = world
        let meter = IndexMeter(indexes)
        let gatewayMeter = GatewayMeter()
        let backupMeter = shipper.map { _ in BackupMeter() }
        var dependencies = RelayDependencies(
            registry: store, log: store, progress: store, shadow: store, now: world.now,
            randomBytes: { world.randomBytes($0) },
            readiness: { [weak self] in
                self?.readiness ?? .notReady(["relay": "stopped"])
            }, metrics: metrics,
            renderMetrics: { [metrics, gateway, shipper] in
                meter.update()
                if let shipper { backupMeter?.show(shipper.status, at: world.now()) }
                gatewayMeter.show(gateway.gauge)
                return metrics.render()
            },
            logger: logger, limits: configuration.limits, adminToken: configuration.adminToken,
            publicURL: PublicURL(configuration, ports), signInURL: configuration.signInURL,
            clock: world.clock)
        (dependencies.secretsKeyID, dependencies.shards) = (store.secretsKeyID, shards)
        if let nodeListeners { dependencies.role = .owner(nodeListeners.name) }
        (dependencies.courier, dependencies.queries) = (polls, queries)
        dependencies.courierURL = configuration.hasPublicURL ? configuration.publicURL : nil
        dependencies.turnstile = Turnstile(
            configuration.listening.rates, clock: world.clock, metrics: metrics)
        dependencies.proxies = configuration.listening.proxies
        dependencies.scheme = configuration.tls == nil ? "http" : "https"
        dependencies.indexes = indexes
        dependencies.containerSaved = { [directory, gateway, walk] settings in
            directory.put(settings)
            gateway.credentialChanged(for: settings.key)
            walk.worker.resume(settings.key)
        }
        dependencies.backlog = { [store] in try await store.backlog() }
        dependencies.retention = configuration.upkeep.retention
        dependencies.halts = { [walk] in walk.worker.halts }
        dependencies.answers = { [walk] in walk.worker.answers }
        dependencies.health = health
        dependencies.turns = walk.turns
        dependencies.accessLog = configuration.accessLog
        dependencies.logLevels = levels
        if let certificate {
            dependencies.renewCertificates = {
                do throws(ConfigurationError) {
                    return try certificate.renew()
                } catch {
                    throw APIError(
                        .badRequest,
                        error.problems.joined(separator: "; ")
                            + "; the old certificate stays in use")
                }
            }
        }
        dependencies.events = events
        dependencies.console = console
        dependencies.series = series
        dependencies.phones = phones
        dependencies.resume = { [gateway, walk] key in
            gateway.credentialChanged(for: key)
            return walk.worker.resume(key)
        }
        dependencies.boundsReached = { [gate = store.gate] in gate.reached }
        dependencies.deadLettersRedriven = { [walk] in walk.worker.workRetries() }
        return dependencies
    }

    /// Returns the health of the process.
    private var health: @Sendable () async -> RelayHealth {
        let reserve = configuration.store.diskReserveBytes
        return { [walk, store, shipper, certificate, accounts] in
            var health = RelayHealth(
                readiness: walk.readiness(shortage: store.shortage), footprint: store.footprint,
                reserveBytes: reserve, backup: shipper?.status, tlsUntil: certificate?.expiry)
            health.difference = accounts.difference
            health.unreadableRows = store.unreadable.count
            return health
        }
    }

    /// Creates the followers of the sources' databases; they append changes as webhooks do.
    private func followers(_ dependencies: RelayDependencies) -> SourceFollowers {
        SourceFollowers(
            registry: store, store: store.storeIdentity,
            intake: ChangeIntake(
                log: store, shadow: store, registry: store,
                turns: ContainerTurns(turns: dependencies.turns)),
            ledger: dependencies.sourceLedger, line: dependencies.settingsLine, metrics: metrics,
            world: world, logger: logger)
    }

    private var readiness: Readiness {
        walk.readiness(shortage: store.shortage)
    }
}

extension PublicURL {
    /// Creates the public URL; if the configuration asks for any free port, it gets the actual one.
    init(_ configuration: RelayConfiguration, _ ports: ServedPorts) {
        guard configuration.http.port == 0, !configuration.hasPublicURL else {
            self.init(configuration.publicURL)
            return
        }
        self.init(asking: {
            var served = configuration
            served.http.port = ports.known("http") ?? 0
            return served.publicURL
        })
    }
}

/// The ports on which the listeners are open, for a configuration that asks for a free one.
package final class ServedPorts: Sendable {
    private struct State {
        var ports: [String: Int] = [:]
        var waiters: [UInt64: (name: String, continuation: CheckedContinuation<Int?, Never>)] = [:]
        var nextWaiter: UInt64 = 0
        /// Waiters that were cancelled before they began to wait.
        var cancelled: Set<UInt64> = []
    }

    private let state = Mutex(State())

    /// Creates an empty table; no listener is open yet.
    package init() {}

    /// Returns the port of the listener `name` (`http` or `admin`) once it is open.
    ///
    /// - Throws: `CancellationError` if the task is cancelled first, for example because the
    ///   relay could not be started.
    package func port(of name: String) async throws -> Int {
        let number = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        let port = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                enlist(continuation, number, for: name)
            }
        } onCancel: {
            let waiter = state.withLock { state in
                let waiter = state.waiters.removeValue(forKey: number)
                if waiter == nil { state.cancelled.insert(number) }
                return waiter
            }
            waiter?.continuation.resume(returning: nil)
        }
        state.withLock { _ = $0.cancelled.remove(number) }
        guard let port else { throw CancellationError() }
        return port
    }

    private func enlist(
        _ continuation: CheckedContinuation<Int?, Never>, _ number: UInt64, for name: String
    ) {
        let (isOver, port) = state.withLock { state -> (Bool, Int?) in
            if let port = state.ports[name] { return (true, port) }
            if state.cancelled.contains(number) { return (true, nil) }
            state.waiters[number] = (name, continuation)
            return (false, nil)
        }
        if isOver { continuation.resume(returning: port) }
    }

    /// Returns the port of the listener `name`; `nil` before it is open.
    func known(_ name: String) -> Int? {
        state.withLock { $0.ports[name] }
    }

    func announce(_ port: Int, of name: String) {
        let ready = state.withLock { state in
            state.ports[name] = port
            let ready = state.waiters.filter { $0.value.name == name }
            for number in ready.keys { state.waiters[number] = nil }
            return ready.values
        }
        for waiter in ready { waiter.continuation.resume(returning: port) }
    }
}
