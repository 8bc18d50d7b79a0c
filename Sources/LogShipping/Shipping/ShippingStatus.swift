package import RelayModel

/// How continuous backup stands, for the overview, the doctor and the metrics.
package struct ShippingStatus: Sendable, Hashable {
    /// Why something failed, and when.
    package struct Failure: Sendable, Hashable {
        /// When it failed.
        package let at: Timestamp
        /// Why, for people.
        package let reason: String
    }

    /// Where backups go.
    package var place: String
    /// How often the log is shipped.
    package var interval: Duration
    /// The chain that is written.
    package var chain: String?
    /// Everything that was acknowledged before this moment is at the destination.
    package var shippedUntil: Timestamp?
    /// The last position of the relay's log that is there.
    package var head: LogPosition?
    /// When the last whole copy was finished.
    package var lastBase: Timestamp?
    /// Whole copies at the destination.
    package var bases = 0
    /// The bytes that wait in the spool.
    package var waitingBytes = 0
    /// Why the last attempt failed; `nil` once one has succeeded.
    package var failure: Failure?
    /// Why the last chain ended before its time.
    package var ending: Failure?

    /// Segments that were shipped since the start.
    package var shippedSegments = 0
    /// The bytes of those segments.
    package var shippedBytes = 0
    /// Attempts that failed since the start.
    package var failures = 0
    /// Chains that ended before their time since the start.
    package var endedChains = 0

    /// The standing of a shipper that has not begun: nothing is known of `place`.
    package init(place: String, interval: Duration) {
        self.place = place
        self.interval = interval
    }
}

/// When the shipper goes on: every interval while all is well, later and later while it is not.
struct ShippingPace: Sendable {
    let interval: Duration
    private(set) var failures = 0

    init(interval: Duration) {
        self.interval = interval
    }

    mutating func note(isDone: Bool) { failures = isDone ? 0 : min(failures + 1, 16) }

    /// The pause before the next attempt: after failures a second, doubled with each up to a
    /// minute, and drawn from the upper half, so that many relays do not come back together.
    func pause(using generator: inout some RandomNumberGenerator) -> Duration {
        guard failures > 0 else { return interval }
        let most = min(60_000, 1000 << (failures - 1))
        return .milliseconds(Int.random(in: (most / 2)...most, using: &generator))
    }
}
