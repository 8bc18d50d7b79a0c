import PostgresLink

/// What makes an outbox in a database, and removes it.
///
/// Triggers write each changed row into a table in the transaction that changes it. A transaction
/// that has written holds PostgreSQL's own lock on that table until it has ended, by which the
/// follower knows when a number can no longer appear: only who may write to it can hold that one.
/// It tells the follower only if that has said that it sleeps, because whoever notifies waits for
/// all others who do when it commits.
package struct OutboxSQL: Sendable {
    private let tables: [String]
    private let role: String?

    /// - Parameters:
    ///   - tables: as `schema.table`.
    ///   - role: who follows, if it is not the owner of the outbox.
    package init(tables: [String], role: String? = nil) {
        self.tables = tables
        self.role = role
    }

    /// The locks that all who use an outbox share, within a database: the first key of each.
    ///
    /// Every role of the database can take them: nothing is lost by that, and whoever does is
    /// named.
    static let lockClass = 0x62_656C_66
    /// Held by a follower that sleeps, and in common by transactions that saw it awake.
    static let sleepLock = 2
    /// Held by the one that follows.
    static let followerLock = 3
    /// What is notified; a notification has no payload.
    static let channel = "belfry_outbox"
    /// The type of a column that the transaction did not find in the catalogue (PostgreSQL's
    /// `unknown`, which no column has).
    static let unknownType: UInt32 = 705

    /// The statements that make it, each by itself; made twice, they change nothing.
    var makes: [String] { furniture + triggers + rights }

    /// The statements that make triggers alone.
    var triggers: [String] { tables.flatMap(triggers) }

    /// The statements that remove it; rows that were not posted are lost.
    ///
    /// The schema goes only if nothing else is in it: a relay's store is called so as well, unless
    /// its settings say otherwise.
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

    /// What an administrator runs once, to be shown.
    package var text: String {
        (role.map { Self.roleText($0) } ?? "") + """
            -- By the owner of the tables. Each trigger waits for transactions that write to its
            -- table, and holds others up meanwhile: so not for long.
            SET lock_timeout = '5s';
            \(makes.map { $0 + ";" }.joined(separator: "\n\n"))
            """
    }

    private static func roleText(_ role: String) -> String {
        """
        -- The role that follows; set its password with \\password \(role).
        DO $$ BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = \(role.quotedText)) THEN
                CREATE ROLE \(role.quotedName) LOGIN;
            END IF;
        END $$;

        """
    }

    /// What removes it, to be shown.
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
            // Where a transaction ends is asked of each one.
            "CREATE INDEX IF NOT EXISTS outbox_transaction ON belfry.outbox (transaction, number)",
            // Numbers are versions of records: those of an outbox that is made anew must be higher
            // than those of the one before.
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

    /// Says who the function runs as and how values are written as text, and what it does: whatever
    /// the session that writes has set.
    ///
    /// An amount of `money` can only be written as the database means it: its locale says how many
    /// digits are behind the point. So the function keeps that of the session which makes it.
    static let function = """
        CREATE OR REPLACE FUNCTION belfry.note_change() RETURNS trigger
        LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
        SET datestyle = 'ISO, MDY' SET intervalstyle = 'postgres' SET timezone = 'UTC'
        SET extra_float_digits = 3 SET bytea_output = 'hex' SET quote_all_identifiers = off
        SET standard_conforming_strings = on SET lc_monetary FROM CURRENT AS $$\(functionBody)$$
        """

    /// Whether an outbox has this function in another form, which is no later one, and who asks may
    /// replace it.
    ///
    /// Of two followers, as while machines are upgraded, the later one's stays; before there were
    /// numbers it had none.
    static let functionDiffers = #"""
        SELECT prosrc <> $1 AND coalesce(
            substring(prosrc FROM '-- Belfry''s function, version (\d{1,9})\y')::bigint, 0)
            <= \#(functionVersion)
        FROM pg_proc
        WHERE oid = to_regproc('belfry.note_change') AND pg_has_role(proowner, 'USAGE')
        """#

    /// One more each time that the function is changed, or outboxes that are there keep the one
    /// before; `OutboxFunctionTests` holds the text to it.
    static let functionVersion = 2

    /// What the function does, as PostgreSQL keeps it.
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

    /// A partition has the trigger of what it is a part of, and may have none of its own.
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
