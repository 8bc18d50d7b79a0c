import RelayModel
import Storage

/// Reads one slice of the records of one type.
///
/// Every row is asked for by the key and looked at one by one, deleted ones too: so no statement
/// runs for long without a row, and the slice ends where it should.
struct RecordScanner {
    let scan: RecordScan
    /// Whether the slice has taken long enough.
    let isOver: () -> Bool
    let shadowRows: ShadowRows

    func run<Value: Sendable>(
        into initial: Value, _ step: (inout Value, ScannedRecord) throws -> Bool, in db: Database
    ) throws -> RecordSlice<Value> {
        var slice = RecordSlice(initial)
        // What is kept no more is no record, though there may be rows of it.
        let unkept = try UnkeptTypes(container: shadowRows.container).names(in: db)
        guard !unkept.contains(scan.recordType) else { return slice }
        if let zoneID = scan.zoneID {
            _ = try walk(zoneID, after: scan.cursor, &slice, step, in: db)
            return slice
        }
        if let cursor = scan.cursor,
            try !walk(cursor.zoneID, after: cursor, &slice, step, in: db)
        {
            return slice
        }
        var last = scan.cursor?.zoneID
        while let zoneID = try shadowRows.nextZone(after: last, in: db) {
            slice.rows += 1
            guard try walk(zoneID, after: nil, &slice, step, in: db) else { return slice }
            last = zoneID
        }
        return slice
    }

    /// Looks through one zone; returns whether the slice goes on after it.
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
    /// What a row takes besides its texts, about.
    static let bytesOfRow = 256

    /// Which record a row is about.
    static func recordID(row: Row) throws -> RecordID {
        let stored = StoredRow(row: row, table: "shadowRecord")
        return RecordID(
            recordName: try stored.identifier("recordName"), zoneID: try stored.zoneID())
    }
}

extension ShadowRows {
    /// The zone after `last` in the order of owner and name; `nil` if there are no more.
    func nextZone(after last: ZoneID?, in db: Database) throws -> ZoneID? {
        let statement = try db.cachedStatement(
            sql: """
                SELECT zoneOwner, zoneName FROM recordZone
                WHERE container = ? AND database = ? AND owner = ?
                    AND (zoneOwner, zoneName) > (?, ?) AND isDeleted = 0
                ORDER BY zoneOwner, zoneName LIMIT 1
                """)
        let row = try Row.fetchOne(
            statement,
            arguments: [
                container.id, place.database.rawValue, place.owner?.rawValue ?? "",
                last?.ownerRecordName?.rawValue ?? "", last?.zoneName ?? "",
            ])
        return try row.map { try StoredRow(row: $0, table: "recordZone").zoneID() }
    }
}
