import Foundation
import GatewaySimulator
import Logging
import RelayModel
import RelayServer
import RelayTestKit
import ServiceLifecycle

/// A complete relay in one process, with what it needs.
///
/// It has a store of its own, loopback listeners, a simulated gateway, and a container with alice's
/// phone and tablet and bob's phone.
struct RunningRelay: Sendable {
    let relay: Relay
    let gateway: SampleGateway
    let client: RelayClient
    let container: SampleContainer

    /// Runs `body` with a relay, and shuts the relay down gracefully.
    static func with(
        _ settings: [String] = [], script: AnswerScript = AnswerScript(), world: World = .real,
        _ body: @escaping @Sendable (RunningRelay) async throws -> Void
    ) async throws {
        let store = try TemporaryStore()
        let directory = URL(filePath: store.path).deletingLastPathComponent()
        let gateway = try await SampleGateway.start(script, in: directory)
        let values = try await ConfigurationValues.gather(
            arguments: [
                "--storage-path", store.path, "--storage-disk-reserve-megabytes", "0",
                "--storage-create", "whenMissing",
                "--http-port", "0", "--admin-port", "0", "--admin-token", RelayClient.adminToken,
            ] + gateway.settings.flatMap { [$0, $1] } + settings, environment: [:])
        let logger = Logger.silent
        let relay = try await Relay(
            try RelayConfiguration(values), world: world, metrics: PrometheusMetrics(),
            logger: logger)
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: [.init(service: relay)], logger: logger))
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            let outcome: Result<Void, any Error>
            do {
                try await body(try await furnish(relay, gateway))
                outcome = .success(())
            } catch {
                outcome = .failure(error)
            }
            await group.triggerGracefulShutdown()
            try await tasks.waitForAll()
            try outcome.get()
        }
        await gateway.simulated.stop()
    }

    private static func furnish(
        _ relay: Relay, _ gateway: SampleGateway
    ) async throws -> RunningRelay {
        let client = RelayClient(
            port: try await relay.ports.port(of: "http"),
            adminPort: try await relay.ports.port(of: "admin"))
        let container = try await SampleContainer.create(on: client, for: gateway)
        for device in SampleDevice.usual { try await container.register(device) }
        return RunningRelay(
            relay: relay, gateway: gateway, client: client, container: container)
    }

    // MARK: What happened

    /// Waits until all posted changes are settled, and returns all pushes as lines.
    ///
    /// They are in alphabetical order, because devices are independent of each other.
    func arrivals() async throws -> [String] {
        try await relay.waitUntilSettled(within: .patience)
        return gateway.arrivals.sorted()
    }

    /// Waits for `count` pushes, and returns the first ones.
    func pushes(_ count: Int) async throws -> [ReceivedPush] {
        try await gateway.simulated.pushes(count: count, within: .patience)
    }
}
