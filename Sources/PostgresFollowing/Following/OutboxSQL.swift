import PostgresLink

/// The SQL that creates an outbox in a database, and removes it.
///
/// Triggers write each changed row into a table, in the transaction that changes it. A transaction
/// that has written holds PostgreSQL's own lock on that table until it ends. By these locks the
/// follower knows when a number can no longer appear. Only roles that may write to the table can
/// take such a lock. The trigger notifies the follower only if the follower has said that it
/// sleeps, because at commit a notifying transaction waits for all other notifying ones.
package struct OutboxSQL: Sendable {
    private let tables: [String]
    private let role: String?

    /// Creates the SQL for these tables.
    ///
    /// - Parameters:
    ///   - tables: The tables, as `schema.table`.
    ///   - role: The role that follows, if it is not the owner of the outbox.
    package init(tables: [String], role: String? = nil) {
        self.tables = tables
        self.role = role
    }

    /// The first key of the advisory locks that an outbox uses within a database.
    ///
    /// Every role of the database can take them. Nothing is lost by that, and a warning names the
    /// holder.
    static let lockClass = 0x62_656C_66
    /// The second key of the lock that a sleeping follower holds, and that transactions which found
    /// it awake share.
    static let sleepLock = 2
    /// The second key of the lock that the only follower holds.
    static let followerLock = 3
    /// The channel of notifications, which have no payload.
    static let channel = "belfry_outbox"
    /// The type of a column that the trigger did not find in the catalogue.
    ///
    /// It is PostgreSQL's `unknown`, which no column of a table has.
    static let unknownType: UInt32 = 705

    /// The statements that create the outbox, to be run one by one; run again, they change nothing.
    var makes: [String] { furniture + triggers + rights }

    /// The statements that create only the triggers.
    var triggers: [String] { tables.flatMap(triggers) }

    /// The statements that remove the outbox; rows that were not posted are lost.
    ///
    /// The schema is dropped only if it contains nothing else: by default a relay's store has the
    /// same name.
    static let drops = [
        "DROP FUNCTION IF EXISTS belfry.note_change() CASCADE",
        "DROP TABLE IF EXISTS belfry.outbox, belfry.outbox_state",
        """
        DO $$ BEGIN
            DROP SCHEMA IF EXISTS belfry;
        EXCEPTION WHEN dependent_objects_still_exist THEN
            RAISE NOTICE 'the schema belfry stays, because something else is in it';
        END $$
        """,
    ]

    /// The SQL that an administrator runs once, for display.
    package var text: String {
        (role.map { Self.roleText($0) } ?? "") + """
            -- Run this as the owner of the tables. Creating a trigger waits for transactions that
            -- write to its table, and new ones wait behind it, so the wait is limited.
            SET lock_timeout = '5s';
            \(makes.map { $0 + ";" }.joined(separator: "\n\n"))
            """
    }

    private static func roleText(_ role: String) -> String {
        """
        -- The role that Belfry connects as; set its password with \\password \(role).
        DO $$ BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = \(role.quotedText)) THEN
                CREATE ROLE \(role.quotedName) LOGIN;
            END IF;
        END $$;

        """
    }

    /// The SQL that removes the outbox, for display.
    package static var dropText: String { drops.map { $0 + ";" }.joined(separator: "\n") }

    private var furniture: [String] {
        [
            "CREATE SCHEMA IF NOT EXISTS belfry",
            """
            CREATE TABLE IF NOT EXISTS belfry.outbox (
                number bigint PRIMARY KEY, transaction xid8 NOT NULL, at timestamptz NOT NULL,
                operation text NOT NULL, relation oid NOT NULL, "schema" name NOT NULL,
                "table" name NOT NULL, columns text[], before text, after text, origin text)
            WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000)
            """,
            // The end of each transaction is looked up by this index.
            "CREATE INDEX IF NOT EXISTS outbox_transaction ON belfry.outbox (transaction, number)",
            // Numbers are versions of records, so an outbox that is created again must have higher
            // ones than the previous one.
            """
            DO $$ BEGIN
                IF to_regclass('belfry.outbox_number') IS NULL THEN
                    EXECUTE format('CREATE SEQUENCE belfry.outbox_number START %s OWNED BY '
                        'belfry.outbox.number', (extract(epoch FROM now()) * 1000000)::bigint);
                END IF;
            END $$
            """,
            """
            CREATE TABLE IF NOT EXISTS belfry.outbox_state (
                is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
                identity uuid NOT NULL DEFAULT gen_random_uuid(),
                first_number bigint NOT NULL, has_begun boolean NOT NULL DEFAULT false)
            """,
            """
            INSERT INTO belfry.outbox_state (first_number)
            SELECT last_value FROM belfry.outbox_number ON CONFLICT DO NOTHING
            """,
            Self.function,
        ]
    }

    /// The statement that creates the trigger function, with fixed settings, so that those of the
    /// writing session have no effect.
    ///
    /// A `money` value can be written only in the database's sense, because its locale decides how
    /// many decimal digits it has. So the function keeps the locale of the session that creates it.
    static let function = """
        CREATE OR REPLACE FUNCTION belfry.note_change() RETURNS trigger
        LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
        SET datestyle = 'ISO, MDY' SET intervalstyle = 'postgres' SET timezone = 'UTC'
        SET extra_float_digits = 3 SET bytea_output = 'hex' SET quote_all_identifiers = off
        SET standard_conforming_strings = on SET lc_monetary FROM CURRENT AS $$\(functionBody)$$
        """

    /// A query: whether an outbox has another form of this function that is not later, and this
    /// role may replace it.
    ///
    /// If two versions of Belfry follow, as during an upgrade of machines, the later one's function
    /// stays. Before functions had version numbers, they count as version 0.
    static let functionDiffers = #"""
        SELECT prosrc <> $1 AND coalesce(
            substring(prosrc FROM '-- Belfry''s function, version (\d{1,9})\y')::bigint, 0)
            <= \#(functionVersion)
        FROM pg_proc
        WHERE oid = to_regproc('belfry.note_change') AND pg_has_role(proowner, 'USAGE')
        """#

    /// The version of the function, which must increase with each change of it.
    ///
    /// Otherwise existing outboxes keep the old function. `OutboxFunctionTests` compares the text
    /// with the version.
    static let functionVersion = 2

    /// The body of the function, as PostgreSQL stores it.
    static let functionBody = #"""

        -- Belfry's function, version \#(functionVersion): a later one is not replaced by it.
        DECLARE
            -- A partition is told as the table that it is a part of. Its name is asked of a
            -- function, which knows the present one in every transaction.
            place text[] := parse_ident(
                coalesce(pg_partition_root(tg_relid), tg_relid)::regclass::text);
            image text;
            names text[];
        BEGIN
            -- A transaction that sees one moment finds its catalogue as well, though tables are
            -- changed meanwhile, and rows are written as they are now: these say their columns.
            IF tg_op <> 'TRUNCATE'
                AND current_setting('transaction_isolation') IN ('repeatable read', 'serializable')
            THEN
                image := CASE
                    WHEN tg_op = 'DELETE' THEN row_to_json(old) ELSE row_to_json(new) END;
                -- A json column may hold an escape that no text can have, which is left out:
                -- nobody's write fails because of that. Names have escapes of control characters
                -- alone, and what follows a backslash is none.
                IF strpos(image, E'\\u') > 0 THEN
                    image := regexp_replace(
                        image, E'(\\\\.)|\\\\u(?:0000|(?!00[01]).{4})', E'\\1', 'g');
                END IF;
                names := (SELECT array_agg(name ORDER BY number)
                    FROM json_object_keys(image::json) WITH ORDINALITY AS own (name, number));
            END IF;
            -- It locks the table before it takes the number, and until the transaction has ended.
            INSERT INTO belfry.outbox (number, transaction, at, operation, relation, "schema",
                "table", columns, before, after, origin)
            VALUES (nextval('belfry.outbox_number'), pg_current_xact_id(), clock_timestamp(),
                tg_op, tg_relid, place[1], place[2],
                CASE WHEN tg_op = 'TRUNCATE' THEN NULL WHEN names IS NOT NULL THEN (
                    SELECT array_agg(ARRAY[own.name, coalesce((
                        SELECT CASE WHEN attgenerated = '' THEN atttypid ELSE 0 END
                        FROM pg_attribute WHERE attrelid = tg_relid AND attname = own.name
                        AND NOT attisdropped), \#(unknownType))::text] ORDER BY own.number)
                    FROM unnest(names) WITH ORDINALITY AS own (name, number))
                ELSE (
                    SELECT array_agg(ARRAY[attname::text,
                        CASE WHEN attgenerated = '' THEN atttypid ELSE 0 END::text] ORDER BY attnum)
                    FROM pg_attribute
                    WHERE attrelid = tg_relid AND attnum > 0 AND NOT attisdropped) END,
                CASE WHEN tg_op IN ('UPDATE', 'DELETE') THEN old::text END,
                CASE WHEN tg_op IN ('INSERT', 'UPDATE') THEN new::text END,
                current_setting('belfry.origin', true));
            -- The follower is told only if it sleeps.
            IF NOT pg_try_advisory_xact_lock_shared(\#(lockClass), \#(sleepLock)) THEN
                PERFORM pg_notify('\#(channel)', '');
            END IF;
            RETURN NULL;
        END
        """#

    /// Returns the statement that creates a table's triggers.
    ///
    /// A partition has the triggers of its partitioned table, and cannot have others.
    private func triggers(on table: String) -> [String] {
        let body = """
            BEGIN
                IF NOT EXISTS (SELECT FROM pg_trigger WHERE tgname = 'belfry_outbox'
                    AND tgrelid = \(table.quotedTable.quotedText)::regclass AND tgparentid <> 0)
                THEN
                    CREATE OR REPLACE TRIGGER belfry_outbox AFTER INSERT OR UPDATE OR DELETE
                    ON \(table.quotedTable) FOR EACH ROW EXECUTE FUNCTION belfry.note_change();
                    CREATE OR REPLACE TRIGGER belfry_outbox_truncate AFTER TRUNCATE
                    ON \(table.quotedTable) FOR EACH STATEMENT EXECUTE FUNCTION
                        belfry.note_change();
                END IF;
            END
            """
        return [body.asBlock]
    }

    private var rights: [String] {
        guard let role = role?.quotedName else { return [] }
        return [
            "GRANT USAGE ON SCHEMA belfry TO \(role)",
            "GRANT SELECT, DELETE ON belfry.outbox TO \(role)",
            "GRANT SELECT, UPDATE ON belfry.outbox_state TO \(role)",
        ] + tables.rights(of: role)
    }
}
