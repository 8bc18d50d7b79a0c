import Logging
import RelayModel
import ServiceLifecycle
import StoragePostgreSQL

/// The listeners of a relay whose store another relay may own.
///
/// They are open before the store is, and as long as the process runs. Until this relay owns the
/// store, calls are forwarded to the owner; from then on, they are answered here. One more listener
/// accepts the calls that other relays forward.
final class NodeListeners: Sendable {
    /// Decides which relay answers; the code that opens the store keeps it up to date.
    let answering: NodeAnswering
    /// The maker of the listeners.
    let maker: ListenerMaker
    /// The address at which other relays reach this one.
    let endpoint: StoreEndpoint
    /// The name of this relay.
    let name: String
    private let groups: [ServiceGroup]
    private let relays: NodeListener
    private let running: Task<Void, any Error>
    private let probing: Task<Void, Never>
    /// Watches the other shards for as long as the relay runs.
    private let watching: Task<Void, Never>?
    /// Renews the certificate until this relay owns the store; then the relay does it itself.
    private let renewing: Task<Void, Never>

    private init(
        _ answering: NodeAnswering, _ maker: ListenerMaker, _ endpoint: StoreEndpoint,
        name: String, _ groups: [ServiceGroup], _ relays: NodeListener,
        _ running: Task<Void, any Error>, _ watch: ShardWatch?
    ) {
        self.answering = answering
        self.maker = maker
        self.endpoint = endpoint
        self.name = name
        self.groups = groups
        self.relays = relays
        self.running = running
        probing = Task { [clock = maker.world.clock] in await answering.probe(by: clock) }
        watching = watch.map { watch in
            Task { await answering.shards?.watch(by: watch) }
        }
        renewing = Task { [certificate = maker.certificate, clock = maker.world.clock] in
            try? await certificate?.watch(by: clock)
        }
    }

    /// This ends the listeners together with their relay, also if the relay's initialiser failed.
    deinit { end() }

    /// Opens the listeners.
    ///
    /// - Parameters:
    ///   - maker: Makes the listeners.
    ///   - own: The address by which this machine reaches the database.
    ///   - watch: Watches the shards of the service; `nil` if there is only one.
    ///   - sights: The first result of `watch`; calls are accepted only after it is known.
    /// - Returns: The listeners; `nil` if other relays cannot reach this one.
    /// - Throws: ``AddressError`` if an address is not available.
    static func opened(
        _ maker: ListenerMaker, own: String, _ watch: ShardWatch? = nil, _ sights: [ShardSight] = []
    ) async throws -> NodeListeners? {
        let settings = maker.configuration.nodes
        guard let place = settings.listening(on: own) else { return nil }
        let pass = try NodePass(drawnFrom: maker.world.randomBytes)
        let answering = NodeAnswering(maker)
        answering.shards?.note(sights)
        let (clients, relays) = try answering.listeners(maker, at: place, pass)
        var quiet = maker.logger
        quiet.logLevel = .error
        // In a common group, one listener would hear of the shutdown only after another has ended.
        let groups = (clients + [relays]).map { service in
            ServiceGroup(
                configuration: ServiceGroupConfiguration(
                    services: [
                        ServiceGroupConfiguration.ServiceConfiguration(
                            service: service, successTerminationBehavior: .gracefullyShutdownGroup,
                            failureTerminationBehavior: .gracefullyShutdownGroup)
                    ], logger: quiet))
        }
        let running = Task { try await run(groups) }
        let port = try await port(of: answering, maker.ports, running, groups)
        let address = settings.endpoint(on: own, port: port)
        let name = settings.named(
            on: maker.world.machine, port: try await maker.ports.port(of: "http"))
        maker.logger.info(
            "listening for other relays", metadata: ["address": "\(address)", "name": "\(name)"])
        return NodeListeners(
            answering, maker, StoreEndpoint(address: "\(address)", pass: pass.text), name: name,
            groups, relays, running, watch)
    }

    /// Runs all groups until one ends, and then shuts the others down gracefully.
    private static func run(_ groups: [ServiceGroup]) async throws {
        let outcomes = await withTaskGroup(of: Result<Void, any Error>.self) { tasks in
            for group in groups {
                tasks.addTask {
                    let outcome: Result<Void, any Error>
                    do {
                        try await group.run()
                        outcome = .success(())
                    } catch {
                        outcome = .failure(error)
                    }
                    await end(groups)
                    return outcome
                }
            }
            return await tasks.reduce(into: [Result<Void, any Error>]()) { $0.append($1) }
        }
        for outcome in outcomes { try outcome.get() }
    }

    private static func end(_ groups: [ServiceGroup]) async {
        for group in groups { await group.triggerGracefulShutdown() }
    }

    /// Returns the port for other relays once all listeners are open.
    private static func port(
        of answering: NodeAnswering, _ ports: ServedPorts, _ running: Task<Void, any Error>,
        _ groups: [ServiceGroup]
    ) async throws -> Int {
        let waiting = Task {
            for name in answering.names { _ = try await ports.port(of: name) }
            return try await ports.port(of: NodeAnswering.listener)
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
            await end(groups)
            try await running.value
            throw error
        }
    }

    /// Answers calls here from now on, because this relay owns the store.
    func serve(_ routes: [String: SwitchedResponder.Routes], _ sockets: LiveSockets?) {
        probing.cancel()
        renewing.cancel()
        answering.serve(routes, sockets)
    }

    /// The service that runs as long as the relay, and ends the listeners with it.
    var service: any Service { Running(listeners: self) }

    private struct Running: Service {
        let listeners: NodeListeners

        func run() async throws {
            try await withGracefulShutdownHandler {
                try await listeners.running.value
            } onGracefulShutdown: {
                listeners.end()
            }
        }
    }

    /// Begins the shutdown; calls in progress have the relay's grace period to finish.
    func end() {
        probing.cancel()
        watching?.cancel()
        renewing.cancel()
        answering.end()
        // This task must not capture `self`, because `deinit` calls this method.
        Task { [groups] in await Self.end(groups) }
    }

    /// Returns once no other relay has a connection here; this may be after the shutdown.
    func farewell() async { await relays.farewell() }

    /// Ends the listeners of a relay that never opened its store.
    func close() async {
        end()
        _ = await running.result
    }
}
