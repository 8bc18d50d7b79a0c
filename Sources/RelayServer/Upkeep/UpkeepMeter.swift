import CoreMetrics
import Metrics
import RelayModel
import Storage
import Synchronization

/// Records the observations of upkeep as metrics.
final class UpkeepMeter: Sendable {
    /// The result of one check of the bounds.
    struct Watch: Sendable {
        let lag: UInt64
        let backlog: Backlog
        let footprint: StoreFootprint
        let memory: Int
        let reached: Set<IntakeBound>
    }

    private let lag: Gauge
    private let retries: Gauge
    private let ranges: Gauge
    private let quarantined: Gauge
    private let file: Gauge
    private let wal: Gauge
    private let memory: Gauge
    private let difference: Gauge
    private let refused = Mutex<[IntakeBound: UInt64]>([:])
    private let reached = Mutex<[Quota: UInt64]>([:])
    private let unkept = Mutex<Int?>(nil)
    private let factory: any MetricsFactory

    init(_ factory: any MetricsFactory) {
        self.factory = factory
        lag = Gauge(label: "belfry_log_lag_entries", factory: factory)
        retries = Gauge(label: "belfry_retries_waiting", factory: factory)
        ranges = Gauge(label: "belfry_range_subscriptions_waiting", factory: factory)
        quarantined = Gauge(label: "belfry_quarantined_changes", factory: factory)
        file = Gauge(label: "belfry_storage_file_bytes", factory: factory)
        wal = Gauge(label: "belfry_storage_wal_bytes", factory: factory)
        memory = Gauge(label: "belfry_process_resident_bytes", factory: factory)
        difference = Gauge(label: "belfry_conservation_difference", factory: factory)
    }

    private func gauge(_ label: String) -> Gauge { Gauge(label: label, factory: factory) }

    /// Records one check.
    func show(_ watch: Watch) {
        lag.record(Double(watch.lag))
        retries.record(watch.backlog.retries)
        ranges.record(watch.backlog.rangeSubscriptions)
        quarantined.record(watch.backlog.quarantined)
        file.record(watch.footprint.fileBytes)
        wal.record(watch.footprint.walBytes)
        // A gauge shows 0 as soon as it exists. So without a value it must not be created, or an
        // alert would see a full disk.
        if let bytes = watch.footprint.freeBytes {
            gauge("belfry_storage_free_bytes").record(Double(bytes))
        }
        if let count = watch.footprint.nodes {
            gauge("belfry_store_owner").record(1)
            gauge("belfry_store_nodes").record(count)
            gauge("belfry_store_disagreements").record(watch.footprint.disagreements.count)
        }
        memory.record(watch.memory)
        for bound in IntakeBound.allCases {
            Gauge(
                label: "belfry_bound_reached", dimensions: [("bound", bound.rawValue)],
                factory: factory
            ).record(watch.reached.contains(bound) ? 1 : 0)
        }
    }

    /// Counts the requests that were refused since the last call.
    func countRefusals(_ refusals: [IntakeBound: UInt64]) {
        let before = refused.withLock { refused in
            defer { refused = refusals }
            return refused
        }
        for bound in IntakeBound.allCases {
            let count = refusals[bound, default: 0] - before[bound, default: 0]
            Counter(
                label: "belfry_intake_refused_total", dimensions: [("bound", bound.rawValue)],
                factory: factory
            ).increment(by: count)
        }
    }

    /// Counts how often quotas were reached since the last call.
    func countQuotas(_ now: [Quota: UInt64]) {
        let before = reached.withLock { reached in
            defer { reached = now }
            return reached
        }
        for quota in Quota.allCases {
            Counter(
                label: "belfry_quota_reached_total", dimensions: [("quota", quota.rawValue)],
                factory: factory
            ).increment(by: now[quota, default: 0] - before[quota, default: 0])
        }
    }

    /// Counts the changes whose record was not kept since the last call, and returns their number.
    ///
    /// The first call counts nothing, because it reports only what happened before.
    func countUnkept(_ total: Int) -> Int {
        let before = unkept.withLock { unkept in
            defer { unkept = total }
            return unkept
        }
        let count = max(0, total - (before ?? total))
        Counter(label: "belfry_records_unkept_total", factory: factory).increment(by: count)
        return count
    }

    /// Counts rows that were set aside because they are unreadable.
    func count(_ rows: [UnreadableRow]) {
        for row in rows {
            Counter(
                label: "belfry_unreadable_rows_total", dimensions: [("table", row.table)],
                factory: factory
            ).increment()
        }
    }

    /// Records the difference of the accounts; anything but 0 is an error.
    func show(_ accounts: [DeliveryAccount]) {
        difference.record(accounts.reduce(0) { $0 + abs($1.difference) })
    }

    /// Records the number of held deliveries by reason.
    func show(held counts: [HoldReason: Int]) {
        for reason in HoldReason.allCases {
            Gauge(
                label: "belfry_deliveries_held", dimensions: [("reason", reason.rawValue)],
                factory: factory
            ).record(counts[reason, default: 0])
        }
    }

    /// Counts the pruned rows.
    func count(_ counts: PrunedCounts) {
        let tables = [
            ("dedupe", counts.dedupeKeys), ("versions", counts.endedVersions),
            ("pastVersions", counts.pastVersions), ("subscription", counts.expired),
            ("digest", counts.digests), ("throttlePlace", counts.throttlePlaces),
            ("logEntry", counts.logEntries), ("receiptBlock", counts.receiptBlocks),
            ("clientReceipt", counts.clientReceipts),
            ("deadLetter", counts.deadLetters), ("parkedChange", counts.parkedChanges),
            ("quarantine", counts.quarantined),
            ("shadowRecord", counts.shadows), ("deletedRecord", counts.marks),
        ]
        for (table, count) in tables { self.count(count, of: table) }
    }

    /// Counts pruned rows of a table; returns `rows`.
    @discardableResult
    func count(_ rows: Int, of table: String) -> Int {
        if rows > 0 {
            Counter(
                label: "belfry_pruned_total", dimensions: [("table", table)], factory: factory
            ).increment(by: rows)
        }
        return rows
    }
}
