import ChangeSources
import PostgresLink

/// Queries the server's catalogue, beside its log.
///
/// Concurrency: only the follower's thread uses it.
final class Catalogue: @unchecked Sendable {
    let connection: PostgresConnection

    init(_ connection: PostgresConnection) {
        self.connection = connection
    }

    /// Sets the formats in which values are written, and removes the limits of ordinary sessions.
    ///
    /// A role or a database may have set limits that would end a connection which waits for
    /// changes, or make it fail to create what it must. Only PostgreSQL 17 and later have the last
    /// setting.
    static let writing = """
        SET datestyle = 'ISO, MDY'; SET intervalstyle = 'postgres'; SET timezone = 'UTC';
        SET extra_float_digits = 3; SET bytea_output = 'hex'; SET quote_all_identifiers = off;
        SET standard_conforming_strings = on; SET statement_timeout = 0; SET lock_timeout = 0;
        SET idle_in_transaction_session_timeout = 0; SET idle_session_timeout = 0;
        SET default_transaction_read_only = off; SET default_transaction_deferrable = off;
        SET default_transaction_isolation = 'read committed'; SET row_security = off;
        SET search_path = pg_catalog; SET client_min_messages = error;
        SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'transaction_timeout'
        """

    // MARK: The server

    var walLevel: String {
        get throws { try connection.query("SHOW wal_level").first?.first.flatMap { $0 } ?? "" }
    }

    /// Returns the server's system identifier and current timeline, without the earlier ones.
    ///
    /// Some managed servers do not reveal them; then the result is empty.
    func timeline() throws -> Timelines {
        guard let found = try connection.askTimeline() else { return Timelines() }
        return Timelines(system: found.cluster, current: found.number)
    }

    /// Returns the role, and whether it may replicate, directly or by a role of a managed server.
    func role() throws -> (name: String, mayReplicate: Bool) {
        let rows = try connection.query(
            """
            SELECT rolname, rolsuper OR rolreplication OR EXISTS (
                SELECT FROM pg_roles AS granted
                WHERE granted.rolname IN ('rds_replication', 'azure_pg_admin', 'cloudsqlsuperuser')
                AND pg_has_role(current_user, granted.oid, 'MEMBER'))
            FROM pg_roles WHERE rolname = current_user
            """)
        return (rows.first?.text(0) ?? "", rows.first?.text(1) == "t")
    }

    /// Describes the session of a server's process.
    func holder(_ process: String) throws -> String {
        let rows = try connection.query(
            """
            SELECT usename, application_name, coalesce(host(client_addr), 'this machine')
            FROM pg_stat_activity WHERE pid = $1::int
            """, [process])
        guard let row = rows.first, let role = row.text(0) else { return "process \(process)" }
        let name = row.text(1).flatMap { $0.isEmpty ? nil : ", \($0.prefix(64))" } ?? ""
        let place = row.text(2).map { ", from \($0)" } ?? ""
        return "process \(process), role \(role)\(name)\(place)"
    }

    /// Returns whether a process of the server exists.
    func hasProcess(_ process: Int) throws -> Bool {
        try !connection.query(
            "SELECT FROM pg_stat_activity WHERE pid = $1::int", [String(process)]
        ).isEmpty
    }

    /// Returns whether a process that sends the log waits until standbys have confirmed it.
    ///
    /// It may be a short wait. Only PostgreSQL 17 and later wait, and only for a slot that is
    /// marked for failover.
    func waitsForStandbys(_ process: Int) throws -> Bool {
        try !connection.query(
            """
            SELECT FROM pg_stat_activity
            WHERE pid = $1::int AND wait_event = 'WaitForStandbyConfirmation'
            """, [String(process)]
        ).isEmpty
    }

    /// Describes the transaction that a process of the server waits for; `nil` if it waits for
    /// none.
    func transaction(thatHoldsUp process: Int) throws -> String? {
        let blocking = try connection.query(
            "SELECT blocking FROM unnest(pg_blocking_pids($1::int)) AS b (blocking) LIMIT 1",
            [String(process)])
        guard let holder = blocking.first?.text(0) else { return nil }
        // A transaction that was prepared for two-phase commit has no process.
        guard holder == "0" else { return try self.holder(holder) }
        let prepared = try connection.query(
            "SELECT gid FROM pg_prepared_xacts ORDER BY prepared LIMIT 1")
        return "prepared transaction" + (prepared.first?.text(0).map { " \($0.prefix(64))" } ?? "")
    }

    // MARK: Publications

    /// Returns the OID of a publication, which identifies it even if the name is used again; `nil`
    /// if there is none.
    func publication(_ name: String) throws -> String? {
        try connection.query("SELECT oid FROM pg_publication WHERE pubname = $1", [name])
            .first?.first.flatMap { $0 }
    }

