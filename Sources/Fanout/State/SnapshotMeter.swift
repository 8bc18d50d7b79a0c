import Metrics
import RelayModel

/// The metrics of snapshots.
struct SnapshotMeter: Sendable {
    private let kept = Counter(label: "belfry_snapshots_kept_total")
    private let failed = Counter(label: "belfry_snapshots_failed_total")
    private let ignored = Counter(label: "belfry_snapshots_ignored_total")
    private let bytes = Gauge(label: "belfry_snapshot_bytes")
    private let position = Gauge(label: "belfry_snapshot_position")
    private let pause = Metrics.Timer(label: "belfry_snapshot_pause_seconds")

    func countFailed() { failed.increment() }

    func countIgnored() { ignored.increment() }

    func show(bytes count: Int, at position: LogPosition) {
        kept.increment()
        bytes.record(count)
        self.position.record(position.rawValue)
    }

    func show(pause: Duration) {
        self.pause.record(duration: pause)
    }
}
