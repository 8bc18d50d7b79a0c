import Foundation
import GatewaySimulator
import Logging
import RelayModel
import RelayServer
import RelayTestKit
import ServiceLifecycle

/// A relay in this process whose sources follow databases.
struct ServedRelay: Sendable {
    let relay: Relay
    let gateway: SampleGateway
    let client: RelayClient
    let container: SampleContainer

    /// Runs `body` with a relay on a new store, and shuts the relay down gracefully.
    static func with(_ body: @escaping @Sendable (ServedRelay) async throws -> Void) async throws {
        let store = try TemporaryStore()
        let gateway = try await SampleGateway.start(
            in: URL(filePath: store.path).deletingLastPathComponent())
        try await with(store, gateway, body)
        await gateway.simulated.stop()
    }

    /// Runs `body` with a relay on `store`, and shuts the relay down gracefully.
    ///
    /// `known` is a container that the store already has.
    static func with(
        _ store: TemporaryStore, _ gateway: SampleGateway, known: SampleContainer? = nil,
        _ body: @escaping @Sendable (ServedRelay) async throws -> Void
    ) async throws {
        let values = try await ConfigurationValues.gather(
            arguments: [
                "--storage-path", store.path, "--storage-disk-reserve-megabytes", "0",
                "--storage-create", "whenMissing", "--http-port", "0", "--admin-port", "0",
                "--http-metrics", "on",
                "--admin-token", RelayClient.adminToken,
            ] + gateway.settings.flatMap { [$0, $1] }, environment: [:])
        let logger = Logger.silent
        let relay = try await Relay(
            try RelayConfiguration(values), world: .real, metrics: PrometheusMetrics(),
            logger: logger)
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: [.init(service: relay)], logger: logger))
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            let client = RelayClient(
                port: try await relay.ports.port(of: "http"),
                adminPort: try await relay.ports.port(of: "admin"))
            var container: SampleContainer
            if let known {
                container = known
                container.client = client
            } else {
                container = try await SampleContainer.create(on: client, for: gateway)
                for device in SampleDevice.usual { try await container.register(device) }
            }
            let outcome: Result<Void, any Error>
            do {
                try await body(
                    ServedRelay(
                        relay: relay, gateway: gateway, client: client, container: container))
                outcome = .success(())
            } catch {
                outcome = .failure(error)
            }
            await group.triggerGracefulShutdown()
            try await tasks.waitForAll()
            try outcome.get()
        }
    }

    /// Polls a source until the state of its database is `wanted` and `isRight` accepts it, and
    /// returns it.
    func source(
        _ name: String, is wanted: String, and isRight: (JSONValue) -> Bool = { _ in true }
    ) async throws -> JSONValue {
        while true {
            let shown = try await client.administer("GET", "\(container.path)/sources/\(name)")
                .expect(200)
            try Task.checkCancellation()
            if shown.json.value(at: ["following", "state"]) == .string(wanted),
                isRight(shown.json)
            {
                return shown.json
            }
        }
    }
}
