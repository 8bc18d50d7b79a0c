import PostgresLink

/// The SQL that an administrator runs once before a database can be followed; it is only displayed.
package struct PreparingSQL {
    private let publication: String
    private let slot: String
    private let tables: [String]

    package init(publication: String, slot: String, tables: [String]) {
        self.publication = publication
        self.slot = slot
        self.tables = tables
    }

    package var text: String {
        let named = tables.map(\.quotedTable)
        let rights =
            named.isEmpty
            ? "GRANT pg_read_all_data TO belfry;"
            : tables.rights(of: "belfry").map { $0 + ";" }.joined(separator: "\n")
        let identities =
            named.isEmpty
            ? "-- ALTER TABLE public.orders REPLICA IDENTITY FULL;"
            : named.map { "ALTER TABLE \($0) REPLICA IDENTITY FULL;" }.joined(separator: "\n")
        return """
            -- In postgresql.conf; then restart the server:
            --   wal_level = logical
            --   max_slot_wal_keep_size = 10GB   -- so that a stopped relay cannot fill the disk

            -- The role that Belfry connects as; set its password with \\password belfry.
            DO $$ BEGIN
                IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'belfry') THEN
                    ALTER ROLE belfry LOGIN REPLICATION;
                ELSE
                    CREATE ROLE belfry LOGIN REPLICATION;
                END IF;
            END $$;
            -- The right to read the tables, for the snapshot.
            \(rights)

            -- To log the row before a change in full; without it, the relay uses the rows it keeps.
            \(identities)
            -- Each partition has a setting of its own: ALTER the partitions too. PostgreSQL refuses
            -- UPDATE and DELETE of a published table with neither a primary key nor this setting;
            -- PostgreSQL 18 also with this setting and virtual generated columns: omit it there.

            -- To be run by the owner of the tables; for all tables, by a superuser.
            \(making);
            -- `belfry follow postgres --make` creates the slot, and begins with a snapshot of the
            -- rows. To begin without a snapshot:
            -- SELECT pg_create_logical_replication_slot(\(slot.quotedText), 'pgoutput');
            -- From PostgreSQL 17 on, add failover => true, so that standbys can keep a copy of it.
            """
    }
}

private extension PreparingSQL {
    /// The statements that create the publication, as one block.
    ///
    /// If a publication does not include generated columns, PostgreSQL 18 refuses changes of rows
    /// whose replica identity has some. Earlier versions do not know the option.
    var making: String {
        let body = """
            BEGIN
                \(Catalogue.publicationSQL(publication, tables: tables));
                IF current_setting('server_version_num')::int >= 180000 THEN
                    ALTER PUBLICATION \(publication.quotedName) SET (\(Catalogue.generatedOption));
                END IF;
            END
            """
        return body.asBlock
    }
}

extension String {
    /// The text as one block of SQL statements; with a dollar sign in it, it is quoted in another
    /// way.
    var asBlock: String {
        utf8.contains(UInt8(ascii: "$")) ? "DO \(quotedText)" : "DO $$ \(self) $$"
    }
}

extension [String] {
    /// Returns the statements that let a role, given as a quoted name, read these tables.
    func rights(of role: String) -> [String] {
        guard !isEmpty else { return [] }
        // Every role may use the schema public; another schema needs a privilege.
        let schemas = Set(map { $0.tableParts.schema }).subtracting(["public"]).sorted()
        return schemas.map { "GRANT USAGE ON SCHEMA \($0.quotedName) TO \(role)" }
            + ["GRANT SELECT ON \(map(\.quotedTable).joined(separator: ", ")) TO \(role)"]
    }
}
