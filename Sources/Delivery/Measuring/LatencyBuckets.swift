/// A histogram of durations with four buckets for each octave, so a quantile is accurate within a
/// fifth.
package struct LatencyBuckets: Sendable, Hashable {
    /// The number of buckets, from a microsecond to beyond an hour.
    private static let count = 32 * 4

    private var counts: [UInt32]

    /// Creates a histogram in which nothing is counted yet.
    package init() {
        counts = Array(repeating: 0, count: Self.count)
    }

    /// Counts one duration.
    package mutating func add(_ duration: Duration) {
        counts[Self.bucket(of: duration)] &+= 1
    }

    /// Returns what was counted here and not in `earlier`, which is an earlier copy of this
    /// histogram.
    package func since(_ earlier: LatencyBuckets) -> LatencyBuckets {
        var difference = self
        for index in counts.indices { difference.counts[index] &-= earlier.counts[index] }
        return difference
    }

    /// Returns the duration, in seconds, that `share` of the counted durations did not exceed.
    ///
    /// Returns `nil` if nothing was counted.
    package func quantile(_ share: Double) -> Double? {
        let all = counts.reduce(UInt64(0)) { $0 + UInt64($1) }
        guard all > 0 else { return nil }
        let rank = max(1, (Double(all) * share).rounded(.up))
        var seen: UInt64 = 0
        for (index, count) in counts.enumerated() {
            seen += UInt64(count)
            if Double(seen) >= rank { return Self.end(of: index) / 1_000_000 }
        }
        return nil
    }

    /// Returns the bucket of a duration: the octave of its microseconds, and the two bits below the
    /// highest one.
    private static func bucket(of duration: Duration) -> Int {
        let (seconds, attoseconds) = duration.components
        guard seconds < 1 << 30, seconds >= 0 else { return seconds < 0 ? 0 : count - 1 }
        let micros = UInt64(seconds) * 1_000_000 + UInt64(max(0, attoseconds / 1_000_000_000_000))
        guard micros >= 4 else { return Int(micros) }
        let octave = 63 - micros.leadingZeroBitCount
        let quarter = Int(micros >> (octave - 2)) & 3
        return min(count - 1, octave * 4 + quarter)
    }

    /// Returns the first number of microseconds beyond a bucket.
    private static func end(of index: Int) -> Double {
        guard index >= 8 else { return Double(index + 1) }
        let octave = index / 4
        return Double(UInt64(4 + index % 4 + 1) << UInt64(octave - 2))
    }
}
