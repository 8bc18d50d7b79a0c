/// One container's share of the time that all containers spend on judging conditions.
///
/// All changes are judged one after the other. A container may use half of the time. Time beyond
/// that becomes a debt, which shrinks as time passes. This is a pure value.
struct JudgingShare {
    /// The maximum debt: after a long load, a container stays restricted for seconds, and not for
    /// as long as the load took.
    private static let most = Duration.seconds(10)

    private var owed = Duration.zero
    /// The time at which `owed` was computed.
    private var moment = Duration.zero

    /// Notes that judging took the duration `took` until `now`.
    mutating func note(_ took: Duration, at now: Duration) {
        owed = min(owed(at: now) + took, Self.most)
        moment = now
    }

    /// Returns the debt at `now`.
    func owed(at now: Duration) -> Duration {
        max(.zero, owed - (now - moment) / 2)
    }
}

extension Clock where Duration == Swift.Duration {
    /// Returns a function that measures the time since this call.
    func elapsing() -> @Sendable () -> Duration {
        let start = now
        return { start.duration(to: self.now) }
    }
}
