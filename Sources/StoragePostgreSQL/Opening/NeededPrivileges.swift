import PostgresLink
import StorageSQL

/// The privileges that a relay's role needs on the tables, views and sequences of a store.
enum NeededPrivileges {
    /// What a relay uses besides the tables that are moved.
    ///
    /// Of the sequences, it reads one. Rows get their numbers without a privilege.
    private static let others: [(name: String, privileges: Set<String>)] = [
        ("commitmark", ["SELECT", "INSERT", "DELETE"]), ("migration", ["SELECT"]),
        ("ownership", ["SELECT", "INSERT", "UPDATE"]), ("receiptblock_id_seq", ["SELECT"]),
        ("recordholding", ["SELECT"]),
        ("relaynode", ["SELECT", "INSERT", "UPDATE", "DELETE"]),
        ("shard", ["SELECT", "UPDATE"]), ("shardhead", ["SELECT"]),
        ("store", ["SELECT", "UPDATE"]), ("storemove", ["SELECT"]),
    ]

    /// All tables, views and sequences, as an array in SQL.
    static let names = array(MovedTables.order + others.map(\.name))

    /// Pairs of a privilege and the tables on which it is needed, as rows in SQL.
    private static let rows = ["SELECT", "INSERT", "UPDATE", "DELETE"].map { privilege in
        let more = others.filter { $0.privileges.contains(privilege) }.map(\.name)
        return "('\(privilege)', \(array(MovedTables.order + more)))"
    }.joined(separator: ", ")

    private static func array(_ names: [String]) -> String {
        "ARRAY[\(names.map(\.quotedText).joined(separator: ", "))]"
    }

    /// Returns the server's error for the first privilege that the role lacks in a schema; `nil` if
    /// it lacks none.
    ///
    /// A table that is missing is not reported.
    static func lacking(
        in schema: String, _ connection: PostgresConnection
    ) throws -> PostgresError? {
        let found = try connection.query(
            """
            SELECT entity.relname, needed.privilege,
                CASE relkind WHEN 'S' THEN 'sequence' ELSE 'table' END
            FROM pg_catalog.pg_class AS entity
            JOIN (VALUES \(rows)) AS needed (privilege, names)
                ON entity.relname = ANY (needed.names)
            WHERE entity.relname = ANY (\(names)) AND entity.relnamespace = (
                    SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = $1)
                AND NOT has_table_privilege(entity.oid, needed.privilege)
            ORDER BY entity.relname, needed.privilege LIMIT 1
            """, [schema])
        guard let row = found.first, let name = row[0], let privilege = row[1], let kind = row[2]
        else { return nil }
        return PostgresError(
            state: "42501", message: "permission denied for \(kind) \(name): no \(privilege)")
    }
}
