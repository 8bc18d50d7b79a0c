import RelayModel

/// What the pools of one gateway share: clocks, randomness, the poll, and the results of a turn.
///
/// It belongs to the gateway's thread.
final class GatewayContext {
    let settings: CurlGatewaySettings
    let poll: EventPoll
    let wallClock: @Sendable () -> Timestamp
    let tokenStore: ProviderTokenStore
    let hasEnded: @Sendable (JudgedRegistration) -> Bool
    private let observer: @Sendable (GatewayEvent) -> Void

    /// The time of this turn.
    var now: MonotonicInstant
    /// The source of randomness, for back-off and renewal.
    var generator: AnyGenerator
    /// The ends of attempts in this turn.
    private(set) var completions: [PushCompletion] = []
    /// The containers that sent recently, through any pool.
    var contention = Contention()
    private var moved = 0
    /// The number of the newest connection.
    private(set) var newestConnection: UInt64 = 0

    init(_ world: GatewayWorld, settings: CurlGatewaySettings, poll: EventPoll) {
        self.settings = settings
        self.poll = poll
        wallClock = world.wallClock
        tokenStore = world.tokenStore
        hasEnded = world.hasEnded
        observer = world.observer
        generator = AnyGenerator(world.generator)
        now = EventPoll.now
    }

    /// Notes the end of a request that was open for `latency`.
    func complete(
        _ request: PushRequest, _ outcome: PushOutcome, latency: Duration = .zero
    ) {
        completions.append(
            PushCompletion(ticket: request.ticket, outcome: outcome, latency: latency))
    }

    /// Counts a transfer that started or ended.
    func countMove() { moved += 1 }

    /// Returns how many transfers started or ended since the last call.
    func takeMoved() -> Int {
        defer { moved = 0 }
        return moved
    }

    /// Takes the ends of this turn.
    func takeCompletions() -> [PushCompletion] {
        guard !completions.isEmpty else { return [] }
        defer { completions = [] }
        return completions
    }

    /// Returns the number of a new connection.
    ///
    /// It has 32 bits, which fit beside a socket in a key of the poll.
    func nextConnectionNumber() -> UInt64 {
        newestConnection = (newestConnection + 1) & 0xFFFF_FFFF
        return newestConnection
    }

    func observe(_ event: GatewayEvent) { observer(event) }
}

/// A generator of any kind, for functions that expect a concrete one.
struct AnyGenerator: RandomNumberGenerator {
    private var generator: any RandomNumberGenerator

    init(_ generator: any RandomNumberGenerator) {
        self.generator = generator
    }

    mutating func next() -> UInt64 { generator.next() }
}
