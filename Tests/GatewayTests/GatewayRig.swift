import Crypto
import Foundation
import Gateway
import GatewaySimulator
import RelayModel
import RelayTestKit
import Synchronization
import Testing

/// A simulated gateway with the real push gateway in front of it.
final class GatewayRig: Sendable {
    /// The simulated gateway to which pushes are sent.
    let simulator: SimulatedGateway
    /// The push gateway under test.
    let gateway: CurlPushGateway
    /// The ends of attempts so far.
    let ends: EndCollector
    /// The events of the connections so far.
    let events: EventCollector

    private let caFile: String

    private init(
        simulator: SimulatedGateway, caFile: String, settings: CurlGatewaySettings,
        world: GatewayWorld
    ) throws {
        let ends = EndCollector()
        let events = EventCollector()
        var world = world
        world.observer = { events.note($0) }
        self.simulator = simulator
        self.caFile = caFile
        self.ends = ends
        self.events = events
        gateway = try CurlPushGateway(settings: settings, world: world) { ends.take($0) }
    }

    /// Starts both, runs `body` with them, and stops both.
    static func run(
        simulating: (inout SimulatedGateway.Configuration) -> Void = { _ in },
        settings change: (inout CurlGatewaySettings) -> Void = { _ in },
        world changeWorld: (inout GatewayWorld) -> Void = { _ in },
        _ body: (GatewayRig) async throws -> Void
    ) async throws {
        let folder = FileManager.default.temporaryDirectory.path
        let caFile = "\(folder)/belfry-gateway-\(UUID().uuidString).pem"
        var configuration = SimulatedGateway.Configuration()
        configuration.caFile = caFile
        simulating(&configuration)
        let simulator = try await SimulatedGateway.start(configuration)
        var settings = CurlGatewaySettings()
        // The time is long because other suites may use all processors.
        settings.connectTimeout = .patience
        settings.production = try #require(
            GatewayEndpoint("https://127.0.0.1:\(simulator.port)"))
        settings.development = settings.production
        settings.caFile = caFile
        settings.connectionsPerCredential = 1
        change(&settings)
        var world = GatewayWorld.sample()
        changeWorld(&world)
        let rig = try GatewayRig(
            simulator: simulator, caFile: caFile, settings: settings, world: world)
        do {
            try await body(rig)
            await rig.stop()
        } catch {
            await rig.stop()
            throw error
        }
    }

    private func stop() async {
        await gateway.shutDown(within: .zero)
        await simulator.stop()
        try? FileManager.default.removeItem(atPath: caFile)
    }

    /// Sends `requests` and waits until all have ended.
    func outcomes(of requests: [PushRequest]) async -> [PushOutcome] {
        gateway.send(requests)
        let ended = await ends.wait(for: Set(requests.map(\.ticket)))
        return requests.compactMap { ended[$0.ticket] }
    }

    /// Sends one request and waits until it has ended.
    func outcome(of request: PushRequest) async throws -> PushOutcome {
        try #require(await outcomes(of: [request]).first)
    }

    /// Sends `requests` with the same delivery IDs until all are accepted.
    ///
    /// Like a careful caller it sends only one of them, the scout, while the gateway backs off.
    func deliver(_ requests: [PushRequest]) async {
        var pending = requests
        var round: UInt64 = 0
        var isScouting = false
        let deadline = ContinuousClock.now.advanced(by: .patience)
        while !pending.isEmpty, ContinuousClock.now < deadline {
            round += 1
            for index in pending.indices { pending[index].ticket = round << 32 | UInt64(index) }
            let sent = isScouting ? pending.prefix(1) : pending[...]
            let outcomes = await outcomes(of: Array(sent))
            isScouting = outcomes.allSatisfy { if case .notSent = $0 { true } else { false } }
            let missed = zip(sent, outcomes).filter { $0.1 != .accepted }.map(\.0)
            pending = missed + pending.dropFirst(sent.count)
        }
        #expect(
            pending.isEmpty, "\(Set(ends.all.values)) \(events.all)")
    }
}

