/// The number of requests after which a gateway ends a connection, learned from the ends that were
/// seen.
///
/// Proxies end a connection after a number of requests, and protections against abuse do so after a
/// number of frames. If the relay knows the number, it opens the next connection in time, and no
/// request is open on the old one when it ends. A single end says little, because gateways restart,
/// and a number need not stay valid. So a number is learned from two ends after about as many
/// requests, where the second connection was opened after the first end. The number is forgotten
/// for a trial after a minute, and after twice as long each time that the trial confirms it.
struct ConnectionEndurance: Sendable, Hashable {
    /// The smallest allowance.
    ///
    /// Connections with fewer requests teach nothing.
    static let least = 64
    /// The longest life that teaches anything.
    ///
    /// A gateway that ends older connections counts hours, not requests.
    static let longestLesson = Duration.seconds(600)
    /// How long a number is used at first, and at most.
    static let belief = Duration.seconds(60)...Duration.seconds(3600)

    /// The end of a connection by the gateway while it was in use.
    struct End: Sendable, Hashable {
        /// The number of requests that were answered on it.
        var served: Int
        /// The time when it was opened.
        var bornAt: MonotonicInstant
        /// The time when it stopped taking requests.
        var endedAt: MonotonicInstant
    }

    /// The learned number of requests after which the gateway ends connections.
    private var learned: Int?
    private var believedUntil: MonotonicInstant?
    private var belief = Self.belief.lowerBound
    /// An end that a second one may confirm.
    private var suspicion: End?

    /// Returns how many requests a connection may be given at `now`, or `nil` for any number.
    ///
    /// The number is a sixteenth less than the gateway was seen to allow.
    func allowance(at now: MonotonicInstant) -> Int? {
        guard let learned, let believedUntil, now < believedUntil else { return nil }
        return max(Self.least, learned - learned / 16)
    }

    /// Notes at `now` that the gateway has ended a connection.
    mutating func note(_ end: End, at now: MonotonicInstant) {
        guard end.served >= Self.least,
            end.endedAt.duration(since: end.bornAt) <= Self.longestLesson
        else { return }
        if let learned, isRemembered(at: now), isAlike(learned, end.served) {
            confirm(learned, by: end, at: now)
        } else if let suspicion, !isForgotten(suspicion, at: now) {
            // Connections that exist at the same time also end at the same time when a gateway
            // restarts.
            guard end.bornAt >= suspicion.endedAt else { return }
            guard isAlike(suspicion.served, end.served) else {
                self.suspicion = end
                return
            }
            belief = Self.belief.lowerBound
            believe(min(suspicion.served, end.served), at: now)
        } else {
            suspicion = end
        }
    }

    /// Returns whether another connection should be opened ahead of time.
    ///
    /// `remaining` has, for each connection that takes requests, the number of requests that it may
    /// still be given.
    ///
    /// The next connection must be ready when the current one is used up, so it is opened when that
    /// one has served half of its allowance.
    static func wantsSuccessor(remaining: some Collection<Int>, allowance: Int) -> Bool {
        guard !remaining.isEmpty else { return false }
        let total = remaining.reduce(0) { $0 + min($1, allowance) }
        return total < allowance * remaining.count / 2
    }

    private mutating func confirm(_ learned: Int, by end: End, at now: MonotonicInstant) {
        guard allowance(at: now) == nil else {
            // The end came within the allowance, so the gateway allows less than before.
            believe(min(learned, end.served), at: now)
            return
        }
        belief = min(belief * 2, Self.belief.upperBound)
        believe(end.served, at: now)
    }

    private mutating func believe(_ served: Int, at now: MonotonicInstant) {
        learned = served
        believedUntil = now.advanced(by: belief)
        suspicion = nil
    }

    /// Whether the number is in use, or on trial for not too long.
    private func isRemembered(at now: MonotonicInstant) -> Bool {
        believedUntil.map { now.duration(since: $0) <= Self.longestLesson } ?? false
    }

    private func isForgotten(_ end: End, at now: MonotonicInstant) -> Bool {
        now.duration(since: end.endedAt) > Self.longestLesson
    }

    /// Whether the smaller number is at least three quarters of the larger one.
    private func isAlike(_ one: Int, _ other: Int) -> Bool {
        4 * min(one, other) >= 3 * max(one, other)
    }
}
