import RelayModel
import Storage

/// Reads one slice of the records of one type.
///
/// Every row is read in key order, including deleted ones, and tested here. So no statement runs
/// for long without a row, and the slice ends where it should.
struct RecordScanner {
    let scan: RecordScan
    /// Returns whether the slice has taken long enough.
    let isOver: () -> Bool
    let shadowRows: ShadowRows

    func run<Value: Sendable>(
        into initial: Value, _ step: (inout Value, ScannedRecord) throws -> Bool, in db: Database
    ) throws -> RecordSlice<Value> {
        var slice = RecordSlice(initial)
        // A type that is no longer kept has no records, though it may still have rows.
        let unkept = try UnkeptTypes(container: shadowRows.container).names(in: db)
        guard !unkept.contains(scan.recordType) else { return slice }
        if let zoneID = scan.zoneID {
            _ = try walk(zoneID, after: scan.cursor, &slice, step, in: db)
            return slice
        }
        if let cursor = scan.cursor, cursor.recordName != Self.lastName,
            try !walk(cursor.zoneID, after: cursor, &slice, step, in: db)
        {
            return slice
        }
        try goOn(&slice, step, in: db)
        return slice
    }

    /// Scans the zones after the cursor's zone.
    ///
    /// Zones count as rows, because most may contain nothing of the type. So a slice may also end
    /// after a zone.
    private func goOn<Value: Sendable>(
        _ slice: inout RecordSlice<Value>,
        _ step: (inout Value, ScannedRecord) throws -> Bool, in db: Database
    ) throws {
        var last = scan.cursor?.zoneID
        // If the previous slice ended after a zone, there are many zones.
        var portion = scan.cursor?.recordName == Self.lastName ? Self.mostZones : 1
        while true {
            let zones = try shadowRows.zones(after: last, limit: portion, in: db)
            for (zoneID, isFilled) in zip(zones, try areFilled(zones, in: db)) {
                slice.rows += 1
                guard isFilled else { continue }
                guard try walk(zoneID, after: nil, &slice, step, in: db) else { return }
            }
            guard let end = zones.last, zones.count == portion else { return }
            if slice.rows >= scan.rows || isOver() {
                slice.cursor = Self.lastName.map { RecordID(recordName: $0, zoneID: end) }
                return
            }
            last = end
            portion = min(4 * portion, Self.mostZones)
        }
    }

    /// The maximum number of zones looked up together.
    private static let mostZones = 64

    /// The greatest name that a record can have, by bytes, which marks the end of a zone in a
    /// cursor.
    private static let lastName = RecordName(
        rawValue: String(repeating: "\u{10FFFF}", count: Limits.maximumRecordNameBytes / 4))

    /// Returns whether zones may have rows of the type.
    ///
    /// On PostgreSQL all zones are checked in one batch, because otherwise each of ten thousand
    /// empty zones would be a round trip that other scans wait for. A single zone is scanned
    /// directly.
    private func areFilled(_ zones: [ZoneID], in db: Database) throws -> [Bool] {
        guard db.dialect == .postgresql, zones.count > 1 else {
            return [Bool](repeating: true, count: zones.count)
        }
        let type: StatementArguments = [scan.recordType.rawValue]
        let statement = try db.cachedStatement(
            sql: """
                SELECT 1 FROM shadowRecord
                WHERE \(ShadowRows.zoneCondition) AND recordType = ? LIMIT 1
                """)
        let found = try Row.fetchFirsts(
            statement,
            arguments: zones.map { (zoneID) -> StatementArguments in
                shadowRows.zone(zoneID) + type
            })
        return found.map { $0 != nil }
    }

    /// Scans one zone, and returns whether the slice continues after it.
    private func walk<Value: Sendable>(
        _ zoneID: ZoneID, after cursor: RecordID?, _ slice: inout RecordSlice<Value>,
        _ step: (inout Value, ScannedRecord) throws -> Bool, in db: Database
    ) throws -> Bool {
        let statement = try db.cachedStatement(
            sql: """
                SELECT * FROM shadowRecord
                WHERE \(ShadowRows.zoneCondition) AND recordType = ? AND recordName > ?
                ORDER BY recordName
                """)
        let rows = try Row.fetchCursor(
            statement,
            arguments: shadowRows.zone(zoneID)
                + [scan.recordType.rawValue, cursor?.recordName.rawValue ?? ""])
        while let row = try rows.next() {
            slice.rows += 1
            var goesOn = true
            if row["isKept"] as Bool, !(row["isDeleted"] as Bool) {
                let record = try ScannedRecord(row: row)
                slice.bytes += record.bytes
                goesOn = try step(&slice.value, record)
            }
            guard goesOn, slice.rows < scan.rows, slice.bytes < scan.bytes, !isOver() else {
                slice.cursor = try ShadowRecord.recordID(row: row)
                return false
            }
        }
        return true
    }
}

extension ScannedRecord {
    init(row: Row) throws {
        self.init(
            record: try ShadowRecord(row: row),
            bytes: ShadowRecord.bytesOfRow + row.bytes(of: "fields", "wire"))
    }
}

extension ShadowRecord {
    /// The approximate size of a row without its texts.
    static let bytesOfRow = 256

    /// Returns the ID of the record in a row.
    static func recordID(row: Row) throws -> RecordID {
        let stored = StoredRow(row: row, table: "shadowRecord")
        return RecordID(
            recordName: try stored.identifier("recordName"), zoneID: try stored.zoneID())
    }
}

extension ShadowRows {
    /// Returns at most `limit` zones after `last`, ordered by owner and name.
    func zones(after last: ZoneID?, limit: Int, in db: Database) throws -> [ZoneID] {
        let statement = try db.cachedStatement(
            sql: """
                SELECT zoneOwner, zoneName FROM recordZone
                WHERE container = ? AND database = ? AND owner = ?
                    AND (zoneOwner, zoneName) > (?, ?) AND isDeleted = 0
                ORDER BY zoneOwner, zoneName LIMIT \(limit)
                """)
        let rows = try Row.fetchAll(
            statement,
            arguments: [
                container.id, place.database.rawValue, place.owner?.rawValue ?? "",
                last?.ownerRecordName?.rawValue ?? "", last?.zoneName ?? "",
            ])
        return try rows.map { try StoredRow(row: $0, table: "recordZone").zoneID() }
    }
}
