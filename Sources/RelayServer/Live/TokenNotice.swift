import RelayModel

/// Whether a client was told that its user token is about to end: once for each end.
struct TokenNotice {
    /// The end that it was told of.
    private var told: Timestamp?

    /// The seconds that are left, if it is time to tell of them.
    mutating func seconds(until end: Timestamp, at moment: Timestamp) -> Int64? {
        let left = end.duration(since: moment)
        guard end != told, left <= LiveTimes.notice else { return nil }
        told = end
        return left.components.seconds
    }
}
