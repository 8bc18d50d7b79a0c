/// How long the gateway's thread rests between two turns.
///
/// On every event of a socket libcurl visits all transfers of that connection, so one answer at a
/// time costs as much as a hundred. Where answers trickle, a millisecond of rest lets several
/// arrive together; where they pour, or where little is open, there is nothing to wait for.
struct LoopPacing: Sendable, Hashable {
    /// Below so many open requests visiting them all is cheap.
    static let crowd = 16
    /// The rest.
    static let rest = Duration.milliseconds(1)

    /// The rest before waiting for events, when `open` requests are open and `ended` ended in the
    /// last turn.
    static func rest(open: Int, ended: Int) -> Duration {
        open >= crowd && ended * 8 < open ? rest : .zero
    }
}
