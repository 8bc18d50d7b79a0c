import RelayModel

/// Notices that the time of day was set back.
///
/// What waits in memory waits until a moment of the clock. If that is set back, those moments are
/// further away than the waits that were meant, an hour for an hour; so they are moved by the same.
/// A clock that is set ahead ends waits early, and nothing has to be done.
struct ClockWatch: Sendable {
    /// Clocks are corrected by a little: less than this is no step, and is added up.
    static let tolerance = Duration.milliseconds(100)

    private var latest: Timestamp?

    /// Notes what the clock says; returns how far it was set back since the last time, if it was.
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
    /// The same moment by a clock that was set back.
    func back(by step: Duration) -> Timestamp { advanced(by: .zero - step) }
}
