import Metrics
import PostgresFollowing
import RelayModel
import Synchronization

/// Publishes the state of followers whenever metrics are read.
///
/// Concurrency: a lock protects the last published values, so that counters never fall.
final class FollowMeter: Sendable {
    private struct Shown {
        var rows: UInt64 = 0
        var state: String?
    }

    private let factory: any MetricsFactory
    private let shown = Mutex<[SourcePlace: Shown]>([:])

    /// Creates a meter.
    ///
    /// - Parameter factory: Receives the metrics.
    init(_ factory: any MetricsFactory) {
        self.factory = factory
    }

    /// Publishes the state of all present followers; the gauges of others fall to zero.
    func show(_ standings: [(SourcePlace, FollowStanding)], at now: Timestamp) {
        let present = Set(standings.map(\.0))
        for place in shown.withLock({ Array($0.keys) }) where !present.contains(place) {
            show(nil, of: place, at: now)
        }
        for (place, standing) in standings { show(standing, of: place, at: now) }
    }

    private func show(_ standing: FollowStanding?, of place: SourcePlace, at now: Timestamp) {
        let labels = [
            ("container", place.container.container.rawValue),
            ("environment", place.container.environment.rawValue),
            ("source", place.source.rawValue),
        ]
        let status: FollowStatus? =
            if case .followed(let status)? = standing { status } else { nil }
        let word = standing?.word
        let before = shown.withLock { shown in
            let before = shown[place] ?? Shown()
            shown[place] = standing.map { _ in
                Shown(rows: status?.rows ?? before.rows, state: word)
            }
            return before
        }
        func state(_ word: String, _ value: Int) {
            Gauge(
                label: "belfry_follow_state", dimensions: labels + [("state", word)],
                factory: factory
            ).record(value)
        }
        if let former = before.state, former != word { state(former, 0) }
        if let word { state(word, 1) }
        // A follower that began again counts from zero.
        let rows = status?.rows ?? 0
        let new = rows >= before.rows ? rows - before.rows : rows
        if new > 0 {
            Counter(label: "belfry_follow_rows_total", dimensions: labels, factory: factory)
                .increment(by: Int64(clamping: new))
        }
        func gauge(_ name: String, _ value: UInt64?) {
            Gauge(label: name, dimensions: labels, factory: factory)
                .record(Int64(clamping: value ?? 0))
        }
        gauge("belfry_follow_behind_bytes", status?.behindBytes)
        gauge("belfry_follow_retained_bytes", status?.retainedBytes)
        let standsFor = status.map { now.duration(since: $0.since).components.seconds } ?? 0
        gauge("belfry_follow_state_seconds", UInt64(max(0, standsFor)))
    }
}
