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
final class NodeListeners: Sendable {
    /// What the listeners know, and whoever opens the store tells them.
    let answering: NodeAnswering
    /// What made the listeners.
    let maker: ListenerMaker
    /// Where others reach this relay.
    let endpoint: StoreEndpoint
    /// What it is called.
    let name: String
    private let group: ServiceGroup
    private let running: Task<Void, any Error>
    private let probing: Task<Void, Never>

    private init(
        _ answering: NodeAnswering, _ maker: ListenerMaker, _ endpoint: StoreEndpoint,
        name: String, _ group: ServiceGroup, _ running: Task<Void, any Error>
    ) {
        self.answering = answering
        self.maker = maker
        self.endpoint = endpoint
        self.name = name
        self.group = group
        self.running = running
        probing = Task { [clock = maker.world.clock] in await answering.probe(by: clock) }
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
    static func opened(_ maker: ListenerMaker, own: String) async throws -> NodeListeners? {
        let settings = maker.configuration.nodes
        guard let place = settings.listening(on: own) else { return nil }
        let pass = try NodePass(drawnFrom: maker.world.randomBytes)
        let answering = NodeAnswering(maker)
        let services = try answering.listeners(maker, at: place, pass)
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
        let port = try await port(of: answering, maker.ports, running, group)
        let address = settings.endpoint(on: own, port: port)
        let name = settings.named(
            on: maker.world.machine, port: try await maker.ports.port(of: "http"))
        maker.logger.info(
            "other relays reach this one", metadata: ["address": "\(address)", "name": "\(name)"])
        return NodeListeners(
            answering, maker, StoreEndpoint(address: "\(address)", pass: pass.text), name: name,
            group, running)
    }

    /// The port for other relays, once all listeners stand.
    private static func port(
        of answering: NodeAnswering, _ ports: ServedPorts, _ running: Task<Void, any Error>,
        _ group: ServiceGroup
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
            await group.triggerGracefulShutdown()
            try await running.value
            throw error
        }
    }

    /// Answers here from now on, because this relay owns the store.
    func serve(_ routes: [String: SwitchedResponder.Routes], _ sockets: LiveSockets?) {
        probing.cancel()
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
        answering.end()
        // Not with `self`, which may be going.
        Task { [group] in await group.triggerGracefulShutdown() }
    }

    /// Ends the listeners, of which the store was never opened.
    func close() async {
        end()
        _ = await running.result
    }
}
