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
        var schema = ContainerSchema(Array(types.values), roles: roles)
        schema.readGeneration =
            try Int64.fetchOne(
                db, sql: "SELECT readGeneration FROM container WHERE id = ?", arguments: id) ?? 0
        return schema
    }

    /// Adds the missing types and fields.
    ///
    /// - Throws: ``StorageError/bounded(_:reason:)`` if a type to keep still has records from
    ///   before.
    func add(_ additions: [RecordTypeDefinition], in db: Database) throws {
        guard !additions.isEmpty else { return }
        let known = try db.cachedStatement(
            sql: "SELECT 1 FROM recordType WHERE container = ? AND name = ?")
        let new = try additions.filter { type in
            let arguments: StatementArguments = [container.id, type.name.rawValue]
            return try type.isKept && Int.fetchOne(known, arguments: arguments) == nil
        }
        try UnkeptTypes(container: container).refuse(new.map(\.name), in: db)
        for type in additions {
            try insert(type, conflict: "DO NOTHING", in: db)
            for (name, field) in type.fields {
                try insert(field, named: name, of: type, conflict: "DO NOTHING", in: db)
            }
        }
    }

    private func insert(
        _ type: RecordTypeDefinition, conflict: String, in db: Database
    ) throws {
        try db.cachedStatement(
            sql: """
                INSERT INTO recordType (container, name, isKept, isInferred, grants)
                VALUES (?, ?, ?, ?, ?) ON CONFLICT (container, name) \(conflict)
                """
        ).execute(arguments: [
            container.id, type.name.rawValue, type.isKept, type.isInferred,
            try type.storedGrants(),
        ])
    }

    private func insert(
        _ field: FieldDefinition, named name: String, of type: RecordTypeDefinition,
        conflict: String, in db: Database
    ) throws {
        try db.cachedStatement(
            sql: """
                INSERT INTO recordField (container, recordType, name, type, uses, isEncrypted)
                VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (container, recordType, name) \(conflict)
                """
        ).execute(arguments: [
            container.id, type.name.rawValue, name, field.type.description, field.uses.rawValue,
            field.isEncrypted,
        ])
    }

    /// Replaces `known` by `schema`.
    ///
    /// What is unchanged is not written again, because a schema may have thousands of fields and
    /// all other writers wait meanwhile.
    ///
    /// Changes of who may read are counted, so that a change that was reverted can still be
    /// detected later.
    func replace(
        _ known: ContainerSchema, with schema: ContainerSchema, in db: Database
    ) throws {
        for type in known.recordTypes.values where schema.recordTypes[type.name] == nil {
            // The fields go with their type.
            try db.cachedStatement(sql: "DELETE FROM recordType WHERE container = ? AND name = ?")
                .execute(arguments: [container.id, type.name.rawValue])
        }
        try add(
            schema.recordTypes.values.filter { known.recordTypes[$0.name] == nil }, in: db)
        for type in schema.recordTypes.values {
            guard let before = known.recordTypes[type.name], before != type else { continue }
            try change(before, to: type, in: db)
        }
        let id: StatementArguments = [container.id]
        try db.execute(sql: "DELETE FROM schemaRole WHERE container = ?", arguments: id)
        for role in schema.roles {
            try db.execute(
                sql: "INSERT INTO schemaRole (container, name) VALUES (?, ?)",
                arguments: [container.id, role.rawValue])
        }
        guard !schema.readsAlike(known) else { return }
        try db.execute(
            sql: "UPDATE container SET readGeneration = readGeneration + 1 WHERE id = ?",
            arguments: id)
    }

    /// Writes those parts of a type's definition that differ from `known`.
    private func change(
        _ known: RecordTypeDefinition, to type: RecordTypeDefinition, in db: Database
    ) throws {
        try insert(
            type,
            conflict: """
                DO UPDATE SET isKept = excluded.isKept, isInferred = excluded.isInferred,
                    grants = excluded.grants
                """, in: db)
        for name in known.fields.keys where type.fields[name] == nil {
            try db.cachedStatement(
                sql: "DELETE FROM recordField WHERE container = ? AND recordType = ? AND name = ?"
            ).execute(arguments: [container.id, type.name.rawValue, name])
        }
        for (name, field) in type.fields where known.fields[name] != field {
            try insert(
                field, named: name, of: type,
                conflict: """
                    DO UPDATE SET type = excluded.type, uses = excluded.uses,
                        isEncrypted = excluded.isEncrypted
                    """, in: db)
        }
    }
}

extension OpenCommit {
    /// Adds the missing types and fields to the schema of a container.
    mutating func extendSchema(
        of container: StoredContainer, with additions: [RecordTypeDefinition]
    ) throws {
        guard !additions.isEmpty else { return }
        try SchemaStep(container: container).add(additions, in: db)
        forgetRules()
    }
}