    /// Refuses a publication that was created again since it was followed.
    ///
    /// A server of version 18 or later silently skips changes that were made while there was none.
    /// An older server itself refuses to continue.
    ///
    /// - Throws: ``FollowProblem/publicationLost(_:)``.
    func require(_ name: String, numbered publication: String, as known: String?) throws {
        guard let known, known != publication, connection.serverVersion >= 180_000 else { return }
        throw FollowProblem.publicationLost("\(name) was dropped and created again")
    }

    func makePublication(_ name: String, tables: [String]) throws {
        let generated = tellsGenerated ? ", \(Self.generatedOption)" : ""
        try Self.naming {
            try connection.query(
                Self.publicationSQL(name, tables: tables, options: generated))
        }
    }

    static func publicationSQL(_ name: String, tables: [String], options: String = "") -> String {
        let list =
            tables.isEmpty
            ? "ALL TABLES" : "TABLE " + tables.map(\.quotedTable).joined(separator: ", ")
        // Changes of a partition are published as those of the partitioned table.
        return "CREATE PUBLICATION \(name.quotedName) FOR \(list) "
            + "WITH (publish_via_partition_root = true\(options))"
    }

    /// Returns those of `tables` that the database does not have.
    func tablesAbsent(among tables: [String]) throws -> [String] {
        try tables.filter { table in
            let found = try connection.query(
                "SELECT to_regclass($1) IS NOT NULL", [table.quotedTable])
            return found.first?.first != "t"
        }
    }

    /// Refuses `tables` if the database does not have all of them.
    ///
    /// - Throws: ``FollowProblem/tableMissing(_:)``.
    func requireTables(_ tables: [String]) throws {
        let missing = try tablesAbsent(among: tables)
        guard missing.isEmpty else {
            throw FollowProblem.tableMissing(missing.prefix(5).joined(separator: ", "))
        }
    }

    /// A table of a publication, with the condition that its rows must meet.
    struct PublishedTable {
        let relation: Relation
        let namingKey: [String]
        let filter: String?
        let isPartitioned: Bool

        /// The schema and the name as quoted names in SQL.
        var quotedPlace: String { "\(relation.schema.quotedName).\(relation.name.quotedName)" }

        /// The query that reads its existing rows.
        var select: String {
            let columns = relation.columns.map(\.name.quotedName).joined(separator: ", ")
            let only = isPartitioned ? "" : "ONLY "
            let condition = filter.map { " WHERE \($0)" } ?? ""
            return "SELECT \(columns) FROM \(only)\(quotedPlace)\(condition)"
        }
    }

    /// Returns the tables of a publication; before PostgreSQL 15 it has neither column lists nor
    /// conditions.
    func tables(of publication: String) throws -> [PublishedTable] {
        let rows = try connection.query(
            """
            SELECT t.schemaname, t.tablename, c.oid, c.relkind = 'p', c.relreplident,
                to_jsonb(t)->>'rowfilter', to_jsonb(t)->'attnames'
            FROM pg_publication_tables AS t
            JOIN pg_namespace AS n ON n.nspname = t.schemaname
            JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = t.tablename
            WHERE t.pubname = $1 ORDER BY 1, 2
            """, [publication])
        let stores = try stores(among: Set(rows.compactMap { $0.text(0) }))
        return try rows.filter { row in
            let (schema, table) = (row.text(0) ?? "", row.text(1) ?? "")
            return !stores.contains(schema) && !Self.isOutbox(schema: schema, table: table)
        }.map(table)
    }

    /// Returns the tables whose triggers write to an outbox; for partitions, the partitioned table.
    func tablesWithOutbox() throws -> [PublishedTable] {
        try connection.query(
            """
            SELECT DISTINCT n.nspname, c.relname, c.oid, c.relkind = 'p', c.relreplident::text,
                NULL, NULL
            FROM pg_trigger AS t
            JOIN pg_class AS c ON c.oid = coalesce(pg_partition_root(t.tgrelid), t.tgrelid)
            JOIN pg_namespace AS n ON n.oid = c.relnamespace
            WHERE t.tgname = 'belfry_outbox' AND t.tgparentid = 0
            AND t.tgenabled IN ('O', 'A')
            ORDER BY 1, 2
            """
        ).map(table)
    }

