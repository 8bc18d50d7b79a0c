package import CoreMetrics
import Synchronization

/// Keeps the process's metrics and renders them in the Prometheus text format 0.0.4.
///
/// It is a lock, not an actor: an update is a few additions, and swift-metrics calls from any
/// thread. The number of series is limited, so that hostile label values cannot fill the memory.
/// Series with a container label have a limit of their own. So the relay's own metrics are always
/// shown, even if they first occur after hours and whatever the number of containers.
package final class PrometheusMetrics: MetricsFactory, Sendable {
    private struct Families {
        var byName: [String: MetricFamily] = [:]
        /// The number of series that name a container, and of all others.
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

    /// Creates an empty collection with room for `maximumSeries` series that name a container, and
    /// for as many others.
    package init(maximumSeries: Int = 10_000) {
        self.maximumSeries = maximumSeries
    }

    /// Returns the text of a scrape, with families and series in order.
    package func render() -> String {
        let families = families.withLock { $0.byName }
        var text = ""
        for (name, family) in families.sorted(by: { $0.key < $1.key }) {
            family.render(as: name, to: &text)
        }
        return text
    }

    /// Removes all gauges, because what they showed is over; only gauges that are created later are
    /// shown.
    ///
    /// Counters and histograms stay, because they count since the start of the process.
    package func forgetGauges() {
        families.withLock { families in
            for (name, family) in families.byName where family.kind == .gauge {
                for series in family.series.values { families.count(series, by: -1) }
                families.byName[name] = nil
            }
        }
    }

    /// Returns the series with this name and these labels; beyond the limit, a new one that is
    /// never rendered.
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

    /// Creates a counter.
    package func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        series(.counter, label, dimensions)
    }

    /// Creates a counter of fractional amounts.
    package func makeFloatingPointCounter(
        label: String, dimensions: [(String, String)]
    ) -> any FloatingPointCounterHandler {
        series(.counter, label, dimensions)
    }

    /// Creates a gauge.
    package func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        series(.gauge, label, dimensions)
    }

    /// Creates a histogram; a gauge if `aggregate` is false.
    package func makeRecorder(
        label: String, dimensions: [(String, String)], aggregate: Bool
    ) -> any RecorderHandler {
        series(aggregate ? .histogram : .gauge, label, dimensions)
    }

    /// Creates a histogram of seconds.
    package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        series(.histogram, label, dimensions)
    }

    /// Does nothing, because metrics live as long as the process.
    package func destroyCounter(_ handler: any CounterHandler) {}

    /// Does nothing, because metrics live as long as the process.
    package func destroyFloatingPointCounter(_ handler: any FloatingPointCounterHandler) {}

    /// Does nothing, because metrics live as long as the process.
    package func destroyMeter(_ handler: any MeterHandler) {}

    /// Does nothing, because metrics live as long as the process.
    package func destroyRecorder(_ handler: any RecorderHandler) {}

    /// Does nothing, because metrics live as long as the process.
    package func destroyTimer(_ handler: any TimerHandler) {}
}
