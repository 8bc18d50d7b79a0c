/// How many requests may be open on each connection of a pool.
///
/// libcurl does not show the gateway's limit of streams, so it is felt for: a refusal halves the
/// width, success raises it by a tenth a second.
struct AdaptiveWidth: Sendable, Hashable {
    /// The most.
    let maximum: Int
    /// The present width, 1 to ``maximum``.
    private(set) var current: Int
    private var lastCut: MonotonicInstant?
    private var lastGrowth: MonotonicInstant?

    /// One burst of refusals is one cut.
    private static let burst = Duration.milliseconds(500)

    init(maximum: Int) {
        self.maximum = max(1, maximum)
        current = self.maximum
    }

    /// A request was refused or lost although its connection lives, at `now`.
    mutating func refuse(at now: MonotonicInstant) {
        if let lastCut, now.duration(since: lastCut) < Self.burst { return }
        lastCut = now
        lastGrowth = now
        current = max(1, current / 2)
    }

    /// A request was accepted at `now`.
    mutating func accept(at now: MonotonicInstant) {
        guard current < maximum else { return }
        if let lastGrowth, now.duration(since: lastGrowth) < .seconds(1) { return }
        lastGrowth = now
        current = min(maximum, current + max(1, current / 10))
    }
}
