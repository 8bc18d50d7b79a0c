/// How many changes of a container are followed in a second while more of them wait.
///
/// It is measured and not calculated from the time that the follower takes, because the follower
/// also waits for the gateway.
struct FollowingPace: Sendable, Hashable {
    /// How long changes are counted for one measurement.
    private static let span = Duration.milliseconds(50)

    /// The changes followed per second, once measured.
    private(set) var perSecond: Double?
    /// When the current measurement began; `nil` while nothing waits to be followed.
    private var began: Duration?
    private var count = 0

    /// Records that `count` changes were followed by `now`, and whether more of them wait.
    mutating func note(_ count: Int, isMoreLeft: Bool, at now: Duration) {
        guard let began else {
            if isMoreLeft { self.began = now }
            return
        }
        self.count += count
        let time = now - began
        guard !isMoreLeft || time >= Self.span else { return }
        if self.count > 0, time > .zero {
            let measured = Double(self.count) / (time / .seconds(1))
            // If nothing is left, the follower may have waited for changes.
            perSecond =
                isMoreLeft
                ? perSecond.map { ($0 + measured) / 2 } ?? measured
                : perSecond.map { max($0, measured) }
        }
        self.began = isMoreLeft ? now : nil
        self.count = 0
    }

    /// Returns how many changes may be left to follow, so that they take `time`.
    ///
    /// `cost` is the follower's own time for one change, if it is known. It is used until changes
    /// have had to wait.
    func most(in time: Duration, cost: Duration?) -> Int {
        let widths = IntakeShares.widthsAlone
        if let perSecond {
            return max(widths.least, Int(min(perSecond * (time / .seconds(1)), 1e9)))
        }
        guard let cost else { return widths.first }
        return max(widths.least, Int(min(time / max(cost, .nanoseconds(1)), widths.unmeasured)))
    }
}
