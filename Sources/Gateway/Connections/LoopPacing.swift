/// How long the gateway's thread rests between two turns.
///
/// A turn has a price of its own: a wake-up, reading, writing, and the gateway's work for a small
/// packet. Where requests and answers trickle in quickly one by one, a turn a millisecond lets
/// several travel together; where they pour, or come rarely, there is nothing to wait for. A
/// gateway that takes its time is asked less often: what a rest adds is little beside its latency.
struct LoopPacing: Sendable, Hashable {
    /// The shortest and the longest time between two turns where requests trickle.
    static let interval = Duration.milliseconds(1)...Duration.milliseconds(2)
    /// The part of a gateway's latency that a turn may take.
    static let part = 20
    /// The requests that must have started and ended in one turn for the turn to be a good one.
    static let goodTurn = 8

    /// The rest before waiting for events, `elapsed` after the last one.
    ///
    /// `open` requests are open, and `moved` started or ended in this turn. With many open, a good
    /// turn ends an eighth of them; where answers take their time, only the time counts.
    static func rest(
        open: Int, moved: Int, elapsed: Duration, latency: Duration
    ) -> Duration {
        let wanted = max(interval.lowerBound, min(interval.upperBound, latency / part))
        if wanted == interval.lowerBound, moved >= max(goodTurn, open / 8) { return .zero }
        return elapsed >= wanted ? .zero : wanted - elapsed
    }
}

/// How long a pool's gateway takes to answer: an average that forgets.
struct AnswerLatency: Sendable, Hashable {
    /// The average; zero before the first answer.
    private(set) var average = Duration.zero

    /// An answer came after `latency`.
    mutating func note(_ latency: Duration) {
        average = average == .zero ? latency : average + (latency - average) / 16
    }
}
