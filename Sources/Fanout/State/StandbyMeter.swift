import Metrics
import RelayModel

/// The metrics of the state that a standby relay has loaded.
struct StandbyMeter: Sendable {
    private let position = Gauge(label: "belfry_standby_position")
    private let subscriptions = Gauge(label: "belfry_standby_subscriptions")
    private let reloads = Counter(label: "belfry_standby_reloads_total")
    private let unreadable = Counter(label: "belfry_subscriptions_unreadable_total")

    func show(_ position: LogPosition, subscriptions count: Int) {
        self.position.record(position.rawValue)
        subscriptions.record(count)
    }

    func countReload() { reloads.increment() }

    func countUnreadable() { unreadable.increment() }
}
