/// The number of requests that may be open on each connection of a pool.
///
/// libcurl does not show the gateway's limit of streams, so it is found by trial. A refusal halves
/// the width, and success raises it by a tenth each second.
struct AdaptiveWidth: Sendable, Hashable {
    /// The maximum width.
    let maximum: Int
    /// The present width, 1 to ``maximum``.
    private(set) var current: Int
    private var lastCut: MonotonicInstant?
    private var lastGrowth: MonotonicInstant?

    /// The duration of a burst of refusals, which cuts the width only once.
    private static let burst = Duration.milliseconds(500)

    init(maximum: Int) {
        self.maximum = max(1, maximum)
        current = self.maximum
    }

    /// Notes that a request was refused or lost at `now` although its connection is alive.
    mutating func refuse(at now: MonotonicInstant) {
        if let lastCut, now.duration(since: lastCut) < Self.burst { return }
        lastCut = now
        lastGrowth = now
        current = max(1, current / 2)
    }

    /// Notes that a request was accepted at `now`.
    mutating func accept(at now: MonotonicInstant) {
        guard current < maximum else { return }
        if let lastGrowth, now.duration(since: lastGrowth) < .seconds(1) { return }
        lastGrowth = now
        current = min(maximum, current + max(1, current / 10))
    }
}