extension GatewayWorld {
    /// Returns a world with a fresh key and the real clock.
    static func sample() -> GatewayWorld {
        let credential = GatewayCredential.sample(P256.Signing.PrivateKey())
        return GatewayWorld(
            credentials: { _, _ in credential }, wallClock: { .now },
            generator: SystemRandomNumberGenerator())
    }
}

extension Timestamp {
    /// The current moment of the real clock.
    static var now: Timestamp {
        Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
    }
}

extension GatewayCredential {
    /// Returns a credential with a signing key and readable names.
    static func sample(
        _ key: P256.Signing.PrivateKey, keyID: String = "KEY0000001"
    ) -> GatewayCredential? {
        GatewayCredential.SigningKey(
            teamID: "TEAM000001", keyID: keyID,
            privateKeyPEM: ConcealedText(key.pemRepresentation)
        ).map { .signingKey($0) }
    }
}

/// Collects completions, and wakes the tasks that wait for them.
final class EndCollector: Sendable {
    private struct State {
        var ended: [UInt64: PushOutcome] = [:]
        var waiters: [(tickets: Set<UInt64>, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    func take(_ completions: [PushCompletion]) {
        let ready = state.withLock { state in
            for completion in completions {
                let earlier = state.ended.updateValue(
                    completion.outcome, forKey: completion.ticket)
                #expect(earlier == nil, "ticket \(completion.ticket) ended twice")
            }
            let ready = state.waiters.filter { state.ended.isMissingNone(of: $0.tickets) }
            state.waiters.removeAll { state.ended.isMissingNone(of: $0.tickets) }
            return ready
        }
        for waiter in ready { waiter.continuation.resume() }
    }

    /// Waits until all `tickets` have ended.
    func wait(for tickets: Set<UInt64>) async -> [UInt64: PushOutcome] {
        await withCheckedContinuation { continuation in
            let isReady = state.withLock { state in
                if state.ended.isMissingNone(of: tickets) { return true }
                state.waiters.append((tickets, continuation))
                return false
            }
            if isReady { continuation.resume() }
        }
        return all
    }

    /// What has ended so far.
    var all: [UInt64: PushOutcome] { state.withLock { $0.ended } }
}

extension Dictionary {
    func isMissingNone(of keys: Set<Key>) -> Bool {
        keys.allSatisfy { self[$0] != nil }
    }
}

/// Collects events, and wakes the tasks that wait for one.
final class EventCollector: Sendable {
    private struct State {
        var events: [GatewayEvent] = []
        var waiters:
            [(
                test: @Sendable (GatewayEvent) -> Bool,
                continuation: CheckedContinuation<Void, Never>
            )] =
                []
    }

    private let state = Mutex(State())

    func note(_ event: GatewayEvent) {
        let ready = state.withLock { state in
            state.events.append(event)
            defer { state.waiters.removeAll { $0.test(event) } }
            return state.waiters.filter { $0.test(event) }
        }
        for waiter in ready { waiter.continuation.resume() }
    }

    /// Waits for an event, or returns at once if there already was one.
    func wait(for test: @escaping @Sendable (GatewayEvent) -> Bool) async {
        await withCheckedContinuation { continuation in
            let isReady = state.withLock { state in
                if state.events.contains(where: test) { return true }
                state.waiters.append((test, continuation))
                return false
            }
            if isReady { continuation.resume() }
        }
    }

    /// The events so far.
    var all: [GatewayEvent] { state.withLock { $0.events } }

    /// The causes of the retirements so far.
    var retirements: [RetirementCause] {
        all.compactMap { event in
            if case .retired(_, _, let cause, _, _) = event { cause } else { nil }
        }
    }
}

/// A flag that is set once.
final class Flag: Sendable {
    private let state = Mutex(false)

    var isSet: Bool { state.withLock { $0 } }

    func set() { state.withLock { $0 = true } }
}

/// Keeps provider tokens in memory, as the store does on disk.
final class KeptTokens: Sendable {
    private let state = Mutex<[ProviderTokenRecord]>([])

    var count: Int { state.withLock { $0.count } }

    var tokenStore: ProviderTokenStore {
        ProviderTokenStore(
            load: { key in self.state.withLock { $0.last { $0.key == key } } },
            keep: { record in self.state.withLock { $0.append(record) } })
    }
}
