import PostgresLink

// Tables for which PostgreSQL refuses each `UPDATE` and `DELETE` as long as they are published.
extension Catalogue {
    /// Whether publications of the server can include stored generated columns.
    ///
    /// Such a server refuses changes of rows whose replica identity has generated columns that are
    /// not published.
    var tellsGenerated: Bool { connection.serverVersion >= 180_000 }

    /// The option of a publication that includes them.
    static let generatedOption = "publish_generated_columns = stored"

    /// Returns the tables of a publication to be created whose rows have no replica identity.
    ///
    /// PostgreSQL would refuse each `UPDATE` and `DELETE` of them from then on. An empty `tables`
    /// stands for all tables.
    ///
    /// - Returns: At most `limit` tables.
    func tablesWithoutIdentity(_ tables: [String], limit: Int) throws -> [String] {
        try toldTables(
            tables,
            """
            c.relreplident <> 'f' AND NOT EXISTS (
                SELECT FROM pg_index AS i WHERE i.indrelid = c.oid AND i.indisvalid AND (
                    c.relreplident = 'd' AND i.indisprimary AND i.indimmediate
                    OR c.relreplident = 'i' AND i.indisreplident))
            """, limit: limit)
    }

    /// Returns the tables of a publication to be created whose replica identity is the whole row
    /// and that have virtual generated columns.
    ///
    /// No publication includes virtual columns, so PostgreSQL would refuse changes of these tables
    /// too. An empty `tables` stands for all tables.
    ///
    /// - Returns: At most `limit` tables.
    func tablesWithVirtualIdentity(_ tables: [String], limit: Int) throws -> [String] {
        guard tellsGenerated else { return [] }
        return try toldTables(
            tables,
            """
            c.relreplident = 'f' AND EXISTS (
                SELECT FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attgenerated = 'v')
            """, limit: limit)
    }

    /// Returns those of `tables` and of their descendants that meet a condition, in which `c` is
    /// the table.
    ///
    /// An empty `tables` stands for all tables.
    private func toldTables(
        _ tables: [String], _ condition: String, limit: Int
    ) throws -> [String] {
        let named = tables.map { "to_regclass(\($0.quotedTable.quotedText))" }
        let those =
            tables.isEmpty
            ? "" : "AND c.oid IN (SELECT id FROM told)"
        return try connection.query(
            """
            WITH RECURSIVE told AS (
                SELECT unnest(ARRAY[\(named.joined(separator: ", "))]::regclass[])::oid AS id
                UNION SELECT inhrelid FROM pg_inherits JOIN told ON inhparent = id)
            SELECT format('%I.%I', n.nspname, c.relname)
            FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
            WHERE c.relkind = 'r' AND c.relpersistence = 'p' AND c.oid >= 16384
            AND \(condition) \(those) ORDER BY 1 LIMIT \(limit)
            """
        ).compactMap { $0.text(0) }
    }

    /// Returns the generated columns of the index that is a table's replica identity.
    ///
    /// If the log lacks them, the logged columns of the index may be the same in several rows.
    func generatedIdentity(of table: Relation) throws -> [String] {
        let isOther = table.identity == UInt8(ascii: "i")
        return try connection.query(
            """
            SELECT a.attname FROM pg_index AS i JOIN pg_attribute AS a ON a.attrelid = i.indrelid
            AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])
            WHERE i.indrelid = $1::oid AND \(isOther ? "i.indisreplident" : "i.indisprimary")
            AND a.attgenerated <> ''
            """, [String(table.id)]
        ).compactMap { $0.text(0) }
    }

    /// Returns a warning if PostgreSQL refuses each `UPDATE` and `DELETE` of tables with generated
    /// columns because of an existing publication; otherwise `nil`.
    ///
    /// The publication may have been created before the server was upgraded, and tables may be
    /// altered later.
    func refusing(of publication: String) throws -> String? {
        guard tellsGenerated else { return nil }
        let tables = try tablesRefused(by: publication, limit: 6)
        guard !tables.isEmpty else { return nil }
        let named =
            tables.prefix(5).joined(separator: ", ") + (tables.count > 5 ? " and others" : "")
        return "PostgreSQL refuses each UPDATE and DELETE of tables whose replica identity has "
            + "generated columns that the publication does not contain (\(named)): ALTER "
            + "PUBLICATION \(publication.shownName) SET (\(Self.generatedOption)); if they are "
            + "virtual, which no publication contains, ALTER TABLE … REPLICA IDENTITY DEFAULT."
    }

    /// Returns the tables whose changes are refused; the query locks none of them.
    private func tablesRefused(by publication: String, limit: Int) throws -> [String] {
        try connection.query(
            """
            WITH RECURSIVE p AS (
                SELECT * FROM pg_publication WHERE pubname = $1 AND (pubupdate OR pubdelete)),
            told (id, has_list) AS (
                SELECT r.prrelid, r.prattrs IS NOT NULL
                FROM p JOIN pg_publication_rel AS r ON r.prpubid = p.oid
                UNION SELECT c.oid, false FROM p JOIN pg_class AS c ON p.puballtables OR EXISTS (
                    SELECT FROM pg_publication_namespace AS s
                    WHERE s.pnpubid = p.oid AND s.pnnspid = c.relnamespace)
                UNION SELECT c.oid, told.has_list
                FROM told JOIN pg_inherits ON inhparent = told.id
                JOIN pg_class AS c ON c.oid = inhrelid AND c.relispartition)
            SELECT DISTINCT format('%I.%I', n.nspname, c.relname)
            FROM p CROSS JOIN told JOIN pg_class AS c ON c.oid = told.id
            JOIN pg_namespace AS n ON n.oid = c.relnamespace
            JOIN pg_attribute AS a ON a.attrelid = c.oid
            WHERE c.relkind = 'r' AND c.relpersistence = 'p' AND c.oid >= 16384
            AND (a.attgenerated = 'v' AND c.relreplident = 'f'
                OR a.attgenerated = 's' AND p.pubgencols <> 's' AND (
                    c.relreplident = 'f' OR NOT told.has_list AND EXISTS (
                        SELECT FROM pg_index AS i WHERE i.indrelid = c.oid AND i.indisvalid
                        AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1]) AND (
                            c.relreplident = 'd' AND i.indisprimary
                            OR c.relreplident = 'i' AND i.indisreplident))))
            ORDER BY 1 LIMIT \(limit)
            """, [publication]
        ).compactMap { $0.text(0) }
    }
}
