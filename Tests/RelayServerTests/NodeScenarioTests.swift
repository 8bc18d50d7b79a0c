import Foundation
import GatewaySimulator
import Logging
import RelayModel
import RelayTestKit
import ServiceLifecycle
import StoragePostgreSQL
import StorageSQL
import Synchronization
import Testing

@testable import RelayServer

/// Two relays on one schema of a real server.
///
/// One owns the store. The other one forwards its calls to the owner, and takes its place.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"),
    .serialized, .timeLimit(.minutes(30)))
struct NodeScenarioTests {
    private struct Pair: Sendable {
        let first: RunningNode
        let second: RunningNode
        let gateway: SampleGateway
        /// The container, as reached by way of the second relay.
        let container: SampleContainer
        let lines: AccessLines
        let schema: String

        func arrivals(_ count: Int) async throws -> [ReceivedPush] {
            try await gateway.simulated.pushes(count: count, within: .patience)
        }
    }

    /// The addresses in the access log, and the other messages of the log.
    private final class AccessLines: Sendable {
        private let addresses = Mutex<[String]>([])
        private let messages = Mutex<Set<String>>([])
        var all: [String] { addresses.withLock { $0 } }
        func add(_ address: String) { addresses.withLock { $0.append(address) } }
        func note(_ message: String) { _ = messages.withLock { $0.insert(message) } }
        func has(_ message: String) -> Bool { messages.withLock { $0.contains(message) } }
    }

