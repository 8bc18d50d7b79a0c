import PostgresLink

/// A table that a publication names, or a schema of which it has all tables; or a table whose
/// changes triggers write to an outbox.
struct PublicationMember: Sendable, Hashable {
    let name: String
    /// What names the publication, or the outbox, among all that there ever are.
    let publication: String
    /// Its own number in it, which is another one once it was taken out and put back.
    let number: String
    /// Whether it is there since a slot was read last.
    let isNew: Bool
}

extension Catalogue {
    /// Those of `tables` of which a publication tells nothing: neither of them nor of what they are
    /// partitions of, or have as partitions.
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

    /// The tables that a publication names, and the schemas of which it has all tables; whether
    /// each is in it since `slot` was read last, as far as the server remembers.
    ///
    /// None of them is locked for it.
    func members(of publication: String, since slot: String) throws -> [PublicationMember] {
        // Before 15 no publication has schemas.
        let schemas =
            connection.serverVersion < 150_000
            ? ""
            : """
            UNION ALL
            SELECT format('%I.*', n.nspname), r.pnpubid, r.oid, r.xmin
            FROM pg_publication_namespace AS r JOIN pg_namespace AS n ON n.oid = r.pnnspid
            """
        // What looks later than now is older than numbers of transactions are told apart.
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

    /// The tables whose changes triggers write to an outbox; `outbox` names that among all.
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

    /// Those of some schemas that hold a relay's store.
    ///
    /// What is told of one would be written into it, and told again, without an end.
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

    /// Whether a table is one of an outbox: its rows are those of other tables once more, of which
    /// nobody could say whose they are.
    static func isOutbox(schema: String, table: String) -> Bool {
        schema == "belfry" && (table == "outbox" || table == "outbox_state")
    }

    /// What a publication leaves out of what happens to rows, in SQL's words.
    func operationsLeftOut(of publication: String) throws -> [String] {
        let rows = try connection.query(
            "SELECT pubinsert, pubupdate, pubdelete FROM pg_publication WHERE pubname = $1",
            [publication])
        guard let row = rows.first else { return [] }
        return zip(["INSERT", "UPDATE", "DELETE"], row).filter { $0.1 == "f" }.map(\.0)
    }

    /// Those of `tables` whose changes no trigger writes to the outbox.
    func tablesWithoutTrigger(_ tables: [String]) throws -> [String] {
        try those(
            of: tables,
            """
            SELECT FROM pg_trigger AS t
            WHERE t.tgrelid = found.oid AND t.tgname = 'belfry_outbox'
            AND t.tgenabled IN ('O', 'A')
            """)
    }

    /// Makes something for what was named, of which some may be no table, or none that can be
    /// followed, as a view: nothing is mended by trying again.
    ///
    /// - Throws: ``FollowProblem/tableMissing(_:)`` with what the server says of it.
    static func naming(_ body: () throws -> Void) throws {
        do {
            try body()
        } catch let error as PostgresError where Self.unfit.contains(error.state) {
            throw FollowProblem.tableMissing(error.message)
        }
    }

    /// What the server says where a publication, or a trigger, can be of no such relation.
    private static let unfit: Set = ["22023", "42809"]

    /// Those of `tables` for which a question finds nothing; in it, `found` is the table.
    private func those(
        of tables: [String], _ question: String, _ values: [String?] = []
    ) throws -> [String] {
        guard !tables.isEmpty else { return [] }
        // By the catalogue, which asks for no right to the schema, as the log does not.
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
