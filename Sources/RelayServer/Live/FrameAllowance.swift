import NIOCore

/// The number of frames that a client may send now: a burst at first, and then a constant rate.
struct FrameAllowance {
    /// The frames per second that a client may send in the long run.
    static let perSecond = 20
    /// The maximum number of frames in a burst.
    private static let most = 100

    private var left = FrameAllowance.most
    private var earnedUntil: NIODeadline

    init(at now: NIODeadline) {
        earnedUntil = now
    }

    /// Takes one frame from the allowance; returns whether there was one.
    mutating func take(at now: NIODeadline) -> Bool {
        let earned = Int((now - earnedUntil).nanoseconds * Int64(Self.perSecond) / 1_000_000_000)
        if earned > 0 {
            left = min(Self.most, left + earned)
            // The remaining fraction counts on; otherwise a client that keeps to the rate would
            // exceed it.
            earnedUntil =
                earnedUntil + .nanoseconds(Int64(earned) * 1_000_000_000 / Int64(Self.perSecond))
        }
        guard left > 0 else { return false }
        left -= 1
        return true
    }
}
