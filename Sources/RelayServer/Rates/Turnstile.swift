package import CoreMetrics
import Metrics
import RegularExpressions
import RelayModel
import Storage
import Synchronization

/// How often clients may come.
package struct RateSettings: Sendable, Hashable {
    /// Requests of one address in a second; `nil` for 10,000, and any number of this machine's own.
    var address: Int?
    /// Requests with one key, or of one change source, in a second; 0 for any number.
    var key = 20_000
    /// Requests of one user in a second; 0 for any number.
    var user = 1000
    /// What holds for single containers instead.
    var containers: [ContainerID: Own] = [:]
    /// The memory for bodies.
    var bodyBytes = 256 * 1_048_576

    /// What holds for one container.
    struct Own: Sendable, Hashable {
        var key: Int
        var user: Int
    }

    /// What a refused credential costs, in requests.
    static let refusedCost = 20.0

    /// Administrative calls with tokens that are good for one container alone: many times what
    /// pages of the console ask, and far less than what would keep the writer from others.
    static let administration = RateLimit(perSecond: 100, burst: 1000)

    /// The instructions of patterns that are compiled for one user, or for all who are not signed
    /// in: a fiftieth of a processor, and four tenths of a second at once.
    static let patterns = RateLimit(perSecond: 20_000, burst: 400_000)
    /// The same for all callers of one container.
    static let patternsOfContainer = RateLimit(perSecond: 200_000, burst: 1_000_000)
    /// The same for one request.
    static let patternsOfRequest = 100_000

    package init() {}

    var ofAddresses: RateLimit? {
        address == 0 ? nil : RateLimit(address ?? 10_000, seconds: 2)
    }

    /// What a container sets itself counts before what the configuration says of it.
    func ofKeys(_ container: ContainerSettings) -> RateLimit? {
        let rate = container.rates.key ?? containers[container.key.container]?.key ?? key
        return rate == 0 ? nil : RateLimit(rate, seconds: 2)
    }

    /// A client that was away for long asks for much at once.
    func ofUsers(_ container: ContainerSettings) -> RateLimit? {
        let rate = container.rates.user ?? containers[container.key.container]?.user ?? user
        return rate == 0 ? nil : RateLimit(rate, seconds: 10)
    }
}

extension RateLimit {
    init(_ perSecond: Int, seconds: Double) {
        self.init(perSecond: Double(perSecond), burst: max(1, Double(perSecond) * seconds))
    }
}

