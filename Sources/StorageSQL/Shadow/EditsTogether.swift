import RelayModel
import Storage

/// The data that the operations of one request need, read for several operations at once; it
/// belongs to one request.
///
/// No other request writes meanwhile. On PostgreSQL all other writers would wait for each single
/// query, and an atomic request has up to two hundred operations.
final class EditsTogether {
    /// The records that were not looked up yet, in order and without repetition.
    private var pending: ArraySlice<RecordID> = []
    /// The rows found.
    ///
    /// They are decoded only when needed, because the decoded values of a large record take many
    /// times as much memory as its row.
    private var known: [RecordID: [Row]] = [:]
    /// The zones known to exist.
    private var zones: Set<ZoneID> = []
    /// The maximum number of operations.
    private var count = 1
    /// The holders that have room for everything that all operations can add, compared by bytes as
    /// in `quotaUse`.
    private var holders: Set<[UInt8]> = []
    /// The holders that do not.
    private var others: Set<[UInt8]> = []

    /// Sets the operations that come next, in order.
    func expect(_ edits: [RecordEdit]) {
        var met: Set<RecordID> = []
        pending = edits.map(\.recordID).filter { met.insert($0).inserted }[...]
        known = [:]
        count = max(1, edits.count)
        holders = []
        others = []
    }

    /// Returns the kept records with the name of the record that an operation changes, including
    /// marks of deleted ones.
    func records(
        named id: RecordID, _ rows: ShadowRows, in db: Database
    ) throws -> [ShadowRecord] {
        if let found = known.removeValue(forKey: id) { return try Self.records(found) }
        guard db.dialect == .postgresql, let first = pending.firstIndex(of: id) else {
            return try rows.records(named: id, in: db)
        }
        let asked = pending[first...].prefix(KnownRecords.mostTogether)
        pending = pending[asked.endIndex...]
        for (other, found) in zip(asked, try rows.rows(named: asked, in: db)) {
            known[other] = found
        }
        return try Self.records(known.removeValue(forKey: id) ?? [])
    }

    private static func records(_ found: [Row]) throws -> [ShadowRecord] {
        try found.map { try ScannedRecord(row: $0).record }
    }

    /// Removes what is known of a record that was written, so that it is looked up again.
    func forget(_ id: RecordID) { known[id] = nil }

    /// Returns whether a zone exists.
    func hasZone(_ zoneID: ZoneID, _ rows: ShadowRows, in db: Database) throws -> Bool {
        if zones.contains(zoneID) { return true }
        guard try rows.zone(zoneID, in: db) != nil else { return false }
        zones.insert(zoneID)
        return true
    }

    /// Returns whether there is so much room that the exact size of the operation's result does not
    /// matter.
    func hasRoom(for holder: String, by ledger: QuotaLedger) throws -> Bool {
        let name = Array(holder.utf8)
        if holders.contains(name) { return true }
        if !others.contains(name) {
            let most = Growth(number: count, bytes: count * ShadowRecord.mostBytes)
            if try ledger.hasRoom(for: .records, most, holder: holder) {
                holders.insert(name)
                return true
            }
            others.insert(name)
        }
        // Small quotas may still have room for each single record.
        let one = Growth(number: 1, bytes: ShadowRecord.mostBytes)
        return try ledger.hasRoom(for: .records, one, holder: holder)
    }
}
