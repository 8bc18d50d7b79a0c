import Delivery
import RelayModel

/// What was counted since the start, and how high things stand, at one moment.
struct SeriesReading: Sendable {
    /// Changes that were judged.
    var changes: UInt64 = 0
    /// Subscriptions that they fired.
    var matches: UInt64 = 0
    var totals = DeliveryTotals()
    /// Entries of the log that are not settled.
    var behind: UInt64 = 0
    /// Deliveries in the window.
    var inFlight = 0
    /// Retries that wait.
    var waiting = 0
    var halts = 0
}

/// How the last hour went, in steps: a row for each, the oldest make room.
///
/// A value, which is told what is read and when.
struct SeriesRing: Sendable {
    /// The columns of a row, in order.
    static let columns = [
        "at", "changes", "matches", "pushes", "accepted", "retries", "deadLetters", "behind",
        "inFlight", "waiting", "halts", "latencyMedian", "latencyHigh", "delayMedian", "delayHigh",
    ]

    /// How the relay did in one step.
    struct Row: Sendable {
        /// The end of the step.
        let at: Timestamp
        /// The other columns; nothing where nothing was measured.
        let values: [Double?]
    }

    /// The rows that are kept: an hour of them.
    let most: Int
    private var rows: [Row] = []
    /// The number of the first row that is kept, from 1.
    private var first: UInt64 = 1
    private var last: SeriesReading?

    init(most: Int) {
        self.most = most
    }

    /// The number of the newest row; 0 before the first.
    var newest: UInt64 { first + UInt64(rows.count) - 1 }

    /// Takes what is read at the end of a step that took `seconds`.
    mutating func take(_ reading: SeriesReading, at now: Timestamp, after seconds: Double) {
        defer { last = reading }
        guard let last, seconds > 0 else { return }
        if rows.count == most {
            rows.removeFirst()
            first += 1
        }
        rows.append(Row(at: now, values: reading.values(since: last, seconds: seconds)))
    }

    /// The rows after a number, in order.
    func rows(after number: UInt64) -> ArraySlice<Row> {
        guard number >= first else { return rows[...] }
        return rows.dropFirst(Int(clamping: number - first + 1))
    }
}

extension SeriesReading {
    /// The columns besides the moment: what happened in a second, and how high things stand.
    func values(since earlier: SeriesReading, seconds: Double) -> [Double?] {
        func rate(_ now: UInt64, _ before: UInt64) -> Double {
            (Double(now &- before) / seconds * 1000).rounded() / 1000
        }
        func milliseconds(_ buckets: LatencyBuckets, _ share: Double) -> Double? {
            buckets.quantile(share).map { ($0 * 1_000_000).rounded() / 1000 }
        }
        let latencies = totals.latencies.since(earlier.totals.latencies)
        let delays = totals.delays.since(earlier.totals.delays)
        return [
            rate(changes, earlier.changes), rate(matches, earlier.matches),
            rate(totals.attempts, earlier.totals.attempts),
            rate(totals.accepted, earlier.totals.accepted),
            rate(totals.retries, earlier.totals.retries),
            rate(totals.deadLetters, earlier.totals.deadLetters), Double(behind),
            Double(inFlight), Double(waiting), Double(halts), milliseconds(latencies, 0.5),
            milliseconds(latencies, 0.99), milliseconds(delays, 0.5), milliseconds(delays, 0.99),
        ]
    }
}
