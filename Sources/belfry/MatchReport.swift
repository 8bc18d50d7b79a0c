import FoundationEssentials
import Matching
import RegularExpressions
import RelayModel

/// Decides which subscriptions a change fires.
protocol ChangeMatcher {
    /// The bytes in use.
    var bytes: Int { get }
    /// Takes the changes, and decodes them if the engine needs that.
    mutating func prepare(_ changes: [RecordChange])
    /// Returns the microseconds for decoding one change; `nil` if there is nothing to decode.
    func decodeMicroseconds(_ changes: [RecordChange]) -> Double?
    /// Writes the serials that the change with this number fires to `serials`, ascending.
    mutating func match(_ index: Int, into serials: inout [UInt64])
}

/// The index.
struct IndexMatcher: ChangeMatcher {
    private let index: SubscriptionIndex
    private var decoded: [DecodedChange] = []

    init(_ subscriptions: [IndexedSubscription]) {
        index = SubscriptionIndex(seed: UInt64.random(in: 1 ... .max))
        index.insert(contentsOf: subscriptions)
    }

    var bytes: Int { index.statistics.bytes }

    mutating func prepare(_ changes: [RecordChange]) {
        decoded = changes.map { change in
            let decoded = DecodedChange()
            index.decode(change, into: decoded)
            decoded.compact()
            return decoded
        }
    }

    func decodeMicroseconds(_ changes: [RecordChange]) -> Double? {
        let sample = changes.prefix(20_000)
        let scratch = DecodedChange()
        let start = ThreadTime.seconds
        for change in sample { index.decode(change, into: scratch) }
        return (ThreadTime.seconds - start) * 1e6 / Double(max(sample.count, 1))
    }

    mutating func match(_ number: Int, into serials: inout [UInt64]) {
        index.matches(for: decoded[number], into: &serials)
    }
}

/// The slow evaluator, which tests each subscription.
struct ReferenceMatcher: ChangeMatcher {
    private let scan: ReferenceScan
    private var changes: [RecordChange] = []

    init(_ subscriptions: [IndexedSubscription]) throws {
        scan = try ReferenceScan(subscriptions)
    }

    var bytes: Int { 0 }

    mutating func prepare(_ changes: [RecordChange]) {
        self.changes = changes
    }

    func decodeMicroseconds(_ changes: [RecordChange]) -> Double? { nil }

    mutating func match(_ number: Int, into serials: inout [UInt64]) {
        scan.matches(for: changes[number], into: &serials)
    }
}

/// The measurements that `belfry match` prints.
struct MatchReport {
    let subscriptions: Int
    let refused: Int
    let changes: Int
    var matches = 0
    var buildSeconds = 0.0
    var bytesPerSubscription = 0.0
    var parseSeconds = 0.0
    var decodeMicroseconds: Double?
    private var changesPerSecond = 0.0
    private var changesPerWallSecond = 0.0
    private var percentiles = (median: 0.0, ninetyNinth: 0.0, most: 0.0)

    init(subscriptions: Int, refused: Int, changes: Int) {
        self.subscriptions = subscriptions
        self.refused = refused
        self.changes = changes
    }

    mutating func finish(
        latencies: [Double], seconds: Double, wallSeconds: Double, count: Int
    ) {
        changesPerSecond = seconds > 0 ? Double(count) / seconds : 0
        changesPerWallSecond = wallSeconds > 0 ? Double(count) / wallSeconds : 0
        let sorted = latencies.sorted()
        guard let most = sorted.last else { return }
        percentiles = (sorted[sorted.count / 2], sorted[sorted.count * 99 / 100], most)
    }

    var json: JSONValue {
        var object: JSONObject = [
            "subscriptions": .integer(Int64(subscriptions)), "refused": .integer(Int64(refused)),
            "changes": .integer(Int64(changes)), "matches": .integer(Int64(matches)),
            "buildSeconds": .number(buildSeconds),
            "bytesPerSubscription": .number(bytesPerSubscription),
            "changesPerSecond": .number(changesPerSecond.rounded()),
            "changesPerWallSecond": .number(changesPerWallSecond.rounded()),
            "p50Microseconds": .number(percentiles.median),
            "p99Microseconds": .number(percentiles.ninetyNinth),
            "maxMicroseconds": .number(percentiles.most),
            "parseChangesSeconds": .number(parseSeconds),
        ]
        object["decodeMicroseconds"] = decodeMicroseconds.map { .number($0) }
        return .object(object)
    }
}

/// Writes `{"id":…,"matches":[…]}` lines.
struct MatchOutput {
    private let file: FileStream
    private var buffer: [UInt8] = []

    init(path: String) throws {
        do {
            file = try FileStream(writing: path)
        } catch {
            throw OutputFile.failure(error, path)
        }
    }

    mutating func write(_ name: JSONValue, _ ids: [LineID]) throws {
        let line: JSONValue = ["id": name, "matches": .array(ids.map(\.json))]
        buffer.append(contentsOf: "\(line.text)\n".utf8)
        if buffer.count > 1 << 20 { try flush() }
    }

    mutating func close() throws {
        try flush()
    }

    private mutating func flush() throws {
        try file.write(buffer)
        buffer.removeAll(keepingCapacity: true)
    }
}
