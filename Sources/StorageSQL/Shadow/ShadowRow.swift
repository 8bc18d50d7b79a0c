import FoundationEssentials
import RelayModel
import Storage

/// Reads and writes the rows of kept records.
///
/// The first five columns of the key are the place and the zone.
struct ShadowRows {
    let place: RecordPlace
    let container: StoredContainer

    /// Returns the arguments that identify a zone: container, database, owner, zone owner, zone
    /// name.
    func zone(_ zoneID: ZoneID) -> StatementArguments {
        [
            container.id, place.database.rawValue, place.owner?.rawValue ?? "",
            zoneID.ownerRecordName?.rawValue ?? "", zoneID.zoneName,
        ]
    }

    /// Returns the arguments that identify a record: those of its zone, and its name.
    func name(_ id: RecordID) -> StatementArguments { zone(id.zoneID) + [id.recordName.rawValue] }

    static let zoneCondition =
        "container = ? AND database = ? AND owner = ? AND zoneOwner = ? AND zoneName = ?"

    /// Returns the kept records with this name, including marks of deleted ones.
    func records(named id: RecordID, in db: Database) throws -> [ShadowRecord] {
        try scanned(named: id, in: db).map(\.record)
    }

    /// Returns the kept records with this name, with the sizes of their texts.
    func scanned(named id: RecordID, in db: Database) throws -> [ScannedRecord] {
        try Row.fetchAll(
            db.cachedStatement(sql: Self.namedStatement),
            arguments: name(id)
        ).map(ScannedRecord.init(row:))
    }

    /// Returns the rows of the records with each of several names, read in one batch.
    func rows(
        named ids: some Collection<RecordID>, in db: Database
    ) throws -> [[Row]] {
        try Row.fetchAlls(
            db.cachedStatement(sql: Self.namedStatement),
            arguments: ids.map { (id) -> StatementArguments in name(id) })
    }

    /// Returns the kept records with this name without reading their fields, for checks of
    /// existence and of readers.
    func heads(named id: RecordID, in db: Database) throws -> [ShadowRecord] {
        try Row.fetchAll(
            db.cachedStatement(sql: Self.headStatement),
            arguments: name(id)
        ).map(ShadowRecord.init(row:))
    }

    /// Returns the same for several records, read in one batch.
    func heads(
        named ids: some Collection<RecordID>, in db: Database
    ) throws -> [[ShadowRecord]] {
        try Row.fetchAlls(
            db.cachedStatement(sql: Self.headStatement),
            arguments: ids.map { (id) -> StatementArguments in name(id) }
        ).map { rows in try rows.map(ShadowRecord.init(row:)) }
    }

    static let headStatement = """
        SELECT zoneOwner, zoneName, recordType, recordName, source, position, NULL AS fields,
            NULL AS wire, readers, isDeleted, isPartial, createdAt, createdBy, createdDevice,
            modifiedAt, modifiedBy, modifiedDevice
        FROM shadowRecord INDEXED BY shadowRecordName
        WHERE \(zoneCondition) AND recordName = ? AND isKept = 1
            AND \(UnkeptTypes.isNone())
        """

    /// Names its index, because SQLite might otherwise choose the primary key, which shares the
    /// zone's columns, and read the whole zone.
    static let namedStatement = """
        SELECT * FROM shadowRecord INDEXED BY shadowRecordName
        WHERE \(zoneCondition) AND recordName = ? AND isKept = 1
            AND \(UnkeptTypes.isNone())
        """

    /// Writes the current version of a record.
    ///
    /// The caller updates the zone.
    func put(_ record: ShadowRecord, version: Int64?, in db: Database) throws {
        let id = record.recordID
        try record.fields.checkDepth(path: "fields")
        var values: StatementArguments = zone(id.zoneID)
        values += [record.recordType.rawValue, id.recordName.rawValue]
        values += [record.source.rawValue, version, record.position.stored]
        values += [
            record.isDeleted
                ? nil
                : try JSONValue.object(FieldValue.notation(fields: record.fields)).storedText(),
            record.isDeleted, record.isPartial,
            record.wire.members.isEmpty ? nil : try JSONValue.object(record.wire).storedText(),
            try record.readers.map { try JSONValue.array($0.map { .string($0) }).storedText() },
            record.isDeleted ? nil : record.deletedWith?.rawValue,
        ]
        values += record.created.stored + record.modified.stored
        try db.cachedStatement(
            sql: """
                INSERT INTO shadowRecord
                    (container, database, owner, zoneOwner, zoneName, recordType, recordName,
                    source, version, position, fields, isDeleted, isPartial, wire, readers,
                    deletedWith, createdAt, createdBy, createdDevice, modifiedAt, modifiedBy,
                    modifiedDevice, isKept)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1)
                ON CONFLICT (
                    container, database, owner, zoneOwner, zoneName, recordType, recordName)
                DO UPDATE SET source = excluded.source, version = excluded.version,
                    position = excluded.position, fields = excluded.fields,
                    isDeleted = excluded.isDeleted, isPartial = excluded.isPartial,
                    wire = excluded.wire, readers = excluded.readers,
                    deletedWith = excluded.deletedWith,
                    createdAt = excluded.createdAt, createdBy = excluded.createdBy,
                    createdDevice = excluded.createdDevice, modifiedAt = excluded.modifiedAt,
                    modifiedBy = excluded.modifiedBy, modifiedDevice = excluded.modifiedDevice,
                    isKept = 1
                """
        ).execute(arguments: values)
    }

