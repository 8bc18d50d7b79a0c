package import CoreMetrics
import Synchronization

/// Keeps the process's metrics and renders them as Prometheus reads them (text format 0.0.4).
///
/// A lock, not an actor: an update is a few additions, and swift-metrics calls from anywhere. The
/// number of series is bounded, so that hostile label values cannot fill the memory. Those that
/// tell of a container have a bound of their own: however many containers there are, what is told
/// of the relay is shown, also what is told for the first time after hours.
package final class PrometheusMetrics: MetricsFactory, Sendable {
    private struct Families {
        var byName: [String: MetricFamily] = [:]
        /// How many series tell of a container, and how many of the relay.
        private(set) var ofContainers = 0
        private(set) var ofRelay = 0

        func count(like series: MetricSeries) -> Int {
            series.isOfContainer ? ofContainers : ofRelay
        }

        mutating func count(_ series: MetricSeries, by number: Int) {
            if series.isOfContainer { ofContainers += number } else { ofRelay += number }
        }
    }

    private let families = Mutex(Families())
    private let maximumSeries: Int

    /// Creates an empty collection that takes at most `maximumSeries` series of containers, and as
    /// many others.
    package init(maximumSeries: Int = 10_000) {
        self.maximumSeries = maximumSeries
    }

    /// The text that a scrape gets, families and series in order.
    package func render() -> String {
        let families = families.withLock { $0.byName }
        var text = ""
        for (name, family) in families.sorted(by: { $0.key < $1.key }) {
            family.render(as: name, to: &text)
        }
        return text
    }

    /// Shows no gauge any more that was not made after this: what they showed is over.
    ///
    /// Counters and histograms stay, because they count the process.
    package func forgetGauges() {
        families.withLock { families in
            for (name, family) in families.byName where family.kind == .gauge {
                for series in family.series.values { families.count(series, by: -1) }
                families.byName[name] = nil
            }
        }
    }

    /// The series with this name and these labels; beyond the bound, one that nobody renders.
    private func series(
        _ kind: MetricFamily.Kind, _ label: String, _ dimensions: [(String, String)]
    ) -> MetricSeries {
        let name = MetricName.name(label)
        let labels = MetricName.labels(dimensions)
        return families.withLock { families in
            var family = families.byName[name] ?? MetricFamily(kind: kind)
            if let series = family.series[labels] { return series }
            let series = MetricSeries(
                kind: family.kind, isOfContainer: dimensions.contains { $0.0 == "container" })
            guard families.count(like: series) < maximumSeries, family.kind == kind else {
                return series
            }
            families.count(series, by: 1)
            family.series[labels] = series
            families.byName[name] = family
            return series
        }
    }

    // MARK: What swift-metrics asks for

    /// A counter.
    package func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        series(.counter, label, dimensions)
    }

    /// A counter of fractions.
    package func makeFloatingPointCounter(
        label: String, dimensions: [(String, String)]
    ) -> any FloatingPointCounterHandler {
        series(.counter, label, dimensions)
    }

    /// A gauge.
    package func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        series(.gauge, label, dimensions)
    }

    /// A histogram, or a gauge if nothing is to be aggregated.
    package func makeRecorder(
        label: String, dimensions: [(String, String)], aggregate: Bool
    ) -> any RecorderHandler {
        series(aggregate ? .histogram : .gauge, label, dimensions)
    }

    /// A histogram of seconds.
    package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        series(.histogram, label, dimensions)
    }

    /// Metrics live as long as the process.
    package func destroyCounter(_ handler: any CounterHandler) {}

    /// Metrics live as long as the process.
    package func destroyFloatingPointCounter(_ handler: any FloatingPointCounterHandler) {}

    /// Metrics live as long as the process.
    package func destroyMeter(_ handler: any MeterHandler) {}

    /// Metrics live as long as the process.
    package func destroyRecorder(_ handler: any RecorderHandler) {}

    /// Metrics live as long as the process.
    package func destroyTimer(_ handler: any TimerHandler) {}
}
