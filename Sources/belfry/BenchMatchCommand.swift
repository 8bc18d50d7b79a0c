import ArgumentParser
import Foundation
import Matching
import PredicateLanguage
import RelayModel

/// `belfry bench match`: how fast the index is, beside a naive scan and a hash-probe lower bound.
struct BenchMatchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "match",
        abstract: "Measure matching on seven shapes of predicates.",
        discussion: """
            Throughput is changes per second of this thread's processor time, decoded changes in, \
            sorted serials out; the naive scan runs the reference evaluator, the lower bound a \
            static hash table on bare memory made for the workload, both in the same process \
            over the same subscriptions. Memory is what the index accounts for itself.
            """)

    @Option(help: "The shapes: letters out of a to g.")
    var shapes = "abcdefg"

    @Option(help: "Numbers of subscriptions, separated by commas.")
    var counts = "1000,10000,100000,1000000"

    @Option(help: "The seed of the workload.")
    var seed: UInt64 = 1

    @Option(help: "Changes in a workload.")
    var changes = 20_000

    mutating func validate() throws {
        guard (100...1_000_000).contains(changes) else {
            throw ValidationError("--changes: 100 to 1000000 is expected")
        }
        guard shapes.allSatisfy({ WorkloadShape(rawValue: String($0)) != nil }) else {
            throw ValidationError("--shapes: letters out of a to g are expected")
        }
        guard numbers.allSatisfy({ (1...20_000_000).contains($0) }), !numbers.isEmpty else {
            throw ValidationError("--counts: numbers from 1 to 20000000 are expected")
        }
    }

    private var numbers: [Int] {
        counts.split(separator: ",").map { Int($0) ?? 0 }
    }

    mutating func run() throws {
        print(BenchRow.heading)
        for count in numbers {
            for letter in shapes {
                guard let shape = WorkloadShape(rawValue: String(letter)),
                    let workload = BenchWorkload(shape: shape, count: count, seed: seed)
                else { continue }
                var bench = MatchBench(workload: workload, changes: changes)
                print(bench.run().text)
            }
        }
    }
}

/// One line of the table.
struct BenchRow {
    static let heading = """
        | shape | N | matches | changes/s | lower bound | ratio | naive/s | p50 µs | p99 µs | \
        bytes | build µs | insert µs | remove µs | decode µs | verified/candidates |
        |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
        """

    var shape = WorkloadShape.a
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

    var text: String {
        let cells: [String] = [
            shape.rawValue, "\(count)", format(matches, 1), format(throughput, 0),
            format(bound, 0), format(throughput / bound, 2), format(naive, 0),
            format(latency.median, 2), format(latency.ninetyNinth, 2), format(bytes, 1),
            format(build, 2), format(insert, 2), format(remove, 2), format(decode, 2),
            format(confirmed, 2),
        ]
        return "| " + cells.joined(separator: " | ") + " |"
    }

    private func format(_ number: Double, _ digits: Int) -> String {
        String(format: "%.\(digits)f", number)
    }
}

/// Measures one shape at one size.
struct MatchBench {
    private var workload: BenchWorkload
    private let subscriptions: [IndexedSubscription]
    private let changes: [RecordChange]
    private let index = SubscriptionIndex(seed: 0x5EED_5EED)

    init(workload: BenchWorkload, changes: Int) {
        self.workload = workload
        var source = workload
        subscriptions = (0..<workload.count).map { source.subscription($0) }
        self.changes = (0..<changes).map { _ in source.change() }
    }

    mutating func run() -> BenchRow {
        var row = BenchRow()
        row.shape = workload.shape
        row.count = workload.count
        let perSubscription = 1e6 / Double(workload.count)
        row.build = seconds { for one in subscriptions { index.insert(one) } } * perSubscription
        row.bytes = Double(index.statistics.bytes) / Double(workload.count)
        row.decode = decodeTime()
        let decoded = decodeAll()
        let before = index.statistics
        measureMatches(decoded, &row)
        let after = index.statistics
        let candidates = Double(after.candidates - before.candidates)
        row.confirmed =
            candidates == 0 ? 1 : Double(after.confirmed - before.confirmed) / candidates
        measureEdits(&row)
        row.bound = boundThroughput()
        row.naive = naiveThroughput()
        return row
    }

    private func decodeTime() -> Double {
        let scratch = DecodedChange()
        let sample = changes.prefix(20_000)
        let spent = seconds { for change in sample { index.decode(change, into: scratch) } }
        return spent * 1e6 / Double(sample.count)
    }

    private func decodeAll() -> [DecodedChange] {
        changes.map { change in
            let decoded = DecodedChange()
            index.decode(change, into: decoded)
            decoded.compact()
            return decoded
        }
    }

    private func measureMatches(_ decoded: [DecodedChange], _ row: inout BenchRow) {
        var serials: [UInt64] = []
        var total = 0
        var latencies: [Double] = []
        let clock = ContinuousClock()
        for change in decoded {
            let start = clock.now
            index.matches(for: change, into: &serials)
            latencies.append((clock.now - start).inSeconds * 1e6)
            total += serials.count
        }
        row.matches = Double(total) / Double(decoded.count)
        latencies.sort()
        row.latency = (latencies[latencies.count / 2], latencies[latencies.count * 99 / 100])
        row.throughput = throughput(decoded.count) {
            index.matches(for: decoded[$0], into: &serials)
        }
    }

    /// A fifth of the subscriptions is taken out and put in again.
    private func measureEdits(_ row: inout BenchRow) {
        let part = stride(from: 0, to: subscriptions.count, by: 5).map { subscriptions[$0] }
        let scale = 1e6 / Double(part.count)
        row.remove = seconds { for one in part { index.remove(serial: one.serial) } } * scale
        row.insert = seconds { for one in part { index.insert(one) } } * scale
    }

    private func boundThroughput() -> Double {
        let bound = HashProbeBound(subscriptions.lazy.compactMap(\.predicate))
        let prepared = changes.map { bound.change($0.after?.fields ?? [:]) }
        var matches = 0
        let found = throughput(prepared.count) { matches &+= bound.match(prepared[$0]) }
        return matches > 0 ? found : 0
    }

    private func naiveThroughput() -> Double {
        guard var matcher = try? ReferenceMatcher(Array(subscriptions.prefix(100_000))) else {
            return 0
        }
        matcher.prepare(changes)
        var serials: [UInt64] = []
        var done = 0
        let spent = seconds {
            let start = ProcessorTime.now
            while done < changes.count, ProcessorTime.now - start < 0.3 {
                matcher.match(done, into: &serials)
                done += 1
            }
        }
        let scanned = Double(min(subscriptions.count, 100_000)) / Double(subscriptions.count)
        return Double(done) / spent * scanned
    }

    /// Rounds over all changes until enough time has passed; the best of three measurements.
    private func throughput(_ count: Int, _ body: (Int) -> Void) -> Double {
        var best = 0.0
        for _ in 0..<3 {
            var done = 0
            let start = ProcessorTime.now
            var spent = 0.0
            while spent < 0.3 {
                for index in 0..<count { body(index) }
                done += count
                spent = ProcessorTime.now - start
            }
            best = max(best, Double(done) / spent)
        }
        return best
    }

    private func seconds(_ body: () -> Void) -> Double {
        let start = ProcessorTime.now
        body()
        return ProcessorTime.now - start
    }
}

/// The processor time of this thread, so that a busy machine does not count.
enum ProcessorTime {
    static var now: Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) * 1e-9
    }
}