    /// Records the last change of a zone, creating the zone if a source names it for the first
    /// time.
    func touch(_ zoneID: ZoneID, at position: LogPosition, in db: Database) throws {
        let update = try db.cachedStatement(
            sql: """
                UPDATE recordZone SET position = ?6
                WHERE container = ?1 AND database = ?2 AND owner = ?3 AND zoneOwner = ?4
                    AND zoneName = ?5 AND isDeleted = 0
                """)
        let arguments = zone(zoneID) + [position.stored]
        // On PostgreSQL the count would be a round trip, so the second statement checks the zone's
        // existence itself.
        guard db.dialect == .sqlite else {
            try update.execute(arguments: arguments)
            return try db.cachedStatement(sql: Self.savingUnlessThere)
                .execute(arguments: arguments)
        }
        guard try update.executeCounting(arguments: arguments) == 0 else { return }
        try save(zoneID, position: position, in: db)
    }

    /// The beginning of the statements that create or update a zone.
    private static let saving = """
        INSERT INTO recordZone
            (container, database, owner, zoneOwner, zoneName, position, edit, prunedTo, isDeleted,
            deletedAt)
        """
    /// The values of a saved zone, up to whether it is deleted.
    ///
    /// A zone that is created again after its mark was deleted remembers no earlier record.
    private static let savedValues = """
        ?1, ?2, ?3, ?4, ?5, ?6,
        1 + max(
            (SELECT coalesce(max(edit), 0) FROM recordZone),
            (SELECT coalesce(max(prunedEdit), 0) FROM zoneMemory)),
        coalesce((
            SELECT prunedPosition FROM zoneMemory
            WHERE container = ?1 AND database = ?2 AND owner = ?3), 0)
        """
    private static let savedAnew = """
        ON CONFLICT (
            container, database, owner, zoneOwner, zoneName)
        DO UPDATE SET
            position = max(recordZone.position, excluded.position),
            edit = excluded.edit, isDeleted = excluded.isDeleted,
            deletedAt = excluded.deletedAt
        """
    /// Creates a zone unless it exists.
    private static let savingUnlessThere = """
        \(saving)
        SELECT \(savedValues), 0, CAST(NULL AS bigint)
        WHERE NOT EXISTS (
            SELECT 1 FROM recordZone
            WHERE container = ?1 AND database = ?2 AND owner = ?3 AND zoneOwner = ?4
                AND zoneName = ?5 AND isDeleted = 0)
        \(savedAnew)
        """

    /// Records that a zone was created, or deleted at `deletedAt`.
    func save(
        _ zoneID: ZoneID, position: LogPosition, deletedAt: Timestamp? = nil, in db: Database
    ) throws {
        try db.cachedStatement(
            sql: """
                \(Self.saving)
                VALUES (\(Self.savedValues), CASE WHEN ?7 IS NULL THEN 0 ELSE 1 END, ?7)
                \(Self.savedAnew)
                """
        ).execute(arguments: zone(zoneID) + [position.stored, deletedAt?.stored])
    }

    /// Returns a zone that is not deleted, or `nil` if there is none.
    func zone(_ zoneID: ZoneID, in db: Database) throws -> ZoneMark? {
        let statement = try db.cachedStatement(
            sql: "SELECT * FROM recordZone WHERE \(Self.zoneCondition) AND isDeleted = 0")
        return try Row.fetchOne(statement, arguments: zone(zoneID)).map(ZoneMark.init(row:))
    }
}

extension RecordStamp {
    var stored: StatementArguments { [at.stored, userID?.rawValue, deviceID?.rawValue] }

    init(_ stored: StoredRow, _ prefix: String) throws {
        self.init(
            at: stored.moment("\(prefix)At"),
            userID: try stored.optionalIdentifier("\(prefix)By"),
            deviceID: try stored.optionalIdentifier("\(prefix)Device"))
    }
}

extension ShadowRecord {
    init(row: Row) throws {
        let stored = StoredRow(row: row, table: "shadowRecord")
        do {
            self.init(
                recordID: RecordID(
                    recordName: try stored.identifier("recordName"),
                    zoneID: try stored.zoneID()),
                recordType: try stored.identifier("recordType"), fields: [:],
                created: try RecordStamp(stored, "created"),
                modified: try RecordStamp(stored, "modified"),
                source: try stored.identifier("source"),
                position: LogPosition(stored: row["position"]))
            if row["fields"] as String? != nil {
                let reader = try JSONReader(try stored.json("fields"))
                fields = try FieldValue.fields(notation: reader.object)
            }
            if row["wire"] as String? != nil {
                wire = try JSONReader(try stored.json("wire")).object
            }
            if row["readers"] as String? != nil {
                readers = try JSONReader(["readers": try stored.json("readers")])
                    .strings("readers")
            }
        } catch is JSONContractError {
            throw stored.damage("fields")
        }
        isPartial = row["isPartial"]
        isDeleted = row["isDeleted"]
    }
}

extension StoredRow {
    /// Returns the zone of the row, from the columns `zoneOwner` and `zoneName`.
    func zoneID() throws -> ZoneID {
        let owner = row["zoneOwner"] as String
        return try require(
            "zoneName",
            ZoneID(zoneName: row["zoneName"], ownerRecordName: UserID(rawValue: owner)))
    }
}

extension ZoneMark {
    init(row: Row) throws {
        let stored = StoredRow(row: row, table: "recordZone")
        self.init(
            zoneID: try stored.zoneID(), position: LogPosition(stored: row["position"]),
            edit: stored.number("edit"), isDeleted: row["isDeleted"],
            prunedTo: LogPosition(stored: row["prunedTo"]))
    }
}
