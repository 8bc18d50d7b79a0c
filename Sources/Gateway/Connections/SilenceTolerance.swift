import RelayModel

/// How long a gateway may answer nothing on a connection while requests are open, before the
/// connection is given up and what was open is sent again.
///
/// Nobody can tell a gateway that has stopped from one that is slow. So it begins with the least,
/// by which one that has stopped is found in time; each connection that is given up doubles it, and
/// a slow answer keeps it at twice the answer's time: a slow gateway is waited for from then on.
struct SilenceTolerance: Sendable, Hashable {
    private let least: Duration
    private let most: Duration
    /// What is tolerated now.
    private(set) var current: Duration

    /// Begins with `least`.
    init(least: Duration, most: Duration) {
        self.least = least
        self.most = max(least, most)
        current = least
    }

    /// A connection was given up after `silence`; of several that were, each brings the same.
    mutating func giveUp(after silence: Duration) {
        current = min(max(current, silence * 2), most)
    }

    /// The gateway answered after `latency`.
    mutating func answer(after latency: Duration) {
        let wish = latency * 2
        if wish <= least, current == least { return }
        current = min(max(wish, least), most)
    }
}
