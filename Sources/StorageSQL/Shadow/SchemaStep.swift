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
    func forgetUnkept(in db: Database) throws {
        try db.execute(
            sql: """
                UPDATE shadowRecord SET isKept = 0, isDeleted = 0, fields = NULL, wire = NULL,
                    deletedWith = NULL
                WHERE \(Self.unkeptCondition)
                """, arguments: [container.id, container.id])
    }

    private static let unkeptCondition = """
        container = ? AND isKept = 1 AND recordType NOT IN
            (SELECT name FROM recordType WHERE container = ? AND isKept = 1)
        """
}
