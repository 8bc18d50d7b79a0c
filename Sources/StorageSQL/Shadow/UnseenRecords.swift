import RelayModel
import Storage

/// Finds kept records that a completed snapshot of their source did not contain.
struct UnseenRecords {
    /// The result of looking at one portion of records.
    struct Slice: Sendable {
        /// The keys of records that the snapshot did not contain.
        var found: [SweepPlace] = []
        /// The last key that was looked at; `nil` if there are no more.
        var end: SweepPlace?
    }

    let sweep: SnapshotSweep
    let container: StoredContainer

    /// The number of rows that one read transaction looks at, which takes some hundredths of a
    /// second and blocks no writer.
    static let rowsLookedAt = 5000
    /// The number of records deleted together, which is one turn at the writer.
    static let recordsAtOnce = WriteLines.changesPerTurn

    private static let key = "database, owner, zoneOwner, zoneName, recordType, recordName"

    /// The condition that the snapshot did not contain the record in a row, apart from the
    /// condition on its type.
    private static let isUnseen = """
        source = ? AND version < ? AND isKept = 1 AND isDeleted = 0 AND \(UnkeptTypes.isNone())
        """

    /// Looks at the next records of the container.
    func slice(after place: SweepPlace?, in db: Database) throws -> Slice {
        let before: StatementArguments = [sweep.source.rawValue, sweep.version, container.id]
        let start = place?.key ?? Array(repeating: "", count: 6)
        let rows = try Row.fetchCursor(
            db.cachedStatement(sql: Self.sliceStatement),
            arguments: before + StatementArguments(start) + [Self.rowsLookedAt])
        var slice = Slice()
        var seen = 0
        while let row = try rows.next() {
            seen += 1
            let place = SweepPlace(key: (0..<6).map { row[$0] as String })
            slice.end = place
            guard row["isUnseen"] as Int64 != 0,
                let type = RecordType(rawValue: row["recordType"]), sweep.types.contains(type)
            else { continue }
            slice.found.append(place)
            if slice.found.count == Self.recordsAtOnce { return slice }
        }
        if seen < Self.rowsLookedAt { slice.end = nil }
        return slice
    }

    static let sliceStatement = """
        SELECT \(key), CASE WHEN \(isUnseen) THEN 1 ELSE 0 END AS isUnseen
        FROM shadowRecord
        WHERE container = ? AND (\(key)) > (?, ?, ?, ?, ?, ?)
        ORDER BY \(key) LIMIT ?
        """

    /// The key of a record, with its deletion.
    typealias Deletion = (place: SweepPlace, change: RecordChange)

    /// Returns the deletions of those records that still satisfy the condition, because other
    /// requests may have written since they were found.
    func deletions(of found: [SweepPlace], in db: Database) throws -> [Deletion] {
        let seen: StatementArguments = [container.id]
        let after: StatementArguments = [sweep.source.rawValue, sweep.version]
        let rows = try Row.fetchFirsts(
            db.cachedStatement(sql: Self.rowStatement),
            arguments: found.map { seen + StatementArguments($0.key) + after })
        return try zip(found, rows).compactMap { place, row -> Deletion? in
            guard let row else { return nil }
            let stored = StoredRow(row: row, table: "shadowRecord")
            let database: DatabaseScope = try stored.choice("database")
            var change = RecordChange(
                .delete, of: try stored.identifier("recordType"),
                RecordID(
                    recordName: try stored.identifier("recordName"),
                    zoneID: try stored.zoneID()))
            change.database = database
            if database != .public { change.owner = try stored.identifier("owner") }
            change.version = sweep.version
            return (place, change)
        }
    }

    static let rowStatement = """
        SELECT \(key) FROM shadowRecord
        WHERE \(ShadowRows.zoneCondition) AND recordType = ? AND recordName = ? AND \(isUnseen)
        """
}
