/// How many requests a connection of one gateway serves before the gateway ends it, learned from
/// the ends that were seen.
///
/// Proxies end a connection after a number of requests, and guards against abuse after a number of
/// frames. Whoever knows the number opens the next connection in time, and nothing is open on the
/// old one when it ends. One end says little, since gateways restart; and what was true once need
/// not stay so. Therefore two ends after about as many requests make a number, the second of a
/// connection that was born after the first end; and the number is forgotten for a trial, after a
/// minute at first and twice as long each time that the trial confirms it.
struct ConnectionEndurance: Sendable, Hashable {
    /// No connection is replaced after fewer requests, and shorter lives teach nothing.
    static let least = 64
    /// Longer lives teach nothing either: who ends those counts hours, not requests.
    static let longestLesson = Duration.seconds(600)
    /// How long a number is believed at first, and at most.
    static let belief = Duration.seconds(60)...Duration.seconds(3600)

    /// The end of a connection by the gateway, in the midst of work.
    struct End: Sendable, Hashable {
        /// How many requests were answered on it.
        var served: Int
        /// When it was opened.
        var bornAt: MonotonicInstant
        /// When it took nothing more.
        var endedAt: MonotonicInstant
    }

    /// The number of requests after which the gateway ends connections, as far as is known.
    private var learned: Int?
    private var believedUntil: MonotonicInstant?
    private var belief = Self.belief.lowerBound
    /// An end that another one may confirm.
    private var suspicion: End?

    /// How many requests a connection may be given at `now`, or `nil` for any number.
    ///
    /// That is a sixteenth less than the gateway was seen to allow.
    func allowance(at now: MonotonicInstant) -> Int? {
        guard let learned, let believedUntil, now < believedUntil else { return nil }
        return max(Self.least, learned - learned / 16)
    }

    /// The gateway has ended a connection; it was seen at `now`.
    mutating func note(_ end: End, at now: MonotonicInstant) {
        guard end.served >= Self.least,
            end.endedAt.duration(since: end.bornAt) <= Self.longestLesson
        else { return }
        if let learned, isRemembered(at: now), isAlike(learned, end.served) {
            confirm(learned, by: end, at: now)
        } else if let suspicion, !isForgotten(suspicion, at: now) {
            // What lived at the same time ends at the same time when a gateway restarts.
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

    /// Whether another connection is opened ahead, when each of those that take requests may be
    /// given as many more as `remaining` says.
    ///
    /// The next one must stand when the present one is spent: it is opened when that has served
    /// half.
    static func wantsSuccessor(remaining: some Collection<Int>, allowance: Int) -> Bool {
        guard !remaining.isEmpty else { return false }
        let total = remaining.reduce(0) { $0 + min($1, allowance) }
        return total < allowance * remaining.count / 2
    }

    private mutating func confirm(_ learned: Int, by end: End, at now: MonotonicInstant) {
        guard allowance(at: now) == nil else {
            // Before its time: the gateway allows less than it did.
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

    /// Whether the number is believed, or on trial for not too long.
    private func isRemembered(at now: MonotonicInstant) -> Bool {
        believedUntil.map { now.duration(since: $0) <= Self.longestLesson } ?? false
    }

    private func isForgotten(_ end: End, at now: MonotonicInstant) -> Bool {
        now.duration(since: end.endedAt) > Self.longestLesson
    }

    /// Whether the smaller is three quarters of the larger or more.
    private func isAlike(_ one: Int, _ other: Int) -> Bool {
        4 * min(one, other) >= 3 * max(one, other)
    }
}
