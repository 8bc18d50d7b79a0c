import Foundation
import Matching
import PredicateLanguage
import RelayModel
import Synchronization

/// Measures one shape at one size.
struct MatchBench {
    private let workload: BenchWorkload
    private let changeCount: Int
    private let index = SubscriptionIndex(seed: 0x5EED_5EED)
    /// The index of the same conditions as NSPredicates, if the workload is in another dialect.
    private let plainIndex: SubscriptionIndex?
    private var changes: [RecordChange] = []
    /// Decoded changes, as a relay matches them.
    private let decoded = (0..<MatchBench.batch).map { _ in DecodedChange() }

    /// The number of subscriptions or changes that are made and then used, few enough to stay in
    /// the cache.
    private static let batch = 128
    /// The number of measured rounds, whose median counts; one more comes first as a warm-up.
    private static let rounds = 7

    init(workload: BenchWorkload, changeCount: Int) {
        self.workload = workload
        self.changeCount = changeCount
        let isPlain = workload.writer.dialect == .nspredicate
        plainIndex = isPlain ? nil : SubscriptionIndex(seed: 0x5EED_5EED)
    }

    mutating func run() -> BenchRow {
        var row = BenchRow()
        row.shape = workload.shape
        row.count = workload.count
        row.dialect = workload.writer.dialect
        build(&row)
        buildPlain()
        row.bytes = Double(index.statistics.bytes) / Double(workload.count)
        row.decode = decodeTime()
        let bound = HashProbeBound(Predicates(workload: plainWorkload))
        measureMatches(bound, &row)
        measureEdits(&row)
        row.naive = naiveThroughput()
        return row
    }

    // MARK: Building

    private mutating func build(_ row: inout BenchRow) {
        var source = workload
        var spent = 0.0
        for first in stride(from: 0, to: workload.count, by: Self.batch) {
            let batch = (first..<min(first + Self.batch, workload.count)).map {
                source.subscription($0)
            }
            spent += seconds { for one in batch { index.insert(one) } }
        }
        row.build = spent * 1e6 / Double(workload.count)
        changes = (0..<changeCount).map { _ in source.change() }
    }

    /// The workload as NSPredicates, without conditions that the other dialect cannot express.
    private var plainWorkload: BenchWorkload {
        var plain = workload
        plain.spares = workload.writer
        plain.writer = DialectWriter(dialect: .nspredicate)
        return plain
    }

    private func buildPlain() {
        guard let plainIndex else { return }
        var source = plainWorkload
        for number in 0..<workload.count { plainIndex.insert(source.subscription(number)) }
    }

    private func decodeTime() -> Double {
        let scratch = DecodedChange()
        let sample = changes.prefix(20_000)
        let spent = seconds { for change in sample { index.decode(change, into: scratch) } }
        return spent * 1e6 / Double(sample.count)
    }

    // MARK: Matching

    private func measureMatches(_ bound: HashProbeBound, _ row: inout BenchRow) {
        let prepared = changes.map { bound.change($0.after?.fields ?? [:]) }
        var serials: [UInt64] = []
        var (ours, bounds, found) = ([Double](), [Double](), 0)
        var ratios: [Double] = []
        var (medians, ninetyNinths) = ([Double](), [Double]())
        let before = index.statistics
        for round in 0...Self.rounds {
            let spent = batches(index) { index.matches(for: decoded[$0 - $1], into: &serials) }
            if let plainIndex {
                let plain = batches(plainIndex) {
                    plainIndex.matches(for: decoded[$0 - $1], into: &serials)
                }
                ratios.append(plain / spent)
            }
            ours.append(Double(changes.count) / spent)
            bounds.append(
                Double(changes.count)
                    / boundBatches(bound, prepared) { found &+= bound.match(prepared[$0]) })
            let (latencies, total) = latencies(&serials)
            row.matches = Double(total) / Double(changes.count)
            if round == 0 {
                ours.removeAll()
                bounds.removeAll()
                ratios.removeAll()
                continue
            }
            medians.append(latencies[latencies.count / 2])
            ninetyNinths.append(latencies[latencies.count * 99 / 100])
        }
        let after = index.statistics
        let candidates = Double(after.candidates - before.candidates)
        row.confirmed =
            candidates == 0 ? 1 : Double(after.confirmed - before.confirmed) / candidates
        row.throughput = median(ours)
        row.ratio = ratios.isEmpty ? 0 : median(ratios)
        row.bound = found > 0 ? median(bounds) : 0
        row.latency = (median(medians), median(ninetyNinths))
    }

