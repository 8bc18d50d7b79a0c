import NIOCore

/// When the client of a socket was last heard, and when it was last sent something.
///
/// A page sends nothing by itself, and its browser answers only pings. So even a client that is
/// sent frames all the time is pinged; otherwise it would seem to have gone.
struct LivePulse {
    /// When the client was last heard, pongs included.
    var heard: NIODeadline
    /// When the client was last sent something.
    var spoke: NIODeadline

    init(at now: NIODeadline) {
        (heard, spoke) = (now, now)
    }

    /// Returns whether the client was silent for so long that it must have gone.
    func isGone(at now: NIODeadline) -> Bool { now - heard > TimeAmount(LiveTimes.silence) }

    /// Returns whether it is time to ping the client.
    func isQuiet(at now: NIODeadline) -> Bool { now - heard > TimeAmount(LiveTimes.heartbeat) }

    /// Returns whether it is time to tell the client how far everything has been sent.
    func isUntold(at now: NIODeadline) -> Bool { now - spoke > TimeAmount(LiveTimes.heartbeat) }
}
