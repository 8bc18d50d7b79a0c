import CoreMetrics
import Synchronization

/// Records counters and gauges by the metric's name and labels.
final class MetricsBook: MetricsFactory {
    private let numbers = Mutex<[String: Double]>([:])

    /// The value of a series such as `name{label="value"}`; 0 if it was never set.
    subscript(_ series: String) -> Double { numbers.withLock { $0[series, default: 0] } }

    func change(_ series: String, _ body: (inout Double) -> Void) {
        numbers.withLock { body(&$0[series, default: 0]) }
    }

    private func series(_ label: String, _ dimensions: [(String, String)]) -> BookedSeries {
        let labels = dimensions.map { "\($0)=\"\($1)\"" }.joined(separator: ",")
        return BookedSeries(book: self, name: labels.isEmpty ? label : "\(label){\(labels)}")
    }

    func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        series(label, dimensions)
    }

    func makeRecorder(
        label: String, dimensions: [(String, String)], aggregate: Bool
    ) -> any RecorderHandler {
        series(label, dimensions)
    }

    func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        series(label, dimensions)
    }

    func destroyCounter(_ handler: any CounterHandler) {}
    func destroyRecorder(_ handler: any RecorderHandler) {}
    func destroyTimer(_ handler: any TimerHandler) {}
}

private final class BookedSeries: CounterHandler, RecorderHandler, TimerHandler {
    private let book: MetricsBook
    private let name: String

    init(book: MetricsBook, name: String) {
        self.book = book
        self.name = name
    }

    func increment(by amount: Int64) { book.change(name) { $0 += Double(amount) } }
    func reset() { book.change(name) { $0 = 0 } }
    func record(_ value: Int64) { book.change(name) { $0 = Double(value) } }
    func record(_ value: Double) { book.change(name) { $0 = value } }
    func recordNanoseconds(_ duration: Int64) { book.change(name) { $0 += 1 } }
}
