import RelayModel
import Storage

/// What the operations of one request ask of the engine, asked for several of them at once; it
/// belongs to one request.
///
/// Nobody else writes meanwhile. On PostgreSQL each question would be waited for by all who write,
/// and a request that is one whole has two hundred operations.
final class EditsTogether {
    /// What is not asked for yet, in its order, and each once.
    private var pending: ArraySlice<RecordID> = []
    /// What was found, which is read where its turn comes: as values a record of a megabyte takes
    /// many times as much.
    private var known: [RecordID: [Row]] = [:]
    /// Zones that are there.
    private var zones: Set<ZoneID> = []
    /// How many operations there are at the most.
    private var count = 1
    /// Those who have room for whatever all of them make, byte by byte as they are counted.
    private var holders: Set<[UInt8]> = []
    /// Those who have not.
    private var others: Set<[UInt8]> = []

    /// Hears of the operations that come next, in their order.
    func expect(_ edits: [RecordEdit]) {
        var met: Set<RecordID> = []
        pending = edits.map(\.recordID).filter { met.insert($0).inserted }[...]
        known = [:]
        count = max(1, edits.count)
        holders = []
        others = []
    }

    /// The kept records with the name of what an operation changes, marks of deleted ones included.
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

    /// Forgets what was known of a record that was written: it is asked for again.
    func forget(_ id: RecordID) { known[id] = nil }

    /// Whether a zone is there.
    func hasZone(_ zoneID: ZoneID, _ rows: ShadowRows, in db: Database) throws -> Bool {
        if zones.contains(zoneID) { return true }
        guard try rows.zone(zoneID, in: db) != nil else { return false }
        zones.insert(zoneID)
        return true
    }

    /// Whether there is so much room that nobody has to reckon with what an operation makes.
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
        // Where quotas are small there may be room for each all the same.
        let one = Growth(number: 1, bytes: ShadowRecord.mostBytes)
        return try ledger.hasRoom(for: .records, one, holder: holder)
    }
}
