/// How many dedupe keys the store remembers for each container, about.
///
/// Counting all of them each time would read gigabytes, and a count that is written with each
/// change would cost a row of its own. So upkeep counts what has come since it counted last. Keys
/// are counted in bins by the moment at which they end, so that those that have ended need not be
/// counted again.
///
/// This is a pure value.
struct RememberedKeys: Sendable {
    /// The keys of one container that end in one bin.
    struct Found: Sendable, Hashable {
        let container: Int64
        /// The moments of the bin, divided by their number.
        let bin: Int64
        let count: Int
    }

    /// The number of bins into which the window is divided.
    private static let binsOfWindow: Int64 = 64
    /// The number of parts in which the keys of a window are counted, so that each part is read
    /// quickly.
    private static let partsOfWindow: Int64 = 1024

    /// How many moments one bin has.
    let width: Int64
    /// How many moments are counted at once.
    let part: Int64
    /// The first moment that is not counted yet.
    private(set) var next = Int64.min
    private var bins: [Int64: [Int64: Int]] = [:]

    /// Creates a count of no keys, which are remembered for `window` nanoseconds.
    init(window: Int64) {
        width = max(1, window / Self.binsOfWindow)
        part = max(1, window / Self.partsOfWindow)
    }

    /// Adds keys that end before the moment `next`.
    mutating func add(_ found: [Found], next: Int64) {
        for some in found { bins[some.container, default: [:]][some.bin, default: 0] += some.count }
        self.next = next
    }

    /// Forgets the bins of keys that have all ended.
    mutating func end(at now: Int64) {
        let first = now / width
        bins = bins.compactMapValues { bins in
            let left = bins.filter { $0.key >= first }
            return left.isEmpty ? nil : left
        }
    }

    /// Returns the containers that have more than `most` keys, with the numbers beyond that.
    func surpluses(beyond most: Int) -> [(container: Int64, count: Int)] {
        bins.map { ($0.key, $0.value.values.reduce(0, +) - most) }
            .filter { $0.1 > 0 }
            .sorted { $0.0 < $1.0 }
            .map { (container: $0.0, count: $0.1) }
    }

    /// Subtracts a container's oldest keys.
    mutating func remove(_ count: Int, of container: Int64) {
        var rest = count
        for (bin, keys) in (bins[container] ?? [:]).sorted(by: { $0.key < $1.key }) where rest > 0 {
            let gone = min(rest, keys)
            rest -= gone
            bins[container]?[bin] = keys == gone ? nil : keys - gone
        }
    }
}
