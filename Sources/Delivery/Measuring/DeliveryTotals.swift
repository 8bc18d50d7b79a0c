import RelayModel

/// Counts since the start, for reading within the process.
///
/// The metrics count the same in more detail.
package struct DeliveryTotals: Sendable, Hashable {
    /// The number of attempts that ended in any way.
    package private(set) var attempts: UInt64 = 0
    /// The number of attempts that the gateway accepted.
    package private(set) var accepted: UInt64 = 0
    /// The number of deliveries that were made to wait.
    package private(set) var retries: UInt64 = 0
    /// The number of deliveries that ended without success.
    package private(set) var deadLetters: UInt64 = 0
    /// The times from the hand-over to a connection to the answer.
    package private(set) var latencies = LatencyBuckets()
    /// The times from the change to the acceptance, of deliveries that did not have to wait.
    package private(set) var delays = LatencyBuckets()

    /// Creates counts that all begin at zero.
    package init() {}

    /// Counts the latency of an answer.
    mutating func add(latency: Duration) {
        latencies.add(latency)
    }

    /// Counts a tally that is about to be added to the metrics.
    mutating func add(_ tally: DeliveryMeter.Tally) {
        for (end, count) in tally.attempts {
            attempts += UInt64(count)
            if end == .accepted { accepted += UInt64(count) }
        }
        for (ending, count) in tally.endings {
            switch ending {
            case .accepted, .adopted, .held, .seen: break
            case .retried, .waiting: retries += UInt64(count)
            case .unregistered, .refused, .exhausted, .expired, .expiredHeld, .superseded,
                .deadToken, .withdrawn:
                deadLetters += UInt64(count)
            }
        }
        for delay in tally.delays { delays.add(delay) }
    }
}
