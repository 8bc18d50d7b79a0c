import CoreMetrics
import Metrics

/// The metrics of the follower.
struct FanoutMeter: Sendable {
    private let changes: Counter
    private let matches: Counter
    private let deliveries: Counter
    private let unreadable: Counter
    private let ranges: Counter
    private let refiled: Counter
    private let quarantined: Counter
    private let disabled: Counter
    private let subscriptions: Gauge

    init(_ factory: any MetricsFactory = MetricsSystem.factory) {
        func counter(_ label: String) -> Counter { Counter(label: label, factory: factory) }
        changes = counter("belfry_changes_followed_total")
        matches = counter("belfry_matches_total")
        deliveries = counter("belfry_deliveries_owed_total")
        unreadable = counter("belfry_subscriptions_unreadable_total")
        ranges = counter("belfry_ranges_unreadable_total")
        refiled = counter("belfry_subscriptions_refiled_total")
        quarantined = counter("belfry_changes_quarantined_total")
        disabled = counter("belfry_subscriptions_disabled_total")
        subscriptions = Gauge(label: "belfry_subscriptions_active", factory: factory)
    }

    func countChange(matches count: Int) {
        changes.increment()
        matches.increment(by: count)
    }

    func countDeliveries(_ count: Int) {
        deliveries.increment(by: count)
    }

    func countQuarantined() {
        quarantined.increment()
    }

    func countDisabled(_ count: Int) {
        disabled.increment(by: count)
    }

    func countUnreadableRange() {
        ranges.increment()
    }

    func countRefiled(_ count: Int) {
        refiled.increment(by: Int64(count))
    }

    func countUnreadable() {
        unreadable.increment()
    }

    func show(subscriptions count: Int) {
        subscriptions.record(count)
    }
}
