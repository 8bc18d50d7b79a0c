package import RelayModel

/// The status of continuous backup, for the overview, the doctor and the metrics.
package struct ShippingStatus: Sendable, Hashable {
    /// A failure: its moment and its reason.
    package struct Failure: Sendable, Hashable {
        /// When it failed.
        package let at: Timestamp
        /// The reason, in readable form.
        package let reason: String
    }

    /// The destination of the backups.
    package var place: String
    /// How often the log is shipped.
    package var interval: Duration
    /// The chain that is being written.
    package var chain: String?
    /// The moment before which everything that was acknowledged is at the destination.
    package var shippedUntil: Timestamp?
    /// The last position of the relay's log that is at the destination.
    package var head: LogPosition?
    /// When the last whole copy was finished.
    package var lastBase: Timestamp?
    /// The number of whole copies at the destination.
    package var bases = 0
    /// The number of bytes that wait in the spool.
    package var waitingBytes = 0
    /// Why the last attempt failed; `nil` after a success.
    package var failure: Failure?
    /// Why the last chain ended early.
    package var ending: Failure?

    /// The number of segments that were shipped since the start.
    package var shippedSegments = 0
    /// The number of bytes of those segments.
    package var shippedBytes = 0
    /// The number of attempts that failed since the start.
    package var failures = 0
    /// The number of chains that ended early since the start.
    package var endedChains = 0

    /// Creates the status of a shipper that has not started.
    package init(place: String, interval: Duration) {
        self.place = place
        self.interval = interval
    }
}

/// The time between rounds: the interval after a success, and growing pauses after failures.
struct ShippingPace: Sendable {
    let interval: Duration
    private(set) var failures = 0

    init(interval: Duration) {
        self.interval = interval
    }

    mutating func note(isDone: Bool) { failures = isDone ? 0 : min(failures + 1, 16) }

    /// Returns the pause before the next attempt.
    ///
    /// After the first failure it is up to a second, doubled with each further one up to a minute.
    /// It is drawn from the upper half, so that many relays do not retry at the same moment.
    func pause(using generator: inout some RandomNumberGenerator) -> Duration {
        guard failures > 0 else { return interval }
        let most = min(60_000, 1000 << (failures - 1))
        return .milliseconds(Int.random(in: (most / 2)...most, using: &generator))
    }
}
