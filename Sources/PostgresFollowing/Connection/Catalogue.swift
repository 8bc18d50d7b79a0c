import ChangeSources
import PostgresLink

/// What is asked of the server beside its log.
///
/// It is used by the follower's thread alone, and that protects it.
final class Catalogue: @unchecked Sendable {
    let connection: PostgresConnection

    init(_ connection: PostgresConnection) {
        self.connection = connection
    }

    /// How values are written, so that they can be read; and none of the bounds of ordinary work.
    ///
    /// A role or a database may have set them: they would end a connection that waits for changes,
    /// or keep it from making what it is asked to make. Only PostgreSQL 17 knows the last one.
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

    /// Whose log the server writes, and on which timeline, without those before it; where it does
    /// not say that, as some managed servers, nobody's.
    func timeline() throws -> Timelines {
        guard let found = try connection.askTimeline() else { return Timelines() }
        return Timelines(system: found.cluster, current: found.number)
    }

    /// The role, and whether it may replicate by itself or by one of the roles that managed servers
    /// grant.
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

    /// Who a process of the server works for, in words.
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

    /// Whether a process of the server is there.
    func hasProcess(_ process: Int) throws -> Bool {
        try !connection.query(
            "SELECT FROM pg_stat_activity WHERE pid = $1::int", [String(process)]
        ).isEmpty
    }

    /// Whether a process that tells the log waits for standbys that are to have it first, if only
    /// for a moment; only PostgreSQL 17 has such, and only a slot that is to outlast a failover
    /// waits.
    func waitsForStandbys(_ process: Int) throws -> Bool {
        try !connection.query(
            """
            SELECT FROM pg_stat_activity
            WHERE pid = $1::int AND wait_event = 'WaitForStandbyConfirmation'
            """, [String(process)]
        ).isEmpty
    }

    /// The transaction that a process of the server waits for, in words; `nil` if it waits for
    /// none.
    func transaction(thatHoldsUp process: Int) throws -> String? {
        let blocking = try connection.query(
            "SELECT blocking FROM unnest(pg_blocking_pids($1::int)) AS b (blocking) LIMIT 1",
            [String(process)])
        guard let holder = blocking.first?.text(0) else { return nil }
        // What was prepared for a second phase belongs to no process.
        guard holder == "0" else { return try self.holder(holder) }
        let prepared = try connection.query(
            "SELECT gid FROM pg_prepared_xacts ORDER BY prepared LIMIT 1")
        return "prepared" + (prepared.first?.text(0).map { " as \($0.prefix(64))" } ?? "")
    }

    // MARK: Publications

    /// The number of a publication, which another of its name has not; `nil` if there is none.
    func publication(_ name: String) throws -> String? {
        try connection.query("SELECT oid FROM pg_publication WHERE pubname = $1", [name])
            .first?.first.flatMap { $0 }
    }

    /// Refuses a publication that was made anew since it was followed, of a server that passes over
    /// what was changed while there was none; before version 18 it refuses to go on.
    ///
    /// - Throws: ``FollowProblem/publicationLost(_:)``.
    func require(_ name: String, numbered publication: String, as known: String?) throws {
        guard let known, known != publication, connection.serverVersion >= 180_000 else { return }
        throw FollowProblem.publicationLost("\(name) was made anew")
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
        // A partition is told as the table that it is a part of.
        return "CREATE PUBLICATION \(name.quotedName) FOR \(list) "
            + "WITH (publish_via_partition_root = true\(options))"
    }

    /// Those of `tables` that the database lacks.
    func tablesAbsent(among tables: [String]) throws -> [String] {
        try tables.filter { table in
            let found = try connection.query(
                "SELECT to_regclass($1) IS NOT NULL", [table.quotedTable])
            return found.first?.first != "t"
        }
    }

    /// Refuses `tables` of which the database lacks some.
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

        /// As a name in SQL.
        var quotedPlace: String { "\(relation.schema.quotedName).\(relation.name.quotedName)" }

        /// What reads its rows as they are.
        var select: String {
            let columns = relation.columns.map(\.name.quotedName).joined(separator: ", ")
            let only = isPartitioned ? "" : "ONLY "
            let condition = filter.map { " WHERE \($0)" } ?? ""
            return "SELECT \(columns) FROM \(only)\(quotedPlace)\(condition)"
        }
    }

    /// Servers before 15 know neither columns nor conditions of a publication.
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

    /// The tables whose changes triggers write to an outbox; of partitioned ones the whole.
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

    /// A table by its schema, name, number, whether it is partitioned, its replica identity, the
    /// condition on its rows, and the columns that are told.
    private func table(_ row: [String?]) throws -> PublishedTable {
        let id = UInt32(row.text(2) ?? "") ?? 0
        // From 18 on a publication may tell generated columns too, and has those that it does.
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

    /// The names of a table's columns that the log has by a publication, or an outbox without one,
    /// in its order.
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

    /// The types of a table's columns; of generated ones 0.
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

    /// The columns that name a row: of the primary key, else of the index that is the replica
    /// identity, in the table's order, as the log marks them.
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

    /// The columns of the primary key, in its order, without those that its index only includes.
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

    /// Whether a table's primary key is looked at when a statement or a transaction ends.
    func isKeyDeferrable(_ table: UInt32) throws -> Bool {
        try !connection.query(
            "SELECT FROM pg_index WHERE indrelid = $1::oid AND indisprimary AND NOT indimmediate",
            [String(table)]
        ).isEmpty
    }

    /// Whether a table's rows are those of its partitions.
    func isPartitioned(_ table: UInt32) throws -> Bool {
        try !connection.query(
            "SELECT FROM pg_class WHERE oid = $1::oid AND relkind = 'p'", [String(table)]
        ).isEmpty
    }

    /// The types that users made.
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
