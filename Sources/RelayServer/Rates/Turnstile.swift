package import CoreMetrics
import Metrics
import RegularExpressions
import RelayModel
import Storage
import Synchronization

/// The limits of how often clients may send requests.
package struct RateSettings: Sendable, Hashable {
    /// Requests from one address in a second; 0 for any number.
    ///
    /// `nil` means 10,000, without a limit for this machine's own address.
    var address: Int?
    /// Requests with one key, or of one change source, in a second; 0 for any number.
    var key = 20_000
    /// Requests of one user in a second; 0 for any number.
    var user = 1000
    /// The limits of single containers, in place of these.
    var containers: [ContainerID: Own] = [:]
    /// The memory for request bodies, in bytes.
    var bodyBytes = 256 * 1_048_576

    /// The limits of one container.
    struct Own: Sendable, Hashable {
        var key: Int
        var user: Int
    }

    /// The cost of a refused credential, in requests.
    static let refusedCost = 20.0

    /// The limit of administrative calls with a token for a single container.
    ///
    /// It is many times what the console's pages need, and much less than what would block the
    /// writer for others.
    static let administration = RateLimit(perSecond: 100, burst: 1000)

    /// The limit of regular expressions for one user, or for all callers who are not signed in, in
    /// compiled instructions.
    ///
    /// It is a fiftieth of a processor, and four tenths of a second at once.
    static let patterns = RateLimit(perSecond: 20_000, burst: 400_000)
    /// The limit of regular expressions for all callers of one container.
    static let patternsOfContainer = RateLimit(perSecond: 200_000, burst: 1_000_000)
    /// The limit of regular expressions for one request.
    static let patternsOfRequest = 100_000

    /// The limit of changes of one container's schema, in definitions of types and fields.
    ///
    /// A schema is written in one transaction, for which all other writers wait: five milliseconds
    /// for a thousand definitions.
    static let schema = RateLimit(perSecond: 2000, burst: 40_000)
    /// The number of definitions that are read in the time in which one is written.
    static let definitionsReadPerWritten = 8

    package init() {}

    var ofAddresses: RateLimit? {
        address == 0 ? nil : RateLimit(address ?? 10_000, seconds: 2)
    }

    /// Returns the limit of a container's keys; the container's own settings precede the
    /// configuration.
    func ofKeys(_ container: ContainerSettings) -> RateLimit? {
        let rate = container.rates.key ?? containers[container.key.container]?.key ?? key
        return rate == 0 ? nil : RateLimit(rate, seconds: 2)
    }

    /// Returns the limit of a container's users; a client that was away for long may send many
    /// requests at once.
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

/// Limits the rate of requests and the memory for their bodies.
///
/// Concurrency: a lock protects the tables; no other code is called while it is held.
package final class Turnstile: Sendable {
    /// What is counted besides addresses.
    private enum Who: Hashable, Sendable {
        case key(ContainerKey, String)
        case user(ContainerKey, UserID)
        case patterns(ContainerKey, UserID?)
        case patternsOfAll(ContainerKey)
        case administration(ContainerKey)
        case schema(ContainerKey)
    }

    private struct State {
        // A bucket takes about a hundred bytes, so these are a few megabytes.
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

    /// How long a body waits for memory, how often it tries, and how many bodies wait at a time.
    private static let bodyPatience = Duration.seconds(5)
    private static let bodyPause = Duration.milliseconds(25)
    private static let mostWaiting = 256

    /// Creates a turnstile with full buckets.
    package init(
        _ settings: RateSettings = RateSettings(), clock: any Clock<Duration>,
        metrics: any MetricsFactory
    ) {
        self.settings = settings
        self.clock = clock
        watch = clock.measureStart()
        state = Mutex(State(bodies: BodyBudget(room: settings.bodyBytes)))
        refusals = Dictionary(
            uniqueKeysWithValues: ["address", "key", "user", "admin", "body", "patterns", "schema"]
                .map {
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
    /// - Throws: The error 429 if its address sends too many.
    func arrive(_ peer: Peer?) throws(APIError) {
        guard let origin = counted(peer), let limit = settings.ofAddresses else { return }
        let wait = state.withLock { $0.addresses.take(of: origin, limit, at: watch.elapsed()) }
        if let wait { throw refusal("address", "too many requests from your address", wait) }
    }

    /// Notes that the credentials of `peer` were refused.
    func noteRefused(_ peer: Peer?) {
        guard let origin = counted(peer), let limit = settings.ofAddresses else { return }
        state.withLock {
            $0.addresses.charge(RateSettings.refusedCost, to: origin, limit, at: watch.elapsed())
        }
    }

    /// Returns the address under which `peer` is counted; `nil` for this machine's own, unless a
    /// limit is configured.
    private func counted(_ peer: Peer?) -> ClientAddress? {
        guard let client = peer?.client, settings.address != nil || !client.isLoopback else {
            return nil
        }
        return client.origin
    }

    /// Counts a request with a key of `container`, or of one of its change sources.
    ///
    /// - Throws: The error 429 if it is used too often.
    func use(key: String, of container: ContainerSettings) throws(APIError) {
        guard let limit = settings.ofKeys(container) else { return }
        let wait = state.withLock {
            $0.others.take(of: .key(container.key, key), limit, at: watch.elapsed())
        }
        if let wait { throw refusal("key", "too many requests with this key", wait) }
    }

    /// Counts a request of a user.
    ///
    /// - Throws: The error 429 if there are too many.
    func use(user: UserID, of container: ContainerSettings) throws(APIError) {
        guard let limit = settings.ofUsers(container) else { return }
        let wait = state.withLock {
            $0.others.take(of: .user(container.key, user), limit, at: watch.elapsed())
        }
        if let wait { throw refusal("user", "too many requests of this user", wait) }
    }

    /// Counts an administrative call with a token for a single container.
    ///
    /// - Throws: The error 429 if there are too many.
    func use(administering container: ContainerKey) throws(APIError) {
        let wait = state.withLock {
            $0.others.take(
                of: .administration(container), RateSettings.administration, at: watch.elapsed())
        }
        if let wait {
            throw refusal("admin", "too many administrative calls for this container", wait)
        }
    }

    /// Counts a change of a container's schema from `known` to `schema`.
    ///
    /// - Throws: The error 429 if too much of it was changed lately.
    func change(
        _ known: ContainerSchema, to schema: ContainerSchema, of container: ContainerKey
    ) throws(APIError) {
        let differences = schema.differences(from: known)
        guard differences > 0 else { return }
        let read = known.recordTypes.values.reduce(0) { $0 + $1.fields.count }
        let tokens = Double(differences + read / RateSettings.definitionsReadPerWritten)
        let limit = RateSettings.schema
        let wait = state.withLock {
            $0.others.take(
                min(tokens, limit.burst), of: .schema(container), limit, at: watch.elapsed())
        }
        if let wait {
            throw refusal("schema", "too many changes of this container's schema", wait)
        }
    }

    /// Runs a call, and counts the regular expressions that it compiles.
    ///
    /// `user` is `nil` for a caller who is not signed in.
    ///
    /// - Throws: The error 429 if there were too many before, and what `body` throws.
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
                "patterns", "too many regular expressions in a short time",
                patternsWait(user, container) ?? .seconds(1))
        }
    }

    /// Returns the time until a regular expression may be compiled; `nil` if that is now.
    ///
    /// Its cost is known only afterwards, and charged then.
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
            // Several simultaneous requests may each have taken the last tokens.
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
    /// - Throws: The error 429 if too many wrong tokens wait, and what `compare` throws; if that is
    ///   a `Wrong`, the token counts as a guess.
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
            throw refusal("admin", "too many calls with a wrong administrative token", wait)
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

    /// Takes memory for a part of a body, and waits briefly if there is none.
    ///
    /// - Throws: The error 503 if there is none in time.
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
            // Memory becomes free when another request has been answered, so it is tried again.
            while began.elapsed() < Self.bodyPatience {
                try await clock.sleep(for: Self.bodyPause)
                if state.withLock({ take(&$0) }) { return }
            }
        }
        refusals["body"]?.increment()
        throw APIError(
            .tryAgainLater, "the relay has no memory for this body at the moment", retryAfter: 2)
    }

    /// Returns memory.
    func giveMemory(_ bytes: Int, of container: ContainerKey?) {
        guard bytes > 0 else { return }
        state.withLock { $0.bodies.give(bytes, of: container) }
    }

    /// The memory that bodies take, for tests.
    var memory: Int { state.withLock { $0.bodies.used } }
}

extension Duration {
    /// This duration in seconds, rounded up.
    var wholeSeconds: Int64 {
        components.seconds + (components.attoseconds > 0 ? 1 : 0)
    }
}