    /// Creates a table from a row with its schema, name, OID, whether it is partitioned, its
    /// replica identity, the condition for its rows, and the published columns.
    private func table(_ row: [String?]) throws -> PublishedTable {
        let id = UInt32(row.text(2) ?? "") ?? 0
        // Since version 18 a publication may include generated columns, which are then in its
        // column list.
        let told = tellsGenerated ? "OR $2::jsonb ? attname::text" : ""
        let columns = try connection.query(
            """
            SELECT attname, atttypid FROM pg_attribute
            WHERE attrelid = $1::oid AND attnum > 0 AND NOT attisdropped
            AND (attgenerated = '' \(told))
            AND ($2::jsonb IS NULL OR $2::jsonb = 'null' OR $2::jsonb ? attname::text)
            ORDER BY attnum
            """, [row.text(2), row.text(6)])
        return PublishedTable(
            relation: Relation(
                id: id, schema: row.text(0) ?? "", name: row.text(1) ?? "",
                identity: row.text(4)?.utf8.first ?? UInt8(ascii: "d"),
                columns: columns.map { column in
                    RelationColumn(
                        name: column.text(0) ?? "", type: UInt32(column.text(1) ?? "") ?? 0,
                        isIdentity: false)
                }),
            namingKey: try namingKey(of: id), filter: row.text(5),
            isPartitioned: row.text(3) == "t")
    }

    /// Returns the names of a table's columns that a publication, or else an outbox, contains, in
    /// the table's order.
    func columns(of table: UInt32, by publication: String?) throws -> [String] {
        try connection.query(
            """
            SELECT attname FROM pg_attribute
            WHERE attrelid = $1::oid AND attnum > 0 AND NOT attisdropped
            AND (attgenerated = '' OR attgenerated = 's' AND EXISTS (
                SELECT FROM pg_publication AS p
                WHERE pubname = $2 AND to_jsonb(p)->>'pubgencols' = 's'))
            ORDER BY attnum
            """, [String(table), publication]
        ).compactMap { $0.text(0) }
    }

    /// Returns the types of a table's columns; 0 for generated ones.
    func columnTypes(of table: UInt32) throws -> [String: UInt32] {
        let rows = try connection.query(
            """
            SELECT attname, CASE WHEN attgenerated = '' THEN atttypid ELSE 0 END
            FROM pg_attribute WHERE attrelid = $1::oid AND attnum > 0 AND NOT attisdropped
            """, [String(table)])
        var types: [String: UInt32] = [:]
        for row in rows {
            guard let name = row.text(0), let type = row.text(1).flatMap({ UInt32($0) })
            else { continue }
            types[name] = type
        }
        return types
    }

    /// Returns the columns that name a row.
    ///
    /// They are the primary key; without one, they are the columns of the index that is the replica
    /// identity, in the table's order, as in the log.
    func namingKey(of table: UInt32) throws -> [String] {
        let key = try primaryKey(of: table)
        guard key.isEmpty else { return key }
        return try connection.query(
            """
            SELECT a.attname FROM pg_index AS i
            JOIN pg_class AS c ON c.oid = i.indrelid AND c.relreplident = 'i'
            CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k (attnum, place)
            JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
            WHERE i.indrelid = $1::oid AND i.indisreplident AND k.place <= i.indnkeyatts
            ORDER BY a.attnum
            """, [String(table)]
        ).compactMap { $0.text(0) }
    }

    /// Returns the columns of the primary key in the key's order, without included ones.
    func primaryKey(of table: UInt32) throws -> [String] {
        try connection.query(
            """
            SELECT a.attname FROM pg_index AS i
            CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k (attnum, place)
            JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
            WHERE i.indrelid = $1::oid AND i.indisprimary AND k.place <= i.indnkeyatts
            ORDER BY k.place
            """, [String(table)]
        ).compactMap { $0.text(0) }
    }

    /// Returns whether a table's primary key is `DEFERRABLE`, and so checked only at the end of a
    /// statement or transaction.
    func isKeyDeferrable(_ table: UInt32) throws -> Bool {
        try !connection.query(
            "SELECT FROM pg_index WHERE indrelid = $1::oid AND indisprimary AND NOT indimmediate",
            [String(table)]
        ).isEmpty
    }

    /// Returns whether a table is partitioned, so that its rows are those of its partitions.
    func isPartitioned(_ table: UInt32) throws -> Bool {
        try !connection.query(
            "SELECT FROM pg_class WHERE oid = $1::oid AND relkind = 'p'", [String(table)]
        ).isEmpty
    }

    /// Returns the types that users created.
    func types() throws -> TypeCatalogue {
        let rows = try connection.query(
            """
            SELECT oid, typbasetype, CASE WHEN typcategory = 'A' THEN typelem ELSE 0 END, typdelim
            FROM pg_type WHERE oid >= \(PostgresKind.firstMade) AND typtype IN ('b', 'd', 'e')
            """)
        var entries: [UInt32: TypeCatalogue.Entry] = [:]
        for row in rows {
            guard let id = row.text(0).flatMap({ UInt32($0) }) else { continue }
            func other(_ index: Int) -> UInt32? {
                row.text(index).flatMap { UInt32($0) }.flatMap { $0 == 0 ? nil : $0 }
            }
            entries[id] = TypeCatalogue.Entry(
                base: other(1), element: other(2),
                separator: row.text(3)?.utf8.first ?? PostgresKind.comma)
        }
        return TypeCatalogue(entries)
    }
}
