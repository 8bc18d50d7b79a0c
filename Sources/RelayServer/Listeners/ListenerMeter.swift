import CoreMetrics
import Metrics

/// The metrics of one listener.
struct ListenerMeter: Sendable {
    private let connections: Gauge
    private let untaken: Gauge
    private let refusals: [ConnectionCounts.Refusal: Counter]
    private let slow: [ConnectionPace.Slowness: Counter]
    private let failures: Counter

    init(listener: String, _ factory: any MetricsFactory) {
        let place = [("listener", listener)]
        connections = Gauge(
            label: "belfry_connections", dimensions: place, factory: factory)
        untaken = Gauge(
            label: "belfry_untaken_answer_bytes", dimensions: place, factory: factory)
        refusals = Dictionary(
            uniqueKeysWithValues: ConnectionCounts.Refusal.allCases.map {
                (
                    $0,
                    Counter(
                        label: "belfry_connections_refused_total",
                        dimensions: place + [("reason", $0.rawValue)], factory: factory)
                )
            })
        slow = Dictionary(
            uniqueKeysWithValues: ConnectionPace.Slowness.allCases.map {
                (
                    $0,
                    Counter(
                        label: "belfry_connections_too_slow_total",
                        dimensions: place + [("waiting", $0.rawValue)], factory: factory)
                )
            })
        failures = Counter(
            label: "belfry_connections_failed_total", dimensions: place, factory: factory)
    }

    /// Publishes the number of served connections.
    func show(_ count: () -> Int) { connections.show(count) }

    /// Publishes the bytes of long answers that clients have not taken.
    func showUntaken(_ bytes: () -> Int) { untaken.show(bytes) }

    /// Counts a new connection that is not served.
    func count(_ refusal: ConnectionCounts.Refusal) { refusals[refusal]?.increment() }

    /// Counts a client that was too slow.
    func count(_ slowness: ConnectionPace.Slowness) { slow[slowness]?.increment() }

    /// Counts a connection that the system could not accept.
    func countFailure() { failures.increment() }
}
