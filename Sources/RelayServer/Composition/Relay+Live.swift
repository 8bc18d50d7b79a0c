import Live
import RelayModel
import ServiceLifecycle
import StorageSQL

extension Relay {
    /// The parts of the relay that serve connected clients.
    struct LiveParts {
        let access: LiveAccess
        let sockets: LiveSockets
        /// The services that run as long as the relay.
        let services: [any Service]
        /// Tells the clients to disconnect; it ends first, so that they are gone when the
        /// listeners end.
        let drain: any Service
    }

    /// Connects the Live room with the store and the listeners.
    func live(_ dependencies: RelayDependencies, _ listeners: ListenerMaker) -> LiveParts {
        var generator = world.generator
        let form = LiveRecordForm(store: store.storeIdentity, secret: store.storeIdentity.bytes)
        let engine = LiveEngine(
            log: store, shadow: store, writing: form, store: StoreMark(store.storeIdentity).text,
            seed: generator.next(), settings: configuration.live.engine, clock: world.clock,
            logger: logger)
        let bounds = configuration.live.besideRequests(listeners.clients.connections)
        let access = LiveAccess(
            engine, bounds: bounds, form: form,
            clients: RouteTable(dependencies).clients, shadow: store,
            limits: dependencies.limits, turnstile: dependencies.turnstile,
            indexes: dependencies.indexes, inboxes: store, presence: presence,
            store: store.storeIdentity,
            identifiers: RandomIdentifiers(dependencies.randomBytes),
            refusals: LiveRefusals(dependencies.metrics), clock: world.clock, now: world.now)
        let sockets = LiveSockets(
            access, proxies: configuration.listening.proxies, connections: listeners.connections,
            clock: world.clock, now: world.now)
        return LiveParts(
            access: access, sockets: sockets,
            services: [
                LoopService { try await engine.follow() },
                LoopService { try await engine.sweep() },
                LoopService { try await sockets.run() },
            ], drain: LiveDrain(sockets: sockets))
    }
}

/// Waits for the shutdown, and then tells connected clients to reconnect elsewhere or later.
private struct LiveDrain: Service {
    let sockets: LiveSockets

    func run() async throws {
        try await gracefulShutdown()
        await sockets.drain()
    }
}
