import Logging
import RelayModel
import RelayTestKit
import ServiceLifecycle
import Synchronization
import Testing

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

    /// Ends the relay in order, in whatever state it is.
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

    /// Waits until the relay is ready in this role.
    func wait(as role: String) async throws {
        let client = try await client()
        while true {
            let reply = try await client.call("GET", "/readyz")
            if reply.status == 200, reply["role"] == .string(role) { return }
        }
    }

    /// Waits until the relay has the store's state in memory while it stands by.
    func waitForWarmth() async throws {
        let client = try await client()
        while try await client.call("GET", "/readyz")["standby", "state"] != "warm" {}
    }
}

extension RunningNode {
    /// Checks that a new record is shown to alice's page and pushed to her courier.
    ///
    /// The page is connected to this relay, and the courier's poll waits at `url`.
    func checkWhatIsTold(of container: SampleContainer, pollAt url: String) async throws {
        try await container.save(.query("q", info: ["alertBody": "New"]))
        let path = String(url.dropFirst(container.client.url.count))
        let poll = Task { try await container.client.call("GET", path).expect(200) }
        try await container.client.administer(
            "POST", "\(container.path)/schema/recordTypes/Artwork", ["shadow": true]
        ).expect(200)
        let (page, head) = try await LiveConnection.open(
            try await ports.port(of: "http"),
            path: "/live/1/\(container.key.container)/development")
        #expect(head.hasPrefix("HTTP/1.1 101"), "\(head)")
        try await page.send([
            "type": "hello", "ckAPIToken": .string(container.apiToken),
            "ckWebAuthToken": .string(SampleContainer.userToken("alice")), "format": "plain",
            "deviceID": "alice-page",
        ])
        #expect(await page.frame("welcome")?["userRecordName"] == "alice")
        try await page.send([
            "type": "set", "version": 1,
            "queries": [
                ["id": "all", "recordType": "Artwork", "query": ["predicate": "price < 100"]]
            ],
        ])
        _ = await page.frames(until: "at")
        try await container.post(.change("create", "a1", ["price": 7]))
        let frames = await page.frames(until: "at")
        #expect(frames.contains { $0["type"] == "items" })
        #expect(try await poll.value["ck", "qry", "rid"] == "a1")
        try await page.close()
    }
}
