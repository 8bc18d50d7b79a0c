import PostgresLink

/// A table that a publication names, a schema of which it includes all tables, or a table whose
/// triggers write to an outbox.
struct PublicationMember: Sendable, Hashable {
    let name: String
    /// The identity of the publication or the outbox, which is never used again.
    let publication: String
    /// The OID of its entry, which changes if it is removed and added again.
    let number: String
    /// Whether it was added after the slot was last read.
    let isNew: Bool
}

extension Catalogue {
    /// Returns those of `tables` for which a publication includes neither the table nor one of its
    /// partitions or partitioned parents.
    func tablesMissing(from publication: String, of tables: [String]) throws -> [String] {
        try those(
            of: tables,
            """
            SELECT FROM pg_publication_tables AS t
            JOIN pg_namespace AS n ON n.nspname = t.schemaname
            JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = t.tablename
            WHERE t.pubname = $1 AND (c.oid = found.oid
                OR c.oid IN (SELECT relid FROM pg_partition_tree(found.oid))
                OR c.oid IN (SELECT relid FROM pg_partition_ancestors(found.oid)))
            """, [publication])
    }

    /// Returns the tables that a publication names, and the schemas of which it includes all
    /// tables.
    ///
    /// Each says whether it was added after `slot` was last read, as far as the server knows. The
    /// query locks none of the tables.
    func members(of publication: String, since slot: String) throws -> [PublicationMember] {
        // Publications have schemas since PostgreSQL 15.
        let schemas =
            connection.serverVersion < 150_000
            ? ""
            : """
            UNION ALL
            SELECT format('%I.*', n.nspname), r.pnpubid, r.oid, r.xmin
            FROM pg_publication_namespace AS r JOIN pg_namespace AS n ON n.oid = r.pnnspid
            """
        // A transaction number that seems to be in the future is so old that the numbers have
        // wrapped around.
        return try connection.query(
            """
            SELECT named.name, named.place, named.number, coalesce(
                age(named.began) BETWEEN 0 AND age(s.catalog_xmin), false)
            FROM (
                SELECT format('%I.%I', n.nspname, c.relname), r.prpubid, r.oid, r.xmin
                FROM pg_publication_rel AS r JOIN pg_class AS c ON c.oid = r.prrelid
                JOIN pg_namespace AS n ON n.oid = c.relnamespace
                \(schemas)) AS named (name, place, number, began)
            JOIN pg_publication AS p ON p.oid = named.place
            LEFT JOIN pg_replication_slots AS s ON s.slot_name = $2
            WHERE p.pubname = $1 ORDER BY named.name
            """, [publication, slot]
        ).map { row in
            PublicationMember(
                name: row.text(0) ?? "", publication: row.text(1) ?? "", number: row.text(2) ?? "",
                isNew: row.text(3) == "t")
        }
    }

    /// Returns the tables whose triggers write to an outbox; `outbox` is the outbox's identity.
    func members(ofOutbox outbox: String) throws -> [PublicationMember] {
        try connection.query(
            """
            SELECT format('%I.%I', n.nspname, c.relname), t.oid FROM pg_trigger AS t
            JOIN pg_class AS c ON c.oid = t.tgrelid
            JOIN pg_namespace AS n ON n.oid = c.relnamespace
            WHERE t.tgname = 'belfry_outbox' AND t.tgparentid = 0 ORDER BY 1
            """
        ).map { row in
            PublicationMember(
                name: row.text(0) ?? "", publication: outbox, number: row.text(1) ?? "",
                isNew: false)
        }
    }

    /// Returns those of some schemas that contain a relay's store.
    ///
    /// A change that is followed there would be written into the store, and be followed again,
    /// without end.
    func stores(among schemas: Set<String>) throws -> Set<String> {
        let named = schemas.map(\.quotedText).joined(separator: ", ")
        guard !named.isEmpty else { return [] }
        let rows = try connection.query(
            """
            SELECT n.nspname FROM pg_namespace AS n JOIN pg_class AS c ON c.relnamespace = n.oid
            WHERE n.nspname IN (\(named))
            AND c.relname IN ('migration', 'shard', 'logentry', 'commitmark')
            GROUP BY n.nspname HAVING count(*) = 4
            """)
        return Set(rows.compactMap { $0.text(0) })
    }

    /// Returns whether a table belongs to an outbox.
    ///
    /// Its rows repeat those of other tables, without an owner that could be determined.
    static func isOutbox(schema: String, table: String) -> Bool {
        schema == "belfry" && (table == "outbox" || table == "outbox_state")
    }

    /// Returns the operations on rows that a publication leaves out, in SQL's words.
    func operationsLeftOut(of publication: String) throws -> [String] {
        let rows = try connection.query(
            "SELECT pubinsert, pubupdate, pubdelete FROM pg_publication WHERE pubname = $1",
            [publication])
        guard let row = rows.first else { return [] }
        return zip(["INSERT", "UPDATE", "DELETE"], row).filter { $0.1 == "f" }.map(\.0)
    }

    /// Returns those of `tables` that have no trigger that writes to the outbox.
    func tablesWithoutTrigger(_ tables: [String]) throws -> [String] {
        try those(
            of: tables,
            """
            SELECT FROM pg_trigger AS t
            WHERE t.tgrelid = found.oid AND t.tgname = 'belfry_outbox'
            AND t.tgenabled IN ('O', 'A')
            """)
    }

    /// Runs `body`, which creates something for named tables.
    ///
    /// A named relation may not be a table, or not one that can be followed, such as a view. A
    /// retry would not help.
    ///
    /// - Throws: ``FollowProblem/tableMissing(_:)`` with the server's message.
    static func naming(_ body: () throws -> Void) throws {
        do {
            try body()
        } catch let error as PostgresError where Self.unfit.contains(error.state) {
            throw FollowProblem.tableMissing(error.message)
        }
    }

    /// The SQLSTATEs for a relation that a publication or a trigger does not accept.
    private static let unfit: Set = ["22023", "42809"]

    /// Returns those of `tables` for which a query finds no row; in it, `found` is the table.
    private func those(
        of tables: [String], _ question: String, _ values: [String?] = []
    ) throws -> [String] {
        guard !tables.isEmpty else { return [] }
        // By the catalogue, for which no privilege on the schema is needed. The log needs none
        // either.
        let named = tables.map { table in
            let (schema, name) = table.tableParts
            return "(\([table, schema, name].map(\.quotedText).joined(separator: ", ")))"
        }
        return try connection.query(
            """
            SELECT named.name
            FROM (VALUES \(named.joined(separator: ", "))) AS named (name, place, "table")
            LEFT JOIN pg_namespace AS s ON s.nspname = named.place
            LEFT JOIN pg_class AS found
                ON found.relnamespace = s.oid AND found.relname = named."table"
            WHERE NOT EXISTS (\(question))
            """, values
        ).compactMap { $0.text(0) }
    }
}
