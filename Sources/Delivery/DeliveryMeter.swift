import Metrics
import RelayModel
import Storage

/// Counts what became of attempts, and times the way from a change to its acceptance.
struct DeliveryMeter: Sendable {
    private let accepted = Counter(
        label: "belfry_attempts_total", dimensions: [("outcome", "accepted")])
    private let deferred = Counter(
        label: "belfry_attempts_total", dimensions: [("outcome", "deferred")])
    private let unregistered = Counter(
        label: "belfry_attempts_total", dimensions: [("outcome", "unregistered")])
    private let dead = Counter(label: "belfry_attempts_total", dimensions: [("outcome", "dead")])
    private let delay = Metrics.Timer(label: "belfry_change_to_acceptance_seconds")
    private let inFlight = Gauge(label: "belfry_deliveries_in_flight")
    private let position = Gauge(label: "belfry_progress_position")

    /// What became of some attempts, collected while the lock is held.
    struct Tally: Sendable {
        private(set) var deferred = 0
        private(set) var unregistered = 0
        private(set) var dead = 0
        /// From the change to the acceptance, for each that was accepted.
        private(set) var delays: [Duration] = []

        mutating func add(
            _ outcome: DeliveryReceipt.Outcome, of delivery: Delivery, at now: Timestamp
        ) {
            switch outcome {
            case .accepted: delays.append(now.duration(since: delivery.appendedAt))
            case .deferred: deferred += 1
            case .unregistered: unregistered += 1
            case .dead: dead += 1
            }
        }
    }

    /// Counts the ends of attempts.
    func count(_ tally: Tally) {
        if !tally.delays.isEmpty { accepted.increment(by: tally.delays.count) }
        for duration in tally.delays { delay.record(duration: duration) }
        if tally.deferred > 0 { deferred.increment(by: tally.deferred) }
        if tally.unregistered > 0 { unregistered.increment(by: tally.unregistered) }
        if tally.dead > 0 { dead.increment(by: tally.dead) }
    }

    /// Shows where the progress stands and how much is open.
    func show(_ mark: ProgressMark, inFlight count: Int) {
        position.record(Double(mark.position.rawValue))
        inFlight.record(count)
    }
}
