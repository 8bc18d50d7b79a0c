import RelayModel

/// Detects that the time of day was set back.
///
/// Waits in memory end at a time of the clock. If the clock is set back by an hour, they would last
/// an hour longer. So all these times are moved back by the same amount. A clock that is set ahead
/// only ends waits early, and nothing must be done.
struct ClockWatch: Sendable {
    /// The size up to which a step back is ignored, because clocks are corrected by small amounts.
    ///
    /// Small steps add up.
    static let tolerance = Duration.milliseconds(100)

    private var latest: Timestamp?

    /// Notes the time.
    ///
    /// Returns how far the clock was set back since the last call, if it was.
    mutating func note(_ now: Timestamp) -> Duration? {
        guard let latest, now < latest else {
            self.latest = now
            return nil
        }
        let step = latest.duration(since: now)
        guard Self.tolerance < step else { return nil }
        self.latest = now
        return step
    }
}

extension Timestamp {
    /// Returns the same moment by a clock that was set back by `step`.
    func back(by step: Duration) -> Timestamp { advanced(by: .zero - step) }
}
