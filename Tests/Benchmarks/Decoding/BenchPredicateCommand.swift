import ArgumentParser
import PredicateLanguage
import RegularExpressions
import RelayModel

/// The command `bench predicate`, which compares evaluation with a plain loop over the same
/// values.
struct BenchPredicateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "predicate",
        abstract: "Measure evaluation: time per comparison, allocations per evaluation.",
        discussion: """
            Each predicate is evaluated on the same records, first with fields looked up by their \
            names, then with the fields in place (looked up once, before); then a plain loop makes \
            the same comparisons on the same values in arrays, in the same run. Times are the \
            least of five; the factor is that of the fields in place to the plain loop. \
            Allocations are known when the command runs under Tests/Benchmarks/count-allocations.
            """)

    @Option(help: "How many records there are.")
    var records = 1000

    @Option(help: "How often each predicate is evaluated on all records.")
    var rounds = 100

    func validate() throws {
        guard records > 0, rounds > 0 else {
            throw ValidationError("--records and --rounds are positive numbers.")
        }
    }

    func run() throws {
        let table = PredicateBenchTable(count: records)
        print(PredicateBenchRow.header)
        for measure in try table.measures() {
            print(try measure.row(on: table, rounds: rounds).text)
        }
    }
}

/// One line of the report.
struct PredicateBenchRow {
    let name: String
    let comparisons: Int
    let evaluated: Duration
    /// The time with the fields in the places of a layout.
    let placed: Duration
    let plain: Duration
    let evaluations: Int
    /// Allocations per evaluation; `nil` if they are not counted.
    let allocations: Double?

    static let header =
        padded("predicate", 40) + padded("ns/comparison", 15) + padded("ns in place", 13)
        + padded("ns plain", 10) + padded("factor", 8) + "allocations/evaluation"

    var text: String {
        let time = Self.nanoseconds(evaluated) / Double(comparisons)
        let placedTime = Self.nanoseconds(placed) / Double(comparisons)
        let plainTime = Self.nanoseconds(plain) / Double(comparisons)
        return Self.padded(name, 40) + Self.padded(Self.tenths(time), 15)
            + Self.padded(Self.tenths(placedTime), 13) + Self.padded(Self.tenths(plainTime), 10)
            + Self.padded(Self.tenths(placedTime / plainTime), 8)
            + (allocations.map(Self.tenths) ?? "unknown")
    }

    private static func nanoseconds(_ duration: Duration) -> Double {
        let (seconds, attoseconds) = duration.components
        return Double(seconds) * 1e9 + Double(attoseconds) / 1e9
    }

    private static func tenths(_ value: Double) -> String {
        value.isFinite ? "\((value * 10).rounded() / 10)" : "–"
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(1, width - text.count))
    }
}

/// A predicate and the plain loop that decides the same.
struct PredicateBenchMeasure {
    let name: String
    let predicate: RecordPredicate
    /// Compares the values of one row in plain Swift.
    let plain: (PredicateBenchTable, Int) -> Bool

    func row(on table: PredicateBenchTable, rounds: Int) throws -> PredicateBenchRow {
        var layout = FieldLayout()
        let prepared = try PreparedPredicate(predicate, layout: &layout)
        let rows = table.rows.map(layout.row)
        var comparisons = 0
        for fields in table.rows {
            comparisons += prepared.trace(onValue: .map(fields)).comparisons.count
        }
        var count = 0
        let evaluated = Self.least {
            for _ in 0..<rounds {
                for index in table.rows.indices
                where prepared.evaluate(on: table.rows[index]) == .true { count += 1 }
            }
        }
        var placedCount = 0
        let placed = Self.least {
            for _ in 0..<rounds {
                for index in rows.indices where prepared.evaluate(on: rows[index]) == .true {
                    placedCount += 1
                }
            }
        }
        var plainCount = 0
        let plain = Self.least {
            for _ in 0..<rounds {
                for index in table.rows.indices where self.plain(table, index) { plainCount += 1 }
            }
        }
        guard count == plainCount, placedCount == plainCount else {
            throw ValidationError(
                "\(name): \(count) and \(placedCount) records, by the plain loop \(plainCount)")
        }
        let allocations = AllocationCount.during {
            for fields in table.rows { _ = prepared.evaluate(on: fields) }
        }
        return PredicateBenchRow(
            name: name, comparisons: comparisons * rounds, evaluated: evaluated, placed: placed,
            plain: plain,
            evaluations: table.rows.count * rounds,
            allocations: allocations.map { Double($0) / Double(table.rows.count) })
    }

    private static func least(of times: Int = 5, _ body: () -> Void) -> Duration {
        let clock = ContinuousClock()
        return (0..<times).map { _ in clock.measure(body) }.min() ?? .zero
    }
}
