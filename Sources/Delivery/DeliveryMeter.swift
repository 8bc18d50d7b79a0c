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

    /// Counts the end of an attempt.
    func count(_ outcome: DeliveryReceipt.Outcome, of delivery: Delivery, at now: Timestamp) {
        switch outcome {
        case .accepted:
            accepted.increment()
            delay.record(duration: now.duration(since: delivery.appendedAt))
        case .deferred: deferred.increment()
        case .unregistered: unregistered.increment()
        case .dead: dead.increment()
        }
    }

    /// Shows where the progress stands and how much is open.
    func show(_ mark: ProgressMark, inFlight count: Int) {
        position.record(Double(mark.position.rawValue))
        inFlight.record(count)
    }
}
