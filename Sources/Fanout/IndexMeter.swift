import Matching
import Metrics
import RelayModel
import Synchronization

/// Updates the metrics of what the indexes hold and what matching costs, whenever metrics are read.
///
/// Concurrency: a lock holds the statistics that were shown last, so that counters only rise.
package final class IndexMeter: Sendable {
    private let directory: IndexDirectory
    private let shown = Mutex<[ContainerKey: IndexStatistics]>([:])

    /// Creates a meter of the indexes in `directory`.
    package init(_ directory: IndexDirectory) {
        self.directory = directory
    }

    /// Brings the metrics up to date.
    package func update() {
        for container in directory.containers {
            // An index that a long judgement uses is shown the next time.
            guard !directory.turns.isJudging(container),
                let index = directory.index(of: container)
            else { continue }
            let statistics = index.statistics
            let before = shown.withLock { $0.updateValue(statistics, forKey: container) }
            show(statistics, since: before ?? IndexStatistics(), Self.labels(container))
        }
    }

    private static func labels(_ container: ContainerKey) -> [(String, String)] {
        [
            ("container", container.container.rawValue),
            ("environment", container.environment.rawValue),
        ]
    }

    private func show(
        _ statistics: IndexStatistics, since before: IndexStatistics, _ labels: [(String, String)]
    ) {
        let gauges = [
            ("belfry_index_subscriptions", statistics.subscriptions),
            ("belfry_index_keys", statistics.keys),
            ("belfry_index_residuals", statistics.residuals),
            ("belfry_index_programs", statistics.programs),
            ("belfry_index_shared_postings", statistics.sharedPostings),
            ("belfry_index_bytes", statistics.bytes),
        ]
        for (name, value) in gauges { Gauge(label: name, dimensions: labels).record(value) }
        let postings = [
            ("plain", statistics.plainPostings), ("range", statistics.rangePostings),
            ("guarded", statistics.guardedPostings),
        ]
        for (kind, value) in postings {
            Gauge(label: "belfry_index_postings", dimensions: labels + [("kind", kind)])
                .record(value)
        }
        let counters = [
            ("belfry_index_changes_total", statistics.changes, before.changes),
            ("belfry_index_matches_total", statistics.matches, before.matches),
            ("belfry_index_candidates_total", statistics.candidates, before.candidates),
            ("belfry_index_confirmed_total", statistics.confirmed, before.confirmed),
            ("belfry_predicate_errors_total", statistics.errors, before.errors),
        ]
        for (name, now, then) in counters where now > then {
            Counter(label: name, dimensions: labels).increment(by: Int64(clamping: now - then))
        }
    }
}
