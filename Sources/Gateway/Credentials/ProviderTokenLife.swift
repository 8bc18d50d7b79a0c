import RelayModel

/// Decides which provider token is used and when a new one is minted.
///
/// APNs refuses a token that is older than an hour, and refuses to see more than one new token in
/// twenty minutes; it counts by team, over all of a sender's machines and restarts. So the last two
/// tokens are held: when one cannot be shown any more, the other may still be good.
struct ProviderTokenLife: Sendable, Hashable {
    /// What to do for the next request.
    enum Step: Sendable, Hashable {
        /// Show this token.
        case use(ProviderTokenRecord, generation: Int)
        /// Sign a token that claims to be of that moment.
        case mint(issuedAt: Timestamp)
        /// No token can be shown, and none may be minted before that moment.
        case wait(until: Timestamp)
    }

    /// What "expired" turns out to mean.
    enum ExpiryVerdict: Sendable, Hashable {
        /// The request carried a token that has been replaced meanwhile.
        case alreadyRenewed
        /// The next step shows another one.
        case renewing
        /// The token is only `age` old by this machine's clock: either the gateway errs, or the
        /// clock; another one must not be minted yet.
        case tooYoung(age: Duration)
    }

    /// Renewed at this age, give or take ``renewalSpread``.
    static let renewalAge = Duration.seconds(50 * 60)
    /// Spreads the renewals of many keys.
    static let renewalSpread = Duration.seconds(3 * 60)
    /// Not minted more often than that (APNs: 429 TooManyProviderTokenUpdates).
    static let mintingInterval = Duration.seconds(20 * 60)
    /// Older ones are refused (APNs: 403 ExpiredProviderToken), with a minute to spare.
    static let usableAge = Duration.seconds(59 * 60)
    /// How far tokens are dated back, so that a clock slightly ahead does no harm.
    static let backdating = Duration.seconds(5)
    /// A token dated further ahead than that comes from a clock that has been set back since.
    static let futureTolerance = Duration.seconds(60)

    /// A token that may be shown.
    private struct Held: Sendable, Hashable {
        let record: ProviderTokenRecord
        let generation: Int
        /// The age from which on it is shown only if there is no other way.
        var renewsAtAge: Duration
        /// Whether the gateway has called it expired.
        var isDead = false

        func isUsable(at now: Timestamp) -> Bool {
            let age = now.duration(since: record.issuedAt)
            return !isDead && age >= .zero - futureTolerance && age < usableAge
        }

        func isFresh(at now: Timestamp) -> Bool {
            isUsable(at: now) && now.duration(since: record.issuedAt) < renewsAtAge
        }

        var use: Step { .use(record, generation: generation) }
    }

    /// The one that is shown before the other.
    private var current: Held?
    private var other: Held?
    private var mintsNotBefore: Timestamp?
    private var lastGeneration = 0

    /// What to do for a request at `now`.
    func step(at now: Timestamp) -> Step {
        if let fresh = held.first(where: { $0.isFresh(at: now) }) { return fresh.use }
        guard let opening = minting(after: now) else {
            return .mint(issuedAt: now.advanced(by: .zero - Self.backdating))
        }
        return held.first { $0.isUsable(at: now) }?.use ?? .wait(until: opening)
    }

    /// Takes a token that was just minted, or one that was kept from before a restart; returns its
    /// generation.
    @discardableResult
    mutating func adopt(
        _ record: ProviderTokenRecord, using generator: inout some RandomNumberGenerator
    ) -> Int {
        let spread = Double.random(in: -1...1, using: &generator)
        lastGeneration += 1
        other = current
        current = Held(
            record: record, generation: lastGeneration,
            renewsAtAge: Self.renewalAge + Self.renewalSpread * spread)
        return lastGeneration
    }

    /// The gateway called the token of `generation` expired, at `now`.
    mutating func refuseAsExpired(generation: Int, at now: Timestamp) -> ExpiryVerdict {
        guard let refused = held.first(where: { $0.generation == generation }) else {
            return .alreadyRenewed
        }
        if refused.isDead { return .renewing }
        let age = now.duration(since: refused.record.issuedAt)
        guard age >= Self.mintingInterval else { return .tooYoung(age: age) }
        if current?.generation == generation { current?.isDead = true }
        if other?.generation == generation { other?.isDead = true }
        return .renewing
    }

    /// The gateway has seen too many tokens, at `now`: the older one is used as long as it lasts,
    /// then the one that was too early, which has become old enough by then.
    mutating func refuseAsTooMany(generation: Int, at now: Timestamp) {
        guard held.contains(where: { $0.generation == generation }) else { return }
        mintsNotBefore = now.advanced(by: Self.mintingInterval)
        guard current?.generation == generation, var older = other, older.isUsable(at: now)
        else { return }
        older.renewsAtAge = Self.usableAge
        (current, other) = (older, current)
    }

    private var held: [Held] { [current, other].compactMap(\.self) }

    /// From when on a token may be minted, if that is after `now`.
    ///
    /// What is further away than the interval comes from a clock that has been set back since.
    private func minting(after now: Timestamp) -> Timestamp? {
        guard let mintsNotBefore, now < mintsNotBefore,
            mintsNotBefore.duration(since: now) <= Self.mintingInterval
        else { return nil }
        return mintsNotBefore
    }
}
