import RelayModel

/// Decides which provider token is used and when a new one is minted.
///
/// APNs refuses a token that is older than an hour, and refuses to see more than one new token in
/// twenty minutes; it counts by team, over all of a sender's machines and restarts.
struct ProviderTokenLife: Sendable, Hashable {
    /// What to do for the next request.
    enum Step: Sendable, Hashable {
        /// Show this token.
        case use(ProviderTokenRecord, generation: Int)
        /// Sign a token that claims to be of that moment.
        case mint(issuedAt: Timestamp)
    }

    /// What "expired" turns out to mean.
    enum ExpiryVerdict: Sendable, Hashable {
        /// The request carried a token that has been replaced meanwhile.
        case alreadyRenewed
        /// The next step mints.
        case renewing
        /// The token is `age` old by this machine's clock, which therefore goes wrong; another one
        /// must not be minted yet.
        case clockIsWrong(age: Duration)
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

    private var current: ProviderTokenRecord?
    private var previous: ProviderTokenRecord?
    private var renewsAtAge = ProviderTokenLife.renewalAge
    private var isDoomed = false
    private var mintsNotBefore: Timestamp?
    private(set) var generation = 0

    /// What to do for a request at `now`.
    func step(at now: Timestamp) -> Step {
        let mint = Step.mint(issuedAt: now.advanced(by: .zero - Self.backdating))
        guard let current, !isDoomed else { return mint }
        let age = now.duration(since: current.issuedAt)
        if age < .zero - Self.futureTolerance { return mint }
        if age < renewsAtAge { return .use(current, generation: generation) }
        if let mintsNotBefore, now < mintsNotBefore, age < Self.usableAge {
            return .use(current, generation: generation)
        }
        return mint
    }

    /// Takes a token that was just minted, or one that was kept from before a restart.
    mutating func adopt(
        _ record: ProviderTokenRecord, using generator: inout some RandomNumberGenerator
    ) {
        previous = current
        current = record
        isDoomed = false
        generation += 1
        let spread = Double.random(in: -1...1, using: &generator)
        renewsAtAge = Self.renewalAge + Self.renewalSpread * spread
    }

    /// The gateway called the token of `generation` expired, at `now`.
    mutating func refuseAsExpired(generation: Int, at now: Timestamp) -> ExpiryVerdict {
        guard generation == self.generation, let current else { return .alreadyRenewed }
        if isDoomed { return .renewing }
        let age = now.duration(since: current.issuedAt)
        guard age >= Self.mintingInterval else { return .clockIsWrong(age: age) }
        isDoomed = true
        return .renewing
    }

    /// The gateway has seen too many tokens, at `now`: the older one is used as long as it lasts.
    mutating func refuseAsTooMany(generation: Int, at now: Timestamp) {
        guard generation == self.generation else { return }
        mintsNotBefore = now.advanced(by: Self.mintingInterval)
        guard let older = previous, now.duration(since: older.issuedAt) < Self.usableAge else {
            return
        }
        previous = current
        current = older
        renewsAtAge = Self.usableAge
        self.generation += 1
    }
}
