/// When something that failed may be tried again: a pool's connecting, or a container's sending.
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

    /// It failed at `now`; returns whether the next attempt is later than it was.
    ///
    /// The wait is spread over the upper half of its step, so that many pools that lost the same
    /// gateway do not come back in the same instant. Failures during a wait are the same trouble:
    /// they do not add to it.
    @discardableResult
    mutating func fail(
        cause: PushCause, at now: MonotonicInstant,
        using generator: inout some RandomNumberGenerator
    ) -> Bool {
        if let resumesAt, now < resumesAt { return false }
        let step = min(Self.base * (1 << min(failures, 10)), Self.cap)
        failures += 1
        self.cause = cause
        let spread = step / 2 + step / 2 * Double.random(in: 0..<1, using: &generator)
        resumesAt = now.advanced(by: spread)
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
