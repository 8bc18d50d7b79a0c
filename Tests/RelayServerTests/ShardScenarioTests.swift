import Foundation
import GatewaySimulator
import Logging
import RelayModel
import RelayTestKit
import StoragePostgreSQL
import StorageSQL
import Testing

@testable import RelayServer

/// Relays of two shards of one service on a real server.
///
/// Calls to either relay are processed in the store that they belong to.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"),
    .serialized, .timeLimit(.minutes(30)))
struct ShardScenarioTests {
    private struct Service: Sendable {
        /// The relay that owns the first shard, and the one that owns the second.
        let one: RunningNode
        let two: RunningNode
        /// The names of the two shards, and of one that no relay has opened.
        let schemas: [String]
        let gateway: SampleGateway
        /// Starts another relay of a shard.
        let start: @Sendable (_ name: String, _ schema: String) async throws -> RunningNode

        /// Creates a container in the second shard through the relay of the first.
        func container(_ name: String = "iCloud.com.example.Art") async throws -> SampleContainer {
            try await SampleContainer.create(
                name, on: try await one.client(), for: gateway, shard: schemas[1])
        }

        /// Returns what a relay knows of a shard.
        func standing(_ schema: String, by node: RunningNode) async throws -> JSONValue? {
            let reply = try await node.client().administer("GET", "shards").expect(200)
            guard case .array(let rows)? = reply["shards"] else { return nil }
            return rows.first { $0.value(at: ["shard"]) == .string(schema) }
        }

        /// Waits until a relay sees the given owner of a shard.
        func wait(for node: RunningNode, toSee owner: String, of schema: String) async throws {
            while try await standing(schema, by: node)?.value(at: ["owner"]) != .string(owner) {}
        }
    }

    private static func with(
        _ settings: [String] = [], _ body: @escaping @Sendable (Service) async throws -> Void
    ) async throws {
        let server = try PostgresServer.ofStores()
        let schemas = (0..<3).map { _ in server.schemaName() }.sorted()
        let home = try TemporaryStore()
        let folder = URL(filePath: home.path).deletingLastPathComponent()
        let gateway = try await SampleGateway.start(AnswerScript(), in: folder)
        let logger = Logger.silent
        let start: @Sendable (String, String) async throws -> RunningNode = { name, schema in
            try await RunningNode(
                [
                    "--nodes-name", name, "--nodes-schemas", schemas.joined(separator: ","),
                    "--storage-url", server.url(), "--storage-schema", schema,
                    "--storage-create", "whenMissing", "--storage-path", "\(home.path)-\(name)",
                    "--http-port", "0", "--admin-port", "0",
                    "--admin-token", RelayClient.adminToken,
                ] + gateway.settings.flatMap { [$0, $1] } + settings, logger)
        }
        let one = try await start("one", schemas[0])
        let two = try await start("two", schemas[1])
        let service = Service(
            one: one, two: two, schemas: schemas, gateway: gateway, start: start)
        let outcome: Result<Void, any Error>
        do {
            try await one.wait(as: "owner")
            try await two.wait(as: "owner")
            try await service.wait(for: one, toSee: "two", of: schemas[1])
            try await body(service)
            outcome = .success(())
        } catch {
            outcome = .failure(error)
        }
        try await two.end()
        try await one.end()
        await gateway.simulated.stop()
        try outcome.get()
    }

    /// Posts a change until it is accepted: an owner that ends may accept it without answering.
    private static func insist(on name: String, _ container: SampleContainer) async throws {
        while true {
            let reply = try await container.client.call(
                "POST", "/changes/1/\(container.key)/database",
                headers: ["Content-Type": "application/json", "webhook-id": name],
                body: JSONValue.change("create", name).text)
            if reply.status == 200 { return }
            guard [502, 503].contains(reply.status) else { throw UnexpectedReply(reply) }
        }
    }

