import PostgresLink

/// What a schema is that is named as a shard, as the server's catalogue has it.
struct ShardSchema: Sendable, Hashable {
    /// The server's number for it: another one if it was dropped and made anew.
    let identity: String
    /// Why nothing can be read of it; `nil` if it can.
    let obstacle: ShardSight.State?

    /// What is read of a shard: these columns.
    private static let columns = [
        ("ownership", "shard"), ("ownership", "owner"), ("ownership", "name"),
        ("ownership", "epoch"), ("ownership", "leaseuntil"), ("ownership", "address"),
        ("ownership", "pass"), ("container", "id"), ("container", "name"),
        ("container", "environment"), ("storemove", "direction"),
    ]

    /// Which of the schemas are there, by their names.
    ///
    /// A table that cannot be used makes no failure of it.
    static func found(
        _ schemas: [String], _ connection: PostgresConnection
    ) throws -> [String: ShardSchema] {
        let columns = columns.map { "('\($0)', '\($1)')" }.joined(separator: ", ")
        // No array: in one, the name `null` would be no text.
        let names = schemas.map(\.quotedText).joined(separator: ", ")
        let rows = try connection.query(
            """
            SELECT space.nspname, space.oid, has_schema_privilege(space.oid, 'USAGE'),
                (SELECT count(*) FROM pg_catalog.pg_class WHERE relnamespace = space.oid),
                (SELECT count(*) FROM pg_catalog.pg_class
                    WHERE relnamespace = space.oid
                        AND relname IN ('migration', 'shard', 'logentry')),
                (SELECT count(*) FROM pg_catalog.pg_class AS entity
                    JOIN pg_catalog.pg_attribute AS part
                        ON part.attrelid = entity.oid AND NOT part.attisdropped
                    WHERE entity.relnamespace = space.oid
                        AND (entity.relname, part.attname) IN (\(columns))),
                (SELECT coalesce(bool_and(has_table_privilege(entity.oid, 'SELECT')), false)
                    FROM pg_catalog.pg_class AS entity
                    WHERE entity.relnamespace = space.oid
                        AND entity.relname IN ('ownership', 'container', 'storemove'))
            FROM pg_catalog.pg_namespace AS space WHERE space.nspname IN (\(names))
            """)
        var found: [String: ShardSchema] = [:]
        for row in rows {
            guard let name = row[0], let identity = row[1], row[3] != "0" else { continue }
            found[name] = ShardSchema(identity: identity, obstacle: obstacle(row))
        }
        return found
    }

    private static func obstacle(_ row: [String?]) -> ShardSight.State? {
        if row[4] != "3" { return .foreign }
        if row[2] != "t" || row[6] != "t" {
            return .unreadable("the role may not read it: let one role own all shards")
        }
        return row[5] == "\(columns.count)" ? nil : .otherVersion
    }
}
