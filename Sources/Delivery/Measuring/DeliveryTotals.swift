import RelayModel

/// What was counted since the start, for whoever shows how it goes on.
///
/// The metrics count the same, by more words; these are read in the process.
package struct DeliveryTotals: Sendable, Hashable {
    /// Attempts that ended, however they did.
    package private(set) var attempts: UInt64 = 0
    /// Those that the gateway accepted.
    package private(set) var accepted: UInt64 = 0
    /// Deliveries that were made to wait.
    package private(set) var retries: UInt64 = 0
    /// Deliveries that ended without success.
    package private(set) var deadLetters: UInt64 = 0
    /// The times from the hand-over to a connection to the answer.
    package private(set) var latencies = LatencyBuckets()
    /// The times from the change to the acceptance, of what was not to wait.
    package private(set) var delays = LatencyBuckets()

    /// Begins with nothing.
    package init() {}

    /// Counts an answer's way.
    mutating func add(latency: Duration) {
        latencies.add(latency)
    }

    /// Counts what is about to be counted for the metrics.
    mutating func add(_ tally: DeliveryMeter.Tally) {
        for (end, count) in tally.attempts {
            attempts += UInt64(count)
            if end == .accepted { accepted += UInt64(count) }
        }
        for (ending, count) in tally.endings {
            switch ending {
            case .accepted, .adopted, .held, .seen: break
            case .retried, .waiting: retries += UInt64(count)
            case .unregistered, .refused, .exhausted, .expired, .superseded, .deadToken,
                .withdrawn:
                deadLetters += UInt64(count)
            }
        }
        for delay in tally.delays { delays.add(delay) }
    }
}