/// Lets requests in as often as they may come, and as far as there is memory for their bodies.
///
/// Concurrency: a lock around the tables; nothing is called while it is held.
package final class Turnstile: Sendable {
    /// Who is counted, besides addresses.
    private enum Who: Hashable, Sendable {
        case key(ContainerKey, String)
        case user(ContainerKey, UserID)
        case patterns(ContainerKey, UserID?)
        case patternsOfAll(ContainerKey)
        case administration(ContainerKey)
    }

    private struct State {
        // A bucket takes about a hundred bytes: these are a few megabytes.
        var addresses = RateTable<ClientAddress>(capacity: 65_536)
        var others = RateTable<Who>(capacity: 65_536)
        var guesses = AdminGuesses()
        var bodies: BodyBudget
        var waiting = 0
    }

    private let state: Mutex<State>
    private let settings: RateSettings
    private let clock: any Clock<Duration>
    private let watch: Stopwatch
    private let refusals: [String: Counter]

    /// How long a body waits for memory, and how many do at a time.
    private static let bodyPatience = Duration.seconds(5)
    private static let bodyPause = Duration.milliseconds(25)
    private static let mostWaiting = 256

    /// Lets everybody in at first.
    package init(
        _ settings: RateSettings = RateSettings(), clock: any Clock<Duration>,
        metrics: any MetricsFactory
    ) {
        self.settings = settings
        self.clock = clock
        watch = clock.measureStart()
        state = Mutex(State(bodies: BodyBudget(room: settings.bodyBytes)))
        refusals = Dictionary(
            uniqueKeysWithValues: ["address", "key", "user", "admin", "body", "patterns"].map {
                (
                    $0,
                    Counter(
                        label: "belfry_requests_limited_total", dimensions: [("by", $0)],
                        factory: metrics)
                )
            })
    }

    // MARK: How often

    /// Counts a request of `peer`.
    ///
    /// - Throws: 429 if its address has come too often.
    func arrive(_ peer: Peer?) throws(APIError) {
        guard let origin = counted(peer), let limit = settings.ofAddresses else { return }
        let wait = state.withLock { $0.addresses.take(of: origin, limit, at: watch.elapsed()) }
        if let wait { throw refusal("address", "requests come from your address too often", wait) }
    }

    /// Notes that the credentials of `peer` were refused.
    func noteRefused(_ peer: Peer?) {
        guard let origin = counted(peer), let limit = settings.ofAddresses else { return }
        state.withLock {
            $0.addresses.charge(RateSettings.refusedCost, to: origin, limit, at: watch.elapsed())
        }
    }

    /// The address as which `peer` is counted; `nil` for the machine itself, unless that is asked.
    private func counted(_ peer: Peer?) -> ClientAddress? {
        guard let client = peer?.client, settings.address != nil || !client.isLoopback else {
            return nil
        }
        return client.origin
    }

    /// Counts a request with a key of `container`, or of one of its change sources.
    ///
    /// - Throws: 429 if it is used too often.
    func use(key: String, of container: ContainerSettings) throws(APIError) {
        guard let limit = settings.ofKeys(container) else { return }
        let wait = state.withLock {
            $0.others.take(of: .key(container.key, key), limit, at: watch.elapsed())
        }
        if let wait { throw refusal("key", "requests with this key come too often", wait) }
    }

    /// Counts a request of a user.
    ///
    /// - Throws: 429 if they come too often.
    func use(user: UserID, of container: ContainerSettings) throws(APIError) {
        guard let limit = settings.ofUsers(container) else { return }
        let wait = state.withLock {
            $0.others.take(of: .user(container.key, user), limit, at: watch.elapsed())
        }
        if let wait { throw refusal("user", "requests of this user come too often", wait) }
    }

    /// Counts an administrative call with a token that is good for one container alone.
    ///
    /// - Throws: 429 if they come too often.
    func use(administering container: ContainerKey) throws(APIError) {
        let wait = state.withLock {
            $0.others.take(
                of: .administration(container), RateSettings.administration, at: watch.elapsed())
        }
        if let wait {
            throw refusal("admin", "administrative calls of this container come too often", wait)
        }
    }

    /// Answers a call of a user, or of somebody who is not signed in, and counts the patterns that
    /// it has compiled.
    ///
    /// - Throws: 429 if there were too many before, and what `body` throws.
    func compiling<Value>(
        for user: UserID?, of container: ContainerKey, _ body: () async throws -> Value
    ) async throws -> Value {
        let allowance = PatternAllowance(most: RateSettings.patternsOfRequest) { [self] in
            patternsWait(user, container) == nil
        }
        defer { chargePatterns(allowance.spent, user, container) }
        do {
            return try await PatternAllowance.$current.withValue(allowance) { try await body() }
        } catch {
            guard allowance.wasThrottled else { throw error }
            throw refusal(
                "patterns", "regular expressions come too often",
                patternsWait(user, container) ?? .seconds(1))
        }
    }

    /// The time until a pattern may be compiled; `nil` if that is now.
    ///
    /// What it comes to is known afterwards, and charged then.
    private func patternsWait(_ user: UserID?, _ container: ContainerKey) -> Duration? {
        let now = watch.elapsed()
        return state.withLock { state in
            state.others.take(
                of: .patternsOfAll(container), RateSettings.patternsOfContainer, at: now)
                ?? state.others.take(
                    of: .patterns(container, user), RateSettings.patterns, at: now)
        }
    }

    private func chargePatterns(
        _ instructions: Int, _ user: UserID?, _ container: ContainerKey
    ) {
        guard instructions > 0 else { return }
        let now = watch.elapsed()
        state.withLock { state in
            // Several requests at a time may each have taken the last of it.
            let (one, all) = (RateSettings.patterns, RateSettings.patternsOfContainer)
            state.others.charge(
                Double(instructions), to: .patternsOfAll(container), all, owed: all.burst, at: now)
            state.others.charge(
                Double(instructions), to: .patterns(container, user), one, owed: one.burst,
                at: now)
        }
    }

    private func refusal(_ by: String, _ reason: String, _ wait: Duration) -> APIError {
        refusals[by]?.increment()
        return APIError(.throttled, reason, retryAfter: max(1, wait.wholeSeconds))
    }

    // MARK: The administrative token

    /// Compares an administrative token when it is its turn.
    ///
    /// - Throws: 429 if too many wrong ones wait, and what `compare` throws; if that is a `Wrong`,
    ///   it was a guess.
    func judge<Value, Wrong: Error>(
        _ peer: Peer?, wrong: Wrong.Type, _ compare: () async throws -> Value
    ) async throws -> Value {
        guard let origin = peer?.client.origin else { return try await compare() }
        let verdict = state.withLock { $0.guesses.judge(origin, at: watch.elapsed()) }
        switch verdict {
        case .now: break
        case .later(let wait):
            refusals["admin"]?.increment()
            try await clock.sleep(for: wait)
        case .refused(let wait):
            throw refusal("admin", "the administrative token was wrong too often", wait)
        }
        do {
            let value = try await compare()
            state.withLock { $0.guesses.right(origin, at: watch.elapsed()) }
            return value
        } catch let error as Wrong {
            state.withLock { $0.guesses.wrong(origin, at: watch.elapsed()) }
            throw error
        }
    }

    // MARK: Memory

    /// Takes memory for a part of a body, and waits for it a little.
    ///
    /// - Throws: 503 if there is none in time.
    func takeMemory(
        _ bytes: Int, for container: ContainerKey?, isBeginning: Bool
    ) async throws {
        func take(_ state: inout State) -> Bool {
            state.bodies.take(bytes, for: container, isBeginning: isBeginning)
        }
        let (isThere, mayWait) = state.withLock { state in
            if take(&state) { return (true, false) }
            guard state.waiting < Self.mostWaiting else { return (false, false) }
            state.waiting += 1
            return (false, true)
        }
        if isThere { return }
        let began = clock.measureStart()
        if mayWait {
            defer { state.withLock { $0.waiting -= 1 } }
            // There is room when somebody else has been answered: it is looked for again.
            while began.elapsed() < Self.bodyPatience {
                try await clock.sleep(for: Self.bodyPause)
                if state.withLock({ take(&$0) }) { return }
            }
        }
        refusals["body"]?.increment()
        throw APIError(
            .tryAgainLater, "there is no memory for this body now", retryAfter: 2)
    }

    /// Gives memory back.
    func giveMemory(_ bytes: Int, of container: ContainerKey?) {
        guard bytes > 0 else { return }
        state.withLock { $0.bodies.give(bytes, of: container) }
    }

    /// The memory that bodies hold, for tests.
    var memory: Int { state.withLock { $0.bodies.used } }
}

extension Duration {
    /// This duration in seconds, rounded up.
    var wholeSeconds: Int64 {
        components.seconds + (components.attoseconds > 0 ? 1 : 0)
    }
}
