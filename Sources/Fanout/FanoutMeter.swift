import Metrics

/// Counts what the follower sees.
struct FanoutMeter: Sendable {
    private let changes = Counter(label: "belfry_changes_followed_total")
    private let matches = Counter(label: "belfry_matches_total")
    private let deliveries = Counter(label: "belfry_deliveries_owed_total")
    private let unreadable = Counter(label: "belfry_subscriptions_unreadable_total")
    private let ranges = Counter(label: "belfry_ranges_unreadable_total")
    private let refiled = Counter(label: "belfry_subscriptions_refiled_total")
    private let quarantined = Counter(label: "belfry_changes_quarantined_total")
    private let disabled = Counter(label: "belfry_subscriptions_disabled_total")
    private let subscriptions = Gauge(label: "belfry_subscriptions_active")

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
