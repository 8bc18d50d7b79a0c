import RelayModel

/// How long a gateway may answer nothing on a connection while requests are open.
///
/// After that, the connection is given up, and its open requests are sent again.
///
/// A gateway that has stopped looks like a slow one. So the tolerance begins with the minimum,
/// which finds a stopped gateway in time. Each connection that is given up doubles it. A slow
/// answer keeps it at twice the answer's latency, so a slow gateway is waited for from then on.
struct SilenceTolerance: Sendable, Hashable {
    private let least: Duration
    private let most: Duration
    /// The current tolerance.
    private(set) var current: Duration

    /// Creates a tolerance that begins with `least`.
    init(least: Duration, most: Duration) {
        self.least = least
        self.most = max(least, most)
        current = least
    }

    /// Notes that a connection was given up after `silence`.
    ///
    /// Several at once have the same effect as one.
    mutating func giveUp(after silence: Duration) {
        current = min(max(current, silence * 2), most)
    }

    /// Notes that the gateway answered after `latency`.
    mutating func answer(after latency: Duration) {
        let wish = latency * 2
        if wish <= least, current == least { return }
        current = min(max(wish, least), most)
    }
}
