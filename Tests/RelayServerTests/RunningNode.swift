import Logging
import RelayModel
import RelayTestKit
import ServiceLifecycle
import Synchronization

@testable import RelayServer

/// One of several relays in a test, which may wait until it owns its store.
final class RunningNode: Sendable {
    private struct State {
        var group: ServiceGroup?
        var isEnding = false
    }

    let ports = ServedPorts()
    private let opening: Task<Relay, any Error>
    private let running: Task<Void, any Error>
    private let state: StateBox

    private final class StateBox: Sendable { let value = Mutex(State()) }

    init(_ settings: [String], _ logger: Logger) async throws {
        let values = try await ConfigurationValues.gather(arguments: settings, environment: [:])
        let configuration = try RelayConfiguration(values)
        let (ports, world) = (ports, World.real)
        let opening = Task {
            try await Relay(
                configuration, world: world, metrics: PrometheusMetrics(), logger: logger,
                ports: ports)
        }
        let state = StateBox()
        self.opening = opening
        self.state = state
        running = Task {
            let relay = try await opening.value
            let group = ServiceGroup(
                configuration: ServiceGroupConfiguration(
                    services: [.init(service: relay)], logger: logger))
            let isEnding = state.value.withLock { state in
                state.group = group
                return state.isEnding
            }
            if isEnding { await group.triggerGracefulShutdown() }
            try await group.run()
        }
    }

    /// Ends it in order, wherever it is.
    func end() async throws {
        let group = state.value.withLock { state in
            state.isEnding = true
            return state.group
        }
        if let group { await group.triggerGracefulShutdown() } else { opening.cancel() }
        do {
            try await running.value
        } catch is CancellationError {}
    }

    func client() async throws -> RelayClient {
        RelayClient(
            port: try await ports.port(of: "http"), adminPort: try await ports.port(of: "admin")
        )
    }

    /// Waits until it is ready as this.
    func wait(as role: String) async throws {
        let client = try await client()
        while true {
            let reply = try await client.call("GET", "/readyz")
            if reply.status == 200, reply["role"] == .string(role) { return }
        }
    }

    /// Waits until it has the store's state, although it is not the owner.
    func waitForWarmth() async throws {
        let client = try await client()
        while try await client.call("GET", "/readyz")["standby", "state"] != "warm" {}
    }
}
