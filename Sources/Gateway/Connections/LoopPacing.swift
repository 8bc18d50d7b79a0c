/// The rest of the gateway's thread between two turns.
///
/// A turn has a fixed cost: a wake-up, reading, writing, and the gateway's work for a small packet.
/// If requests and answers come in quick succession one by one, a turn each millisecond lets
/// several travel together. If they come in bulk or rarely, there is nothing to wait for. A slow
/// gateway is read less often, because a rest adds little to its latency.
struct LoopPacing: Sendable, Hashable {
    /// The shortest and the longest time between two turns when requests come one by one.
    static let interval = Duration.milliseconds(1)...Duration.milliseconds(2)
    /// The divisor of the gateway's latency that gives the time between two turns.
    static let part = 20
    /// The number of requests that must have started and ended in a turn for it to be a good one.
    static let goodTurn = 8

    /// Returns the rest before waiting for events, `elapsed` after the last one.
    ///
    /// `open` requests are open, and `moved` started or ended in this turn. If many are open, a
    /// good turn ends an eighth of them. If the gateway is slow, only the time counts.
    static func rest(
        open: Int, moved: Int, elapsed: Duration, latency: Duration
    ) -> Duration {
        let wanted = max(interval.lowerBound, min(interval.upperBound, latency / part))
        if wanted == interval.lowerBound, moved >= max(goodTurn, open / 8) { return .zero }
        return elapsed >= wanted ? .zero : wanted - elapsed
    }
}

/// The latency of a pool's gateway, as a moving average.
struct AnswerLatency: Sendable, Hashable {
    /// The average, or zero before the first answer.
    private(set) var average = Duration.zero

    /// Adds the latency of an answer.
    mutating func note(_ latency: Duration) {
        average = average == .zero ? latency : average + (latency - average) / 16
    }
}
