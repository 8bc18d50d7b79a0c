import NIOCore

/// When a socket's client was heard last, and when it was spoken to.
///
/// A page says nothing by itself, and its browser answers nothing but pings. So whoever is told
/// something all the time is asked by one too, or would be taken for one who has gone.
struct LivePulse {
    /// When something was heard of it, pongs included.
    var heard: NIODeadline
    /// When something was said to it.
    var spoke: NIODeadline

    init(at now: NIODeadline) {
        (heard, spoke) = (now, now)
    }

    /// Whether nothing was heard for so long that it has gone.
    func isGone(at now: NIODeadline) -> Bool { now - heard > TimeAmount(LiveTimes.silence) }

    /// Whether it is time to ask whether it is there.
    func isQuiet(at now: NIODeadline) -> Bool { now - heard > TimeAmount(LiveTimes.heartbeat) }

    /// Whether it is time to say how far everything has been told.
    func isUntold(at now: NIODeadline) -> Bool { now - spoke > TimeAmount(LiveTimes.heartbeat) }
}
