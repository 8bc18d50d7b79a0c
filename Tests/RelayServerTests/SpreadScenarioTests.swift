import Foundation
import GatewaySimulator
import Logging
import RelayModel
import RelayTestKit
import StoragePostgreSQL
import StorageSQL
import Testing

@testable import RelayServer

/// Two machines, and two stores in two schemas of a real server.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"),
    .serialized, .timeLimit(.minutes(30)))
struct SpreadScenarioTests {
    /// A relay of one store on one machine, which starts again after it has handed its store over.
    private final class Node: Sendable {
        private let stage: RelayStage
        private let running: Task<Bool, any Error>

        init(_ settings: [String], _ logger: Logger) async throws {
            let values = try await ConfigurationValues.gather(arguments: settings, environment: [:])
            var made = try RelayConfiguration(values)
            made.nodes.handOver = HandOverPatience.Settings(
                quiet: .seconds(2), tenure: .seconds(5))
            let configuration = made
            let stage = RelayStage(clock: World.real.clock, logger: logger) {
                try await Relay(
                    configuration, world: World.real, metrics: PrometheusMetrics(), logger: logger)
            }
            self.stage = stage
            running = Task { try await stage.run() }
        }

        /// Ends the relay in order, in whatever state it is; returns whether it had the store.
        @discardableResult func end() async throws -> Bool {
            await stage.end()
            return try await running.value
        }
    }

    private static let told = "handing the store over to the machine that should own it"

    /// The two schemas, the relays, and what they logged.
    private struct Service: Sendable {
        let schemas: [String]
        let gateway: SampleGateway
        let log: LogBook
        let node: @Sendable (_ machine: String, _ schema: Int) async throws -> Node

        func place(_ schema: Int) throws -> PostgresPlace {
            try PostgresPlace(url: try PostgresServer.ofStores().url(), schema: schemas[schema])
        }

        /// Returns the machine that owns a store, and those that stand by with its state.
        func state(of schema: Int) throws -> (owner: String?, warm: [String]) {
            let nodes = try RelayStore.nodes(try place(schema))
            return (
                nodes.first { $0.role == .owner }?.machine,
                nodes.filter { $0.role == .standingBy && $0.standby == .warm }
                    .compactMap(\.machine).sorted()
            )
        }

        /// Waits until a store has this owner, and these machines stand by with its state.
        func wait(for schema: Int, owner: String, warm: [String]) async throws {
            let isSo = await Turns.yield {
                // The store may be just being created.
                guard let state = try? state(of: schema) else { return false }
                return state.owner == owner && state.warm == warm
            }
            #expect(isSo)
        }
    }

    private static func with(
        _ more: [String] = [], _ body: @escaping @Sendable (Service) async throws -> Void
    ) async throws {
        let server = try PostgresServer.ofStores()
        let schemas = [server.schemaName(), server.schemaName()]
        let home = try TemporaryStore()
        let folder = URL(filePath: home.path).deletingLastPathComponent()
        let gateway = try await SampleGateway.start(AnswerScript(), in: folder)
        let log = LogBook { "\($0.message)" }
        let service = Service(schemas: schemas, gateway: gateway, log: log) { machine, schema in
            try await Node(
                [
                    "--nodes-machine", machine, "--nodes-schemas", schemas.joined(separator: ","),
                    "--storage-url", server.url(), "--storage-schema", schemas[schema],
                    "--storage-create", "whenMissing",
                    "--storage-path", "\(home.path)-\(machine)-\(schema)",
                    "--http-port", "0", "--admin-port", "0",
                    "--admin-token", RelayClient.adminToken,
                ] + gateway.settings.flatMap { [$0, $1] } + more, log.logger)
        }
        let outcome: Result<Void, any Error>
        do {
            try await body(service)
            outcome = .success(())
        } catch {
            outcome = .failure(error)
        }
        await gateway.simulated.stop()
        try outcome.get()
    }

    @Test func `nothing moves while balancing is off`() async throws {
        try await Self.with(["--nodes-balance", "off"]) { service in
            let north = [try await service.node("north", 0), try await service.node("north", 1)]
            for schema in [0, 1] { try await service.wait(for: schema, owner: "north", warm: []) }
            let south = try await service.node("south", 0)
            try await service.wait(for: 0, owner: "north", warm: ["south"])
            let stays = await Turns.keeps { !service.log.lines.contains(Self.told) }
            #expect(stays)
            #expect(try RelayStore.view(from: try service.place(0)) == nil)
            for node in north + [south] { try await node.end() }
        }
    }
}
