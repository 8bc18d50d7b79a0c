import PostgresLink

/// The state of a schema that is named as a shard, from the server's catalogue.
struct ShardSchema: Sendable, Hashable {
    /// The schema's OID, which changes if it is dropped and created again.
    let identity: String
    /// Why the shard cannot be read; `nil` if it can.
    let obstacle: ShardSight.State?

    /// The tables and columns that are read of a shard.
    private static let columns = [
        ("ownership", "shard"), ("ownership", "owner"), ("ownership", "name"),
        ("ownership", "epoch"), ("ownership", "leaseuntil"), ("ownership", "address"),
        ("ownership", "pass"), ("container", "id"), ("container", "name"),
        ("container", "environment"), ("storemove", "direction"),
    ]

    /// Returns the schemas that exist and are not empty, by name.
    ///
    /// A table that cannot be read does not make the query fail, because only the catalogue is
    /// read.
    static func found(
        _ schemas: [String], _ connection: PostgresConnection
    ) throws -> [String: ShardSchema] {
        let columns = columns.map { "('\($0)', '\($1)')" }.joined(separator: ", ")
        // Not as an array literal, in which the name `null` would not be a text.
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
            return .unreadable("the role has no right to read it: let one role own all shards")
        }
        return row[5] == "\(columns.count)" ? nil : .otherVersion
    }
}
