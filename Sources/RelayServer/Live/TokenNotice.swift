import RelayModel

/// Whether a client was warned that its user token is about to end: once for each end.
struct TokenNotice {
    /// The end of which the client was warned.
    private var told: Timestamp?

    /// Returns the seconds that are left, if it is time to warn of the end.
    mutating func seconds(until end: Timestamp, at moment: Timestamp) -> Int64? {
        let left = end.duration(since: moment)
        guard end != told, left <= LiveTimes.notice else { return nil }
        told = end
        return left.components.seconds
    }
}
