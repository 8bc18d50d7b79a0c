import ArgumentParser
import Foundation

/// The command `bench match`, which compares the index with a naive scan and a hash-probe lower
/// bound.
struct BenchMatchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "match",
        abstract: "Measure matching on seven shapes of predicates.",
        discussion: """
            Throughput is changes per second of this thread's processor time, decoded changes in, \
            sorted serials out, the median of several rounds over all changes; a change is decoded \
            shortly before it is matched, as a relay does. The naive scan runs the reference \
            evaluator, the lower bound a static hash table on bare memory made for the workload, \
            which takes turns with the index in the same rounds. build is the mean of all \
            inserts into the growing index, each predicate made shortly before; insert and remove \
            are medians of single edits by the clock on the wall while another thread matches \
            without a pause. Memory is what the index accounts for itself. In another dialect \
            the conditions are written and read as a save would; an index of the same conditions \
            as NSPredicates takes turns with it, and the last column is the ratio of the two \
            throughputs. What a dialect has no word for is left out: shape e of ckquery, f of \
            where, and of the mixture g, in both indexes, the conditions of these kinds.
            """)

    @Option(help: "The shapes: letters out of a to g.")
    var shapes = "abcdefg"

    @Option(help: "The dialects, separated by commas: nspredicate, ckquery, rql, where.")
    var dialects = "nspredicate"

    @Option(help: "Numbers of subscriptions, separated by commas.")
    var counts = "1000,10000,100000,1000000"

    @Option(help: "The seed of the workload.")
    var seed: UInt64 = 1

    @Option(help: "Changes in a workload.")
    var changes = 20_000

    @Flag(
        help: ArgumentHelp(
            "What ordinary changes cost beside hostile predicates.",
            discussion: """
                In place of the shapes: the mixture g, and beside it what somebody saves whose \
                predicates no key finds, up to the limits of their cost, against the bound on \
                programs run for a change.
                """))
    var hostile = false

    mutating func validate() throws {
        guard (100...1_000_000).contains(changes) else {
            throw ValidationError("--changes: 100 to 1000000 is expected")
        }
        guard shapes.allSatisfy({ WorkloadShape(rawValue: String($0)) != nil }) else {
            throw ValidationError("--shapes: letters out of a to g are expected")
        }
        guard !writers.isEmpty, writers.count == dialects.split(separator: ",").count else {
            let names = WorkloadDialect.allCases.map(\.rawValue).joined(separator: ", ")
            throw ValidationError("--dialects: \(names) are expected")
        }
        guard numbers.allSatisfy({ (1...20_000_000).contains($0) }), !numbers.isEmpty else {
            throw ValidationError("--counts: numbers from 1 to 20000000 are expected")
        }
    }

    private var numbers: [Int] {
        counts.split(separator: ",").map { Int($0) ?? 0 }
    }

    private var writers: [DialectWriter] {
        dialects.split(separator: ",").compactMap { WorkloadDialect(rawValue: String($0)) }
            .map(DialectWriter.init)
    }

    mutating func run() throws {
        if hostile {
            for count in numbers {
                HostileBench(count: count, seed: seed, changeCount: changes)?.run()
            }
            return
        }
        print(BenchRow.heading)
        for count in numbers {
            for letter in shapes {
                guard let shape = WorkloadShape(rawValue: String(letter)),
                    var workload = BenchWorkload(shape: shape, count: count, seed: seed)
                else { continue }
                for writer in writers where writer.says(shape) {
                    workload.writer = writer
                    var bench = MatchBench(workload: workload, changeCount: changes)
                    print(bench.run().text)
                }
            }
        }
    }
}

/// One line of the table.
struct BenchRow {
    static let heading = """
        | shape | dialect | N | matches | changes/s | lower bound | ratio | naive/s | p50 µs | \
        p99 µs | p99/p50 | bytes | build µs | insert µs | remove µs | decode µs | \
        verified/candidates | to NSPredicate |
        |---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
        """

    var shape = WorkloadShape.a
    var dialect = WorkloadDialect.nspredicate
    var count = 0
    var matches = 0.0
    var throughput = 0.0
    var bound = 0.0
    var naive = 0.0
    var latency = (median: 0.0, ninetyNinth: 0.0)
    var bytes = 0.0
    var build = 0.0
    var insert = 0.0
    var remove = 0.0
    var decode = 0.0
    var confirmed = 0.0
    /// The throughput divided by that of the same conditions as NSPredicates; 0 for NSPredicates.
    var ratio = 0.0

    var text: String {
        let cells: [String] = [
            shape.rawValue, dialect.rawValue, "\(count)", format(matches, 1), format(throughput, 0),
            format(bound, 0), format(throughput / bound, 2), format(naive, 0),
            format(latency.median, 2), format(latency.ninetyNinth, 2),
            format(latency.ninetyNinth / latency.median, 1), format(bytes, 1), format(build, 2),
            format(insert, 2), format(remove, 2), format(decode, 2),
            format(confirmed, 2), ratio == 0 ? "–" : format(ratio, 2),
        ]
        return "| " + cells.joined(separator: " | ") + " |"
    }

    private func format(_ number: Double, _ digits: Int) -> String {
        String(format: "%.\(digits)f", number)
    }
}