    @Test func `a container is served by relays of other shards too`() async throws {
        try await Self.with { service in
            let container = try await service.container()
            for device in SampleDevice.usual { try await container.register(device) }
            try await container.save(.query("q", info: ["alertBody": "New"]))
            #expect(try await container.subscriptionIDs() == ["q"])
            try await container.post(.change("create", "a1"))
            let pushes = try await service.gateway.simulated.pushes(count: 2, within: .patience)
            #expect(Set(pushes.compactMap { SampleDevice.name(of: $0.deviceToken) }).count == 2)
            // The container is in the second shard alone.
            let there = try await service.two.client()
            #expect(try await there.administer("GET", container.path).expect(200).status == 200)
            for (node, index) in [(service.one, 1), (service.two, 1)] {
                let list = try await node.client().administer("GET", "containers").expect(200)
                let rows = node === service.two ? "containers" : "elsewhere"
                #expect(list[rows, "0", "shard"] == .string(service.schemas[index]), "\(list.text)")
            }
            // A token for it is created in its shard, and nowhere else.
            let token: JSONValue = [
                "label": "one", "access": "read",
                "container": .string("\(container.key.container)"),
                "environment": .string(container.key.environment.rawValue),
            ]
            let here = try await service.one.client()
            let refused = try await here.administer("POST", "tokens", token).expect(400)
            #expect(refused.text.contains("shard=\(service.schemas[1])"), "\(refused.text)")
            _ = try await here.administer("POST", "tokens?shard=\(service.schemas[1])", token)
                .expect(201)
            let unknown = "deliveries/71e7c0de-0000-8000-8000-000000000000"
            let other = try await here.administer("GET", unknown).expect(404)
            #expect(other.text.contains("to another shard than \(service.schemas[0])"))
            // A container that no shard has is not found. Calls of both kinds alternate on one
            // connection.
            let connection = try await RawConnection.open(
                try await service.one.ports.port(of: "http"))
            for name in ["none", "\(container.key.container)", "none"] {
                try await connection.send(
                    "POST /changes/1/\(name)/development/database HTTP/1.1\r\nHost: h\r\n"
                        + "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
                let answer = await connection.hear(until: "}")
                #expect(answer.contains(name == "none" ? " 404 " : " 422 "), "\(answer)")
            }
            try await connection.close()
        }
    }

    @Test func `polls and connections reach the shard of their container`() async throws {
        try await Self.with { service in
            let container = try await service.container()
            let made = try await container.call(
                "tokens/create", ["apnsEnvironment": "development", "clientId": "page"],
                as: "alice", in: nil
            ).expect(200)
            guard case .string(let url)? = made["webcourierURL"] else {
                Issue.record("\(made.text)")
                return
            }
            // The URL names its shard, and leads to the address that the client used.
            #expect(url.hasSuffix("?shard=\(service.schemas[1])"))
            #expect(url.hasPrefix(container.client.url))
            // The courier serves no container of another shard.
            let other = try await SampleContainer.create(
                "iCloud.com.example.Own", on: try await service.one.client(), for: service.gateway,
                shard: service.schemas[0])
            let refused = try await other.call(
                "tokens/register",
                [
                    "apnsEnvironment": "development", "apnsToken": made["apnsToken"] ?? .null,
                    "webcourierURL": .string(url),
                ], as: "alice", in: nil
            ).expect(400)
            #expect(refused.text.contains("belongs to the shard \(service.schemas[1])"))
            try await service.one.checkWhatIsTold(of: container, pollAt: url)
        }
    }

    @Test func `calls about a store go to the named shard`() async throws {
        try await Self.with { service in
            let container = try await service.container()
            let client = try await service.one.client()
            let name = "\(container.key.container)"
            let own = try await client.administer("GET", "overview").expect(200)
            #expect(!own.text.contains(name))
            let other = try await client.administer("GET", "overview?shard=\(service.schemas[1])")
            #expect(try other.expect(200).text.contains(name))
            let unknown = try await client.administer("GET", "overview?shard=none").expect(400)
            #expect(unknown.text.contains(service.schemas[0]), "\(unknown.text)")
            // An existing container stays in its shard.
            let moved = try await client.administer(
                "PUT", "\(container.path)?shard=\(service.schemas[0])", ["topics": ["x"]]
            ).expect(400)
            #expect(moved.text.contains("is in the shard"), "\(moved.text)")
            let absent = try await service.standing(service.schemas[2], by: service.one)
            #expect(absent?.value(at: ["state"]) == "absent")
            let two = try await service.standing(service.schemas[1], by: service.one)
            #expect(two?.value(at: ["own"]) == false && two?.value(at: ["containers"]) == 1)
            #expect(two?.value(at: ["address"]) != nil && two?.value(at: ["epoch"]) == 1)
        }
    }

    @Test func `a container that two relays create at once is created once`() async throws {
        try await Self.with { service in
            let (one, two) = (try await service.one.client(), try await service.two.client())
            for number in 0..<5 {
                let path = "containers/iCloud.com.example.\(number)/development"
                async let first = one.administer(
                    "PUT", "\(path)?shard=\(service.schemas[0])", ["topics": ["x"]])
                async let second = two.administer(
                    "PUT", "\(path)?shard=\(service.schemas[1])", ["topics": ["x"]])
                let statuses = try await [first.status, second.status].sorted()
                // The later request learns that the container exists, possibly in another shard.
                #expect(statuses == [201, 409] || statuses == [201, 400])
                // Whichever relay created it, both find it.
                for client in [one, two] {
                    let isFound = try await Turns.yield {
                        try await client.administer("GET", path).status == 200
                    }
                    #expect(isFound)
                }
            }
            // Without a name, every relay chooses the same shard; the third shard has no relay.
            let map = ShardMap(own: service.schemas[0], schemas: service.schemas)
            for number in 10..<16 {
                let name = "iCloud.com.example.\(number)"
                let key = ContainerKey(
                    container: Fixtures.identifier(name), environment: .development)
                let shard = map.choice(for: key)
                guard shard != service.schemas[2] else { continue }
                let client = number.isMultiple(of: 2) ? one : two
                try await client.administer(
                    "PUT", "containers/\(name)/development", ["topics": ["x"]]
                ).expect(201)
                let overview = try await client.administer("GET", "overview?shard=\(shard)")
                #expect(overview.text.contains("\"\(name)\""))
            }
        }
    }

    @Test func `calls for a shard without an owner wait, and others continue`()
        async throws
    {
        try await Self.with { service in
            let container = try await service.container()
            let own = try await SampleContainer.create(
                "iCloud.com.example.Own", on: try await service.one.client(), for: service.gateway,
                shard: service.schemas[0])
            let next = try await service.start("next", service.schemas[1])
            try await next.wait(as: "standingBy")
            try await container.post(.change("create", "a1"))
            async let ended: Void = service.two.end()
            for number in 0..<20 {
                try await Self.insist(on: "b\(number)", container)
                try await own.post(.change("create", "c\(number)"))
            }
            try await ended
            try await next.wait(as: "owner")
            try await service.wait(for: service.one, toSee: "next", of: service.schemas[1])
            try await container.post(.change("create", "last"))
            // The relay that stood by for one shard forwards calls for the other.
            var there = own
            there.client = try await next.client()
            try await there.post(.change("create", "d"))
            try await next.end()
        }
    }

    @Test func `impossible calls are refused in time with the reason`() async throws {
        try await Self.with(["--nodes-wait-seconds", "1"]) { service in
            let client = try await service.one.client()
            let refused = try await client.administer(
                "PUT", "containers/iCloud.com.example.X/development?shard=\(service.schemas[2])",
                ["topics": ["x"]])
            #expect(refused.status == 503 && refused.retryAfter == "1", "\(refused.text)")
            #expect(refused.text.contains("there is no such schema yet"), "\(refused.text)")
            let shards = try await client.administer("GET", "shards").expect(200)
            #expect(shards.text.contains("there is no such schema yet"))
        }
    }
}