    private struct AccessHandler: LogHandler {
        let lines: AccessLines
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.info

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            if let address = event.metadata?["address"] { lines.add("\(address)") }
            lines.note("\(event.message)")
        }
    }

    private static func with(
        _ settings: [String] = [], second others: [String] = [],
        _ body: @escaping @Sendable (Pair) async throws -> Void
    ) async throws {
        let server = try PostgresServer.ofStores()
        let schema = server.schemaName()
        let home = try TemporaryStore()
        let folder = URL(filePath: home.path).deletingLastPathComponent()
        let gateway = try await SampleGateway.start(AnswerScript(), in: folder)
        let lines = AccessLines()
        let logger = Logger(label: "test") { _ in AccessHandler(lines: lines) }
        func node(_ name: String, _ more: [String] = []) async throws -> RunningNode {
            try await RunningNode(
                [
                    "--nodes-name", name,
                    "--storage-url", server.url(), "--storage-schema", schema,
                    "--storage-create", "whenMissing", "--storage-path", "\(home.path)-\(name)",
                    "--http-port", "0", "--admin-port", "0",
                    "--admin-token", RelayClient.adminToken,
                ] + gateway.settings.flatMap { [$0, $1] } + settings + more, logger)
        }
        let first = try await node("first")
        try await first.wait(as: "owner")
        let second = try await node("second", others)
        try await second.wait(as: "standingBy")
        let outcome: Result<Void, any Error>
        do {
            let container = try await SampleContainer.create(
                on: try await second.client(), for: gateway)
            try await body(
                Pair(
                    first: first, second: second, gateway: gateway, container: container,
                    lines: lines, schema: schema))
            outcome = .success(())
        } catch {
            outcome = .failure(error)
        }
        try await second.end()
        try await first.end()
        await gateway.simulated.stop()
        try outcome.get()
    }

    @Test func `every call is answered through the relay that stands by`() async throws {
        try await Self.with { pair in
            let container = pair.container
            for device in SampleDevice.usual { try await container.register(device) }
            try await container.save(.query("q", info: ["alertBody": "New"]))
            #expect(try await container.subscriptionIDs() == ["q"])
            try await container.post(.change("create", "a1"))
            let pushes = try await pair.arrivals(2)
            #expect(Set(pushes.compactMap { SampleDevice.name(of: $0.deviceToken) }).count == 2)
            // The owner has the subscription.
            var there = container
            there.client = try await pair.first.client()
            #expect(try await there.subscriptionIDs() == ["q"])
            let overview = try await container.client.administer("GET", "overview").expect(200)
            #expect(overview.text.contains("iCloud.com.example.Art"))
            // A refusal is the owner's refusal.
            let stranger = try await container.client.call(
                "GET",
                "/database/1/\(container.key.container)/development/public/subscriptions/list")
            #expect(stranger.status == 401 || stranger.status == 421)
        }
    }

    @Test func `through it a poll is held, and a connected client sees changes`() async throws {
        try await Self.with { pair in
            let container = pair.container
            let made = try await container.call(
                "tokens/create", ["apnsEnvironment": "development", "clientId": "page"],
                as: "alice", in: nil
            ).expect(200)
            guard case .string(let url)? = made["webcourierURL"] else {
                Issue.record("\(made.text)")
                return
            }
            // The URL leads to the address that the client used, and stays valid when other shards
            // are added.
            #expect(url.hasPrefix(container.client.url) && url.contains("?shard="), "\(url)")
            try await pair.second.checkWhatIsTold(of: container, pollAt: url)
        }
    }

    @Test func `through it a stream of events and an operator's held call work`()
        async throws
    {
        try await Self.with { pair in
            let container = pair.container
            try await container.client.administer(
                "POST", "\(container.path)/schema/recordTypes/Artwork", ["shadow": true]
            ).expect(200)
            let begun = try await container.client.administer("GET", "\(container.path)/events")
                .expect(200)
            guard case .string(let place)? = begun["after"] else {
                Issue.record("\(begun.text)")
                return
            }
            async let held = container.client.administer(
                "GET", "\(container.path)/events?after=\(place)&hold=30&only=change")
            let set: JSONValue = [
                "version": 1,
                "queries": [
                    ["id": "all", "recordType": "Artwork", "query": ["predicate": "price < 100"]]
                ],
            ]
            let text = JSONValue.object(["format": "plain", "set": set]).text
            let stream = try await RawConnection.open(
                try await pair.second.ports.port(of: "http"))
            try await stream.send(
                "POST /live/1/\(container.key.container)/development/stream"
                    + "?ckAPIToken=\(container.apiToken)"
                    + "&ckWebAuthToken=\(SampleContainer.userToken("alice")) HTTP/1.1\r\n"
                    + "Host: localhost\r\nContent-Length: \(text.utf8.count)\r\n\r\n\(text)")
            let first = await stream.hear(until: "id: ")
            #expect(first.contains("text/event-stream"), "\(first)")
            try await container.post(.change("create", "told", ["price": 7]))
            #expect(await stream.hear(until: #""told""#).contains(#""items""#))
            let change = try await held
            #expect(change["events", "0", "recordName"] == "told", "\(change.text)")
            try await stream.close()
        }
    }

    @Test func `the owner knows clients by their own addresses`() async throws {
        try await Self.with(["--log-access", "all"]) { pair in
            let connection = try await RawConnection.open(
                try await pair.second.ports.port(of: "http"), from: "127.0.0.3")
            try await connection.send(
                "GET /openapi.json HTTP/1.1\r\nHost: h\r\nBelfry-Node-Peer: 203.0.113.1\r\n\r\n")
            _ = await connection.hear(until: "\r\n\r\n")
            #expect(await Turns.yield { pair.lines.all.contains("127.0.0.3") })
            #expect(!pair.lines.all.contains("203.0.113.1"))
        }
    }

    @Test func `relays with different settings say so`() async throws {
        try await Self.with(second: ["--retention-log-hours", "24"]) { pair in
            let warning = "another relay of the store has other settings"
            #expect(await Turns.yield { pair.lines.has(warning) })
            let client = pair.container.client
            let isShown = try await Turns.yield {
                try await client.administer("GET", "overview").expect(200).text
                    .contains("retention.logHours is 24 there and ")
            }
            #expect(isShown)
            let attention = try await client.administer("GET", "attention").expect(200)
            #expect(attention.text.contains("belfry nodes"), "\(attention.text)")
        }
    }

    @Test func `the relay that stood by takes over on the same connections`()
        async throws
    {
        // The limit is long because a busy machine may take long to open the store.
        try await Self.with(["--nodes-wait-seconds", "60"]) { pair in
            for device in SampleDevice.usual { try await pair.container.register(device) }
            try await pair.container.save(.query("q", info: ["alertBody": "New"]))
            let connection = try await RawConnection.open(
                try await pair.second.ports.port(of: "http"))
            func post(_ name: String) async throws {
                let body = JSONValue.change("create", name).text
                try await connection.send(
                    """
                    POST /changes/1/\(pair.container.key.container)/development/database HTTP/1.1\r
                    Host: relay\r
                    Content-Type: application/json\r
                    Content-Length: \(body.utf8.count)\r
                    \r
                    \(body)
                    """)
            }
            try await post("a1")
            #expect(await connection.hear(until: "position").contains("HTTP/1.1 200"))
            try await pair.second.waitForWarmth()
            try await pair.first.end()
            // The call waits until the store has an owner again.
            try await post("a2")
            #expect(await connection.hear(until: "position").contains("HTTP/1.1 200"))
            try await pair.second.wait(as: "owner")
            let pushes = try await pair.arrivals(4)
            #expect(Set(pushes.map(\.apnsID)).count == 4)
            #expect(pair.lines.has("started with the standby state"))
            let nodes = try RelayStore.nodes(
                try PostgresPlace(url: try PostgresServer.ofStores().url(), schema: pair.schema))
            #expect(nodes.map(\.name) == ["second"])
            #expect(nodes.first?.address != nil)
        }
    }

    @Test func `a relay that stood by and has ended is no longer listed`() async throws {
        try await Self.with { pair in
            let place = try PostgresPlace(
                url: try PostgresServer.ofStores().url(), schema: pair.schema)
            let before = try RelayStore.nodes(place)
            #expect(Set(before.map(\.name)) == ["first", "second"])
            try await pair.second.end()
            let after = try RelayStore.nodes(place)
            #expect(after.map(\.name) == ["first"])
        }
    }

    /// Behind a proxy all relays have one address, and thus one cookie.
    @Test func `a console session works at each relay, and can be ended at any`()
        async throws
    {
        try await Self.with { pair in
            @Sendable func ask(
                _ node: RunningNode, _ method: String, _ field: String
            ) async throws -> String {
                let connection = try await RawConnection.open(
                    try await node.ports.port(of: "admin"))
                try await connection.send(
                    "\(method) /admin/1/session HTTP/1.1\r\nHost: console.example\r\n"
                        + "Sec-Fetch-Site: same-origin\r\nX-Belfry-Console: 1\r\n"
                        + "Content-Length: 0\r\n\(field)\r\n\r\n")
                let answer = await connection.hear(until: "}")
                try await connection.close()
                return answer
            }
            let begun = try await ask(
                pair.second, "POST", "Authorization: Bearer \(RelayClient.adminToken)")
            let given = try #require(
                begun.range(of: "Set-Cookie: ", options: .caseInsensitive), "\(begun)")
            let cookie = "Cookie: \(begun[given.upperBound...].prefix { $0 != ";" })"
            for node in [pair.first, pair.second] {
                let shown = try await ask(node, "GET", cookie)
                #expect(shown.contains(#""signedIn":true"#), "\(shown)")
            }
            let ended = try await ask(pair.second, "DELETE", cookie)
            #expect(ended.contains(#""signedOut":true"#), "\(ended)")
            for node in [pair.first, pair.second] {
                let shown = try await ask(node, "GET", cookie)
                #expect(shown.hasPrefix("HTTP/1.1 401"), "\(shown)")
            }
        }
    }
}
