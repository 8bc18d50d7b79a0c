/// How long the conditions of one container have taken of the time that all containers share.
///
/// All changes are judged one after the other. Half of the time is any container's; what it takes
/// beyond that it owes, and pays as time goes by. A pure value.
struct JudgingShare {
    /// What is owed at most: after a long load a container is bounded for seconds, and not for as
    /// long as that took.
    private static let most = Duration.seconds(10)

    private var owed = Duration.zero
    /// When that was so.
    private var moment = Duration.zero

    /// Notes that judging has taken so long until `now`.
    mutating func note(_ took: Duration, at now: Duration) {
        owed = min(owed(at: now) + took, Self.most)
        moment = now
    }

    /// What it owes now.
    func owed(at now: Duration) -> Duration {
        max(.zero, owed - (now - moment) / 2)
    }
}

extension Clock where Duration == Swift.Duration {
    /// What says how long ago this was.
    func elapsing() -> @Sendable () -> Duration {
        let start = now
        return { start.duration(to: self.now) }
    }
}
