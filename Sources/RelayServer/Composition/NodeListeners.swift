import Logging
import RelayModel
import ServiceLifecycle
import StoragePostgreSQL

/// The listeners of a relay whose store another relay may own.
///
/// They stand before the store is open, and as long as the process does. What comes in is handed to
/// the owner, and answered here from the moment at which this relay owns the store. One listener
/// more is for relays that hand on what came to them.
final class NodeListeners: Sendable {
    /// What the listeners know, and whoever opens the store tells them.
    let answering: NodeAnswering
    /// What made the listeners.
    let maker: ListenerMaker
    /// Where others reach this relay.
    let endpoint: StoreEndpoint
    /// What it is called.
    let name: String
    private let groups: [ServiceGroup]
    private let relays: NodeListener
    private let running: Task<Void, any Error>
    private let probing: Task<Void, Never>
    /// Looks at the other shards, for as long as the relay runs.
    private let watching: Task<Void, Never>?
    /// Looks after the certificate until the relay owns the store, and does it itself.
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

    /// The listeners end with the relay that they are of, also with one that was never made.
    deinit { end() }

    /// Opens the listeners.
    ///
    /// - Parameters:
    ///   - maker: Makes listeners.
    ///   - own: The address by which this machine reaches the database.
    ///   - watch: Looks at the shards of the service, if there are several.
    ///   - sights: What it saw: no call comes before that is known.
    /// - Returns: `nil` if the relay is not to be reached by others.
    /// - Throws: ``AddressError`` if an address cannot be had.
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
        // In one group one of them would not be told of the end before another has ended.
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
            "other relays reach this one", metadata: ["address": "\(address)", "name": "\(name)"])
        return NodeListeners(
            answering, maker, StoreEndpoint(address: "\(address)", pass: pass.text), name: name,
            groups, relays, running, watch)
    }

    /// Runs all until one ends, and then the others in order.
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

    /// The port for other relays, once all listeners stand.
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

    /// Answers here from now on, because this relay owns the store.
    func serve(_ routes: [String: SwitchedResponder.Routes], _ sockets: LiveSockets?) {
        probing.cancel()
        renewing.cancel()
        answering.serve(routes, sockets)
    }

    /// What goes on as long as the relay does, and ends the listeners with it.
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

    /// Begins the end: whoever is in the middle of a call has the grace of the relay's end.
    func end() {
        probing.cancel()
        watching?.cancel()
        renewing.cancel()
        answering.end()
        // Not with `self`, which may be going.
        Task { [groups] in await Self.end(groups) }
    }

    /// Returns once no other relay has a connection here any more, which may be later than the end.
    func farewell() async { await relays.farewell() }

    /// Ends the listeners, of which the store was never opened.
    func close() async {
        end()
        _ = await running.result
    }
}
