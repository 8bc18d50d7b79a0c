import Delivery
import RelayModel

/// Counters since the start, and current levels, at one moment.
struct SeriesReading: Sendable {
    /// The number of changes that were judged.
    var changes: UInt64 = 0
    /// The number of subscriptions that they fired.
    var matches: UInt64 = 0
    var totals = DeliveryTotals()
    /// The number of log entries that are not settled.
    var behind: UInt64 = 0
    /// The number of deliveries in the window.
    var inFlight = 0
    /// The number of retries.
    var waiting = 0
    var halts = 0
}

/// The measurements of the last hour in steps, one row for each; the oldest rows are dropped.
///
/// It is a value: the caller passes in the readings and the times.
struct SeriesRing: Sendable {
    /// The columns of a row, in order.
    static let columns = [
        "at", "changes", "matches", "pushes", "accepted", "retries", "deadLetters", "behind",
        "inFlight", "waiting", "halts", "latencyMedian", "latencyHigh", "delayMedian", "delayHigh",
    ]

    /// The measurements of one step.
    struct Row: Sendable {
        /// The end of the step.
        let at: Timestamp
        /// The other columns; `nil` where nothing was measured.
        let values: [Double?]
    }

    /// The maximum number of rows: those of one hour.
    let most: Int
    private var rows: [Row] = []
    /// The number of the oldest row that is kept, from 1.
    private var first: UInt64 = 1
    private var last: SeriesReading?

    init(most: Int) {
        self.most = most
    }

    /// The number of the newest row; 0 before the first.
    var newest: UInt64 { first + UInt64(rows.count) - 1 }

    /// Adds a row for a reading at the end of a step that took `seconds`.
    mutating func take(_ reading: SeriesReading, at now: Timestamp, after seconds: Double) {
        defer { last = reading }
        guard let last, seconds > 0 else { return }
        if rows.count == most {
            rows.removeFirst()
            first += 1
        }
        rows.append(Row(at: now, values: reading.values(since: last, seconds: seconds)))
    }

    /// Returns the rows after a number, in order.
    func rows(after number: UInt64) -> ArraySlice<Row> {
        guard number >= first else { return rows[...] }
        return rows.dropFirst(Int(clamping: number - first + 1))
    }
}

extension SeriesReading {
    /// Returns the columns after `at`: events a second since `earlier`, and current levels.
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
