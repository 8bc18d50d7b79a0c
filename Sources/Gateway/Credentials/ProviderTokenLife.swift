import RelayModel

/// Decides which provider token is used and when a new one is minted.
///
/// APNs refuses a token that is older than an hour, and accepts at most one new token in twenty
/// minutes. It counts by team, over all of a sender's machines and restarts. So the last two tokens
/// are kept: if one can no longer be used, the other may still be good.
struct ProviderTokenLife: Sendable, Hashable {
    /// The step for the next request.
    enum Step: Sendable, Hashable {
        /// Use this token.
        case use(ProviderTokenRecord, generation: Int)
        /// Sign a token with this time of issue.
        case mint(issuedAt: Timestamp)
        /// No token can be used, and none may be minted before this time.
        case wait(until: Timestamp)
    }

    /// The meaning of a refusal as expired.
    enum ExpiryVerdict: Sendable, Hashable {
        /// The request had a token that has been replaced meanwhile.
        case alreadyRenewed
        /// The next step uses another token.
        case renewing
        /// The token is only `age` old by this machine's clock.
        ///
        /// Either the gateway or the clock is wrong, and no new token may be minted yet.
        case tooYoung(age: Duration)
    }

    /// The age at which a token is renewed, plus or minus ``renewalSpread``.
    static let renewalAge = Duration.seconds(50 * 60)
    /// The spread of the renewals, so that many keys are not renewed at once.
    static let renewalSpread = Duration.seconds(3 * 60)
    /// The shortest time between two mintings (APNs: 429 TooManyProviderTokenUpdates).
    static let mintingInterval = Duration.seconds(20 * 60)
    /// The age from which on a token is refused (APNs: 403 ExpiredProviderToken), with a minute to
    /// spare.
    static let usableAge = Duration.seconds(59 * 60)
    /// How far tokens are dated back, so that a clock slightly ahead does no harm.
    static let backdating = Duration.seconds(5)
    /// The limit of a token's date in the future.
    ///
    /// A later date comes from a clock that was set back since.
    static let futureTolerance = Duration.seconds(60)

    /// A token that may be used.
    private struct Held: Sendable, Hashable {
        let record: ProviderTokenRecord
        let generation: Int
        /// The age from which on it is used only if there is no other way.
        var renewsAtAge: Duration
        /// Whether the gateway has refused it as expired.
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

    /// The token that is tried before the other.
    private var current: Held?
    private var other: Held?
    private var mintsNotBefore: Timestamp?
    private var lastGeneration = 0

    /// Returns the step for a request at `now`.
    func step(at now: Timestamp) -> Step {
        if let fresh = held.first(where: { $0.isFresh(at: now) }) { return fresh.use }
        guard let opening = minting(after: now) else {
            return .mint(issuedAt: now.advanced(by: .zero - Self.backdating))
        }
        return held.first { $0.isUsable(at: now) }?.use ?? .wait(until: opening)
    }

    /// Adopts a token that was just minted, or one from before a restart.
    ///
    /// Returns its generation.
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

    /// Notes that the gateway refused the token of `generation` as expired, at `now`.
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

    /// Notes at `now` that the gateway has seen too many tokens.
    ///
    /// The older token is used as long as it lasts. After that, the one that came too early is
    /// used, which has become old enough by then.
    mutating func refuseAsTooMany(generation: Int, at now: Timestamp) {
        guard held.contains(where: { $0.generation == generation }) else { return }
        mintsNotBefore = now.advanced(by: Self.mintingInterval)
        guard current?.generation == generation, var older = other, older.isUsable(at: now)
        else { return }
        older.renewsAtAge = Self.usableAge
        (current, other) = (older, current)
    }

    private var held: [Held] { [current, other].compactMap(\.self) }

    /// Returns the time from which on a token may be minted, if that is after `now`.
    ///
    /// A time that is further away than the interval comes from a clock that was set back since.
    private func minting(after now: Timestamp) -> Timestamp? {
        guard let mintsNotBefore, now < mintsNotBefore,
            mintsNotBefore.duration(since: now) <= Self.mintingInterval
        else { return nil }
        return mintsNotBefore
    }
}
