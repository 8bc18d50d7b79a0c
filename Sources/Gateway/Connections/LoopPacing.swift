/// How long the gateway's thread rests between two turns.
///
/// On every event of a socket libcurl visits all transfers of that connection, so one answer at a
/// time costs as much as a hundred; and a turn has a price of its own. Where requests and answers
/// trickle in quickly one by one, a turn a millisecond lets several travel together; where they
/// pour, or come rarely, there is nothing to wait for.
struct LoopPacing: Sendable, Hashable {
    /// The time between two turns where requests trickle.
    static let interval = Duration.milliseconds(1)
    /// So many requests that started and ended in one turn are a good turn.
    static let goodTurn = 8

    /// The rest before waiting for events, `elapsed` after the last one.
    ///
    /// `open` requests are open, and `moved` started or ended in this turn. With many open, a good
    /// turn ends an eighth of them.
    static func rest(open: Int, moved: Int, elapsed: Duration) -> Duration {
        moved >= max(goodTurn, open / 8) || elapsed >= interval ? .zero : interval - elapsed
    }
}
