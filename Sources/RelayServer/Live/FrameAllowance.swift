import NIOCore

/// How many frames a client may send now: some at once, and so many in a second for ever.
struct FrameAllowance {
    /// Frames of a client in a second.
    static let perSecond = 20
    /// Frames of a client at once.
    private static let most = 100

    private var left = FrameAllowance.most
    private var earnedUntil: NIODeadline

    init(at now: NIODeadline) {
        earnedUntil = now
    }

    /// Takes one, and says whether there was one.
    mutating func take(at now: NIODeadline) -> Bool {
        let earned = Int((now - earnedUntil).nanoseconds * Int64(Self.perSecond) / 1_000_000_000)
        if earned > 0 {
            left = min(Self.most, left + earned)
            // What is left of the time counts on, or whoever keeps to the rate would be over it.
            earnedUntil =
                earnedUntil + .nanoseconds(Int64(earned) * 1_000_000_000 / Int64(Self.perSecond))
        }
        guard left > 0 else { return false }
        left -= 1
        return true
    }
}
