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
    /// The wait is spread over the upper half of its step, so that many pools that lost the same
    /// gateway do not come back in the same instant.
    mutating func fail(
        cause: PushCause, wish: Duration? = nil, at now: MonotonicInstant,
        using generator: inout some RandomNumberGenerator
    ) {
        let step = min(Self.base * (1 << min(failures, 10)), Self.cap)
        failures += 1
        self.cause = cause
        let spread = step / 2 + step / 2 * Double.random(in: 0..<1, using: &generator)
        resumesAt = now.advanced(by: max(spread, wish ?? .zero))
    }

    /// The gateway accepted something.
    mutating func succeed() {
        guard failures > 0 else { return }
        self = PoolBackOff()
    }
}