    /// Decodes all changes in batches and calls `body` for each; returns the seconds of the calls
    /// alone.
    private func batches(
        _ index: SubscriptionIndex, _ body: (_ index: Int, _ first: Int) -> Void
    ) -> Double {
        var spent = 0.0
        for first in stride(from: 0, to: changes.count, by: Self.batch) {
            let range = first..<min(first + Self.batch, changes.count)
            for number in range { index.decode(changes[number], into: decoded[number - first]) }
            spent += seconds { for number in range { body(number, first) } }
        }
        return spent
    }

    /// Calls `body` for the prepared changes of the lower bound; returns the seconds of the calls
    /// alone.
    ///
    /// The keys of each batch are loaded into the cache first.
    private func boundBatches(
        _ bound: HashProbeBound, _ prepared: [HashProbeBound.Change], _ body: (Int) -> Void
    ) -> Double {
        var (spent, touched) = (0.0, UInt64(0))
        for first in stride(from: 0, to: prepared.count, by: Self.batch) {
            let range = first..<min(first + Self.batch, prepared.count)
            for number in range { touched &+= bound.touch(prepared[number]) }
            spent += seconds { for number in range { body(number) } }
        }
        return touched == .max ? 0 : spent
    }

    /// Returns the microseconds of every match, ascending, and the number of matches.
    private func latencies(_ serials: inout [UInt64]) -> ([Double], Int) {
        let clock = ContinuousClock()
        var (latencies, total) = ([Double](), 0)
        latencies.reserveCapacity(changes.count)
        _ = batches(index) { number, first in
            let start = clock.now
            index.matches(for: decoded[number - first], into: &serials)
            latencies.append((clock.now - start) / .microseconds(1))
            total += serials.count
        }
        latencies.sort()
        return (latencies, total)
    }

    // MARK: Edits

    /// Removes a fifth of the subscriptions and inserts them again, in batches, while another
    /// thread matches.
    private func measureEdits(_ row: inout BenchRow) {
        var (inserts, removes) = ([Double](), [Double]())
        let clock = ContinuousClock()
        let reader = MatchingReader(index, Array(changes.prefix(2000)))
        var source = workload
        var batch: [IndexedSubscription] = []
        for number in 0..<workload.count {
            let one = source.subscription(number)
            if number % 5 == 0 { batch.append(one) }
            guard batch.count == Self.batch || number + 1 == workload.count else { continue }
            for one in batch {
                let start = clock.now
                index.remove(serial: one.serial)
                removes.append((clock.now - start) / .microseconds(1))
            }
            for one in batch {
                let start = clock.now
                index.insert(one)
                inserts.append((clock.now - start) / .microseconds(1))
            }
            batch.removeAll(keepingCapacity: true)
        }
        reader.stop()
        (row.insert, row.remove) = (median(inserts), median(removes))
    }

    // MARK: Yardsticks

    private func naiveThroughput() -> Double {
        let part = min(workload.count, 100_000)
        var source = workload
        let subscriptions = (0..<part).map { source.subscription($0) }
        guard let scan = try? ReferenceScan(subscriptions) else { return 0 }
        var serials: [UInt64] = []
        var done = 0
        let spent = seconds {
            let start = ThreadTime.seconds
            while done < changes.count, ThreadTime.seconds - start < 0.3 {
                scan.matches(for: changes[done], into: &serials)
                done += 1
            }
        }
        return Double(done) / spent * Double(part) / Double(workload.count)
    }

    private func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

    private func seconds(_ body: () -> Void) -> Double {
        let start = ThreadTime.seconds
        body()
        return ThreadTime.seconds - start
    }

    /// The predicates of a workload, generated once more.
    private struct Predicates: Sequence, IteratorProtocol {
        var workload: BenchWorkload
        var number = 0

        mutating func next() -> RecordPredicate? {
            if number == workload.count { return nil }
            number += 1
            return workload.subscription(number - 1).predicate
        }
    }
}

/// A thread that matches changes without a pause until it is stopped.
final class MatchingReader: Sendable {
    private let isStopped = Atomic(false)
    private let ended = DispatchSemaphore(value: 0)

    init(_ index: SubscriptionIndex, _ changes: [RecordChange]) {
        Thread.detachNewThread { [self] in
            let decoded = changes.map { change in
                let decoded = DecodedChange()
                index.decode(change, into: decoded)
                decoded.compact()
                return decoded
            }
            var serials: [UInt64] = []
            var number = 0
            while !isStopped.load(ordering: .relaxed) {
                index.matches(for: decoded[number % decoded.count], into: &serials)
                number += 1
            }
            ended.signal()
        }
    }

    /// Waits until the last match is done.
    func stop() {
        isStopped.store(true, ordering: .relaxed)
        ended.wait()
    }
}
