import CoreMetrics
import Synchronization

/// All series of one metric name.
struct MetricFamily {
    /// The type of a metric, as Prometheus names it.
    enum Kind: String {
        case counter, gauge, histogram
    }

    let kind: Kind
    /// The series by their rendered labels.
    var series: [String: MetricSeries] = [:]

    init(kind: Kind) {
        self.kind = kind
    }

    func render(as name: String, to text: inout String) {
        if let help = MetricHelp.texts[name] { text += "# HELP \(name) \(help)\n" }
        text += "# TYPE \(name) \(kind.rawValue)\n"
        for (labels, series) in series.sorted(by: { $0.key < $1.key }) {
            series.value.render(as: name, labels: labels, to: &text)
        }
    }
}

/// One series: a number, or a histogram.
final class MetricSeries: Sendable {
    /// Whether its labels name a container.
    let isOfContainer: Bool
    private let state: Mutex<MetricValue>

    init(kind: MetricFamily.Kind, isOfContainer: Bool) {
        self.isOfContainer = isOfContainer
        state = Mutex(MetricValue(kind: kind))
    }

    /// The current value.
    var value: MetricValue { state.withLock { $0 } }
}

extension MetricSeries: CounterHandler, FloatingPointCounterHandler, MeterHandler,
    RecorderHandler, TimerHandler
{
    func increment(by amount: Int64) {
        state.withLock { $0.number += Double(amount) }
    }

    func increment(by amount: Double) {
        state.withLock { $0.number += amount }
    }

    func decrement(by amount: Double) {
        state.withLock { $0.number -= amount }
    }

    func reset() {
        state.withLock { $0.number = 0 }
    }

    func set(_ value: Int64) {
        state.withLock { $0.number = Double(value) }
    }

    func set(_ value: Double) {
        state.withLock { $0.number = value }
    }

    func record(_ value: Int64) {
        record(Double(value))
    }

    func record(_ value: Double) {
        state.withLock { $0.record(value) }
    }

    func recordNanoseconds(_ duration: Int64) {
        record(Double(duration) / 1e9)
    }
}

/// The value of a series.
struct MetricValue {
    /// The upper bounds of a histogram's buckets.
    ///
    /// Seconds use those from 50 µs to one minute, and counts those from 1 to 50,000.
    static let bounds: [Double] = [
        0.000_05, 0.000_1, 0.000_25, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
        0.5, 1, 2.5, 5, 10, 30, 60, 100, 500, 1000, 5000, 10_000, 50_000,
    ]

    /// The value of a counter or gauge; the sum of a histogram.
    var number = 0.0
    /// The number of values in each bucket, the last of which has no upper bound; empty unless this
    /// is a histogram.
    private var buckets: [UInt64]

    init(kind: MetricFamily.Kind) {
        buckets =
            kind == .histogram ? Array(repeating: 0, count: Self.bounds.count + 1) : []
    }

    mutating func record(_ value: Double) {
        guard value.isFinite else { return }
        guard !buckets.isEmpty else {
            number = value
            return
        }
        // A duration that was measured while the clock was set back is negative. Prometheus would
        // take a sum that falls for a restart of the process.
        number += max(0, value)
        buckets[Self.bounds.firstIndex { value <= $0 } ?? Self.bounds.count] += 1
    }

    func render(as name: String, labels: String, to text: inout String) {
        guard !buckets.isEmpty else {
            text += "\(name)\(MetricName.braces(labels)) \(Self.digits(number))\n"
            return
        }
        var count: UInt64 = 0
        for (index, bucket) in buckets.enumerated() {
            count += bucket
            let bound = index < Self.bounds.count ? Self.digits(Self.bounds[index]) : "+Inf"
            let all = labels.isEmpty ? "le=\"\(bound)\"" : "\(labels),le=\"\(bound)\""
            text += "\(name)_bucket{\(all)} \(count)\n"
        }
        text += "\(name)_sum\(MetricName.braces(labels)) \(Self.digits(number))\n"
        text += "\(name)_count\(MetricName.braces(labels)) \(count)\n"
    }

    /// Returns the digits of a number; whole numbers have no fraction.
    private static func digits(_ number: Double) -> String {
        Int64(exactly: number).map(String.init) ?? "\(number)"
    }
}

/// Converts names and labels to the form that Prometheus allows.
enum MetricName {
    /// Returns `text` with an underscore in place of each character that a name may not contain.
    static func name(_ text: String) -> String {
        var name = ""
        for (index, scalar) in text.unicodeScalars.enumerated() {
            let isAllowed =
                scalar.isASCII && (scalar.properties.isAlphabetic || scalar == "_" || scalar == ":")
            let isDigit = ("0"..."9").contains(scalar)
            name.unicodeScalars.append(isAllowed || (isDigit && index > 0) ? scalar : "_")
        }
        return name.isEmpty ? "_" : name
    }

    /// Returns the sorted labels as they stand between braces.
    static func labels(_ dimensions: [(String, String)]) -> String {
        dimensions.sorted { $0.0 < $1.0 }
            .map { "\(name($0.0))=\"\(escaped($0.1))\"" }.joined(separator: ",")
    }

    static func braces(_ labels: String) -> String {
        labels.isEmpty ? "" : "{\(labels)}"
    }

    private static func escaped(_ text: String) -> String {
        var escaped = ""
        for character in text.unicodeScalars {
            switch character {
            case "\\": escaped += "\\\\"
            case "\"": escaped += "\\\""
            case "\n": escaped += "\\n"
            default: escaped.unicodeScalars.append(character)
            }
        }
        return escaped
    }
}
