/// When a pool may try again: to connect after that failed, or to send after the gateway asked for
/// patience.
struct PoolBackOff: Sendable, Hashable {
    /// The first step.
    static let base = Duration.milliseconds(500)
    /// The longest step: what waits longer is the caller's to retry.
    static let cap = Duration.seconds(30)

    private(set) var failures = 0
    private(set) var resumesAt: MonotonicInstant?
    private(set) var cause: PushCause = ""

    /// How long connecting must still wait at `now`; zero if it need not.
    func remaining(at now: MonotonicInstant) -> Duration {
        resumesAt?.duration(since: now) ?? .zero
    }

    /// Why requests come back meanwhile, which must wait for `pause`.
    func cause(pausing pause: Duration) -> PushCause {
        let wait = "trying again in \(pause.wholeMilliseconds) ms"
        return PushCause(
            cause.reason, detail: cause.detail.isEmpty ? wait : "\(cause.detail); \(wait)")
    }

    /// It failed at `now`; the next attempt is made no sooner than after `wish`.
    ///
    /// Returns whether that is later than it was.
    ///
    /// The wait is spread over the upper half of its step, so that many pools that lost the same
    /// gateway do not come back in the same instant. Failures during a wait are the same trouble:
    /// they do not add to it, but a longer wish is heeded.
    @discardableResult
    mutating func fail(
        cause: PushCause, wish: Duration? = nil, at now: MonotonicInstant,
        using generator: inout some RandomNumberGenerator
    ) -> Bool {
        if let resumesAt, now < resumesAt {
            guard let wish, now.advanced(by: wish) > resumesAt else { return false }
            self.cause = cause
            self.resumesAt = now.advanced(by: wish)
            return true
        }
        let step = min(Self.base * (1 << min(failures, 10)), Self.cap)
        failures += 1
        self.cause = cause
        let spread = step / 2 + step / 2 * Double.random(in: 0..<1, using: &generator)
        resumesAt = now.advanced(by: max(spread, wish ?? .zero))
        return true
    }

    /// The gateway accepted something at `now`.
    ///
    /// During a wait that says nothing: it was on its way before.
    mutating func succeed(at now: MonotonicInstant) {
        guard failures > 0, remaining(at: now) == .zero else { return }
        self = PoolBackOff()
    }
}
