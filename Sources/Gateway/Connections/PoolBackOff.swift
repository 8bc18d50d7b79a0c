/// The back-off after failures of a pool's connecting, or of a container's sending.
struct PoolBackOff: Sendable, Hashable {
    /// The first step.
    static let base = Duration.milliseconds(500)
    /// The longest step.
    ///
    /// If a wait is longer, the caller must retry.
    static let cap = Duration.seconds(30)

    private(set) var failures = 0
    private(set) var resumesAt: MonotonicInstant?
    private(set) var cause: PushCause = ""

    /// Returns the remaining wait at `now`, or zero if there is none.
    func remaining(at now: MonotonicInstant) -> Duration {
        resumesAt?.duration(since: now) ?? .zero
    }

    /// Returns the cause for requests that come back because they would have to wait for `pause`.
    func cause(pausing pause: Duration) -> PushCause {
        let wait = "trying again in \(pause.wholeMilliseconds) ms"
        return PushCause(
            cause.reason, detail: cause.detail.isEmpty ? wait : "\(cause.detail); \(wait)")
    }

    /// Notes a failure at `now`.
    ///
    /// Returns whether this begins a new wait.
    ///
    /// The wait is drawn from the upper half of its step, so that many pools that lost the same
    /// gateway do not come back at the same instant. Failures during a wait belong to the same
    /// problem, and do not extend it.
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

    /// Notes that the gateway accepted something at `now`.
    ///
    /// During a wait this says nothing, because the request was already on its way.
    mutating func succeed(at now: MonotonicInstant) {
        guard failures > 0, remaining(at: now) == .zero else { return }
        self = PoolBackOff()
    }
}
