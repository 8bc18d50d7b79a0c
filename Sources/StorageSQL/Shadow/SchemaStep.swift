import RelayModel
import Storage

/// Reads and writes the schema of one container.
struct SchemaStep {
    let container: StoredContainer

    func read(_ db: Database) throws -> ContainerSchema {
        var types: [RecordType: RecordTypeDefinition] = [:]
        let id: StatementArguments = [container.id]
        for row in try Row.fetchAll(
            db, sql: "SELECT * FROM recordType WHERE container = ?", arguments: id)
        {
            let type = try RecordTypeDefinition(row: row)
            types[type.name] = type
        }
        for row in try Row.fetchAll(
            db, sql: "SELECT * FROM recordField WHERE container = ?", arguments: id)
        {
            let type: RecordType = try StoredRow(row: row, table: "recordField")
                .identifier("recordType")
            types[type]?.fields[row["name"]] = try FieldDefinition(row: row)
        }
        let roles = try Row.fetchAll(
            db, sql: "SELECT name FROM schemaRole WHERE container = ? ORDER BY name", arguments: id
        ).map { row -> RoleName in
            try StoredRow(row: row, table: "schemaRole").identifier("name")
        }
        return ContainerSchema(Array(types.values), roles: roles)
    }

    /// Adds what is not there.
    func add(_ additions: [RecordTypeDefinition], in db: Database) throws {
        for type in additions {
            try db.cachedStatement(
                sql: """
                    INSERT INTO recordType (container, name, isKept, isInferred, grants)
                    VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
                    """
            ).execute(arguments: [
                container.id, type.name.rawValue, type.isKept, type.isInferred,
                try type.storedGrants(),
            ])
            for (name, field) in type.fields {
                try db.cachedStatement(
                    sql: """
                        INSERT INTO recordField
                            (container, recordType, name, type, uses, isEncrypted)
                        VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
                        """
                ).execute(arguments: [
                    container.id, type.name.rawValue, name, field.type.description,
                    field.uses.rawValue, field.isEncrypted,
                ])
            }
        }
    }

    /// One of the records of a type that are kept.
    func someRecord(of type: RecordType, in db: Database) throws -> Row? {
        try Row.fetchOne(
            db.cachedStatement(
                sql: """
                    SELECT * FROM shadowRecord
                    WHERE container = ? AND recordType = ? AND isKept = 1 AND isDeleted = 0
                    LIMIT 1
                    """), arguments: [container.id, type.rawValue])
    }

    func replace(with schema: ContainerSchema, in db: Database) throws {
        for table in ["recordField", "recordType", "schemaRole"] {
            try db.execute(
                sql: "DELETE FROM \(table) WHERE container = ?", arguments: [container.id])
        }
        try add(Array(schema.recordTypes.values), in: db)
        for role in schema.roles {
            try db.execute(
                sql: "INSERT INTO schemaRole (container, name) VALUES (?, ?)",
                arguments: [container.id, role.rawValue])
        }
    }

    /// Has whoever syncs a zone begin it anew that has records which are not kept any more.
    ///
    /// They are too many to be told of one by one, and none of them was deleted. `head` is the last
    /// position of the log, which no token is beyond.
    func expireTokens(upTo head: LogPosition, in db: Database) throws {
        try db.execute(
            sql: """
                UPDATE recordZone
                SET prunedTo = max(recordZone.prunedTo, ?),
                    position = max(recordZone.position, ?)
                WHERE (container, database, owner, zoneOwner, zoneName) IN (
                    SELECT container, database, owner, zoneOwner, zoneName
                    FROM shadowRecord WHERE \(Self.unkeptCondition))
                """, arguments: [head.stored, head.stored, container.id, container.id])
    }

    /// Forgets what is not kept any more; the versions stay for the sake of stale changes.
    ///
    /// On PostgreSQL a row that is counted walks over all counts that the transaction made before
    /// it, so that some ten thousands would take longer than a statement may: there what goes is
    /// counted at once, and the rows are written some at a time.
    func forgetUnkept(in db: Database) throws {
        guard db.dialect == .postgresql else {
            return try db.execute(
                sql: "\(Self.forgetting) WHERE \(Self.unkeptCondition)",
                arguments: [container.id, container.id])
        }
        try db.execute(sql: "ALTER TABLE shadowRecord DISABLE TRIGGER recordRecounted")
        try db.execute(sql: Self.uncounting, arguments: [container.id])
        let forget = try db.makeStatement(
            sql: """
                \(Self.forgetting) WHERE ctid = ANY (ARRAY(
                    SELECT ctid FROM shadowRecord WHERE \(Self.unkeptCondition) LIMIT ?))
                """)
        var count = Self.forgottenAtOnce
        while count == Self.forgottenAtOnce {
            count = try forget.executeCounting(
                arguments: [container.id, container.id, Self.forgottenAtOnce])
        }
        try db.execute(sql: "ALTER TABLE shadowRecord ENABLE TRIGGER recordRecounted")
    }

    /// Rows that one statement forgets: about half a second.
    private static let forgottenAtOnce = 10_000

    private static let forgetting = """
        UPDATE shadowRecord SET isKept = 0, isDeleted = 0, fields = NULL, wire = NULL,
            deletedWith = NULL
        """

    /// Takes what is not kept any more from what is counted, for the container as a whole and for
    /// each holder, as the trigger does of each row.
    private static let uncounting = """
        INSERT INTO quotaUse (container, thing, holder, number, bytes)
        SELECT ?1, \(CountedThing.records.rawValue), coalesce(holder, ''), -sum(number), -sum(bytes)
        FROM (
            SELECT CASE WHEN source <> '_cloudkit' THEN '' WHEN owner <> '' THEN owner
                    ELSE coalesce(createdBy, '') END AS holder,
                1 - isDeleted AS number,
                256 + coalesce(octet_length(fields), 0) + coalesce(octet_length(wire), 0) AS bytes
            FROM shadowRecord WHERE container = ?1 AND isKept = 1 AND recordType NOT IN
                (SELECT name FROM recordType WHERE container = ?1 AND isKept = 1)) AS unkept
        GROUP BY GROUPING SETS ((holder), ())
        HAVING count(*) > 0 AND (grouping(holder) = 1 OR holder <> '')
        ON CONFLICT (container, thing, holder) DO UPDATE
        SET number = quotaUse.number + excluded.number, bytes = quotaUse.bytes + excluded.bytes
        """

    private static let unkeptCondition = """
        container = ? AND isKept = 1 AND recordType NOT IN
            (SELECT name FROM recordType WHERE container = ? AND isKept = 1)
        """
}
