import PostgresLink
import Storage

/// Finds what an administrator has switched off for the tables of a store.
///
/// A relay would work with such tables and break its promises: triggers count what quotas bound,
/// and hold the references between tables; an unlogged table is emptied when the server crashes;
/// and row-level security hides rows. A restore that was cut off, or tuning, leaves tables so. An
/// administrator's own triggers may be disabled.
enum AlteredTables {
    /// Returns what is switched off and what to do; `nil` if nothing is.
    static func finding(
        in schema: String, _ connection: PostgresConnection
    ) throws -> String? {
        let found = try connection.query(
            """
            WITH entity AS (
                SELECT oid, relname AS name, relnamespace, relpersistence
                FROM pg_catalog.pg_class
                WHERE relkind = 'r' AND relname = ANY (\(NeededPrivileges.names))
                    AND relnamespace = (
                        SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = $1)
            )
            SELECT what, name FROM (
                SELECT 'session' AS what, '' AS name
                WHERE current_setting('session_replication_role') = 'replica'
                UNION ALL
                SELECT 'triggers', name FROM entity WHERE EXISTS (
                    SELECT FROM pg_catalog.pg_trigger
                    JOIN pg_catalog.pg_proc AS called ON called.oid = tgfoid
                    WHERE tgrelid = entity.oid AND tgenabled NOT IN ('O', 'A')
                        -- A move disables the store's own triggers, and its mark says more.
                        AND (tgisinternal OR called.pronamespace = entity.relnamespace
                            AND NOT EXISTS (SELECT FROM storeMove)))
                UNION ALL
                SELECT 'unlogged', name FROM entity WHERE relpersistence <> 'p'
                UNION ALL
                SELECT 'rows', name FROM entity WHERE row_security_active(entity.oid)
            ) AS finding ORDER BY what, name LIMIT 1
            """, [schema])
        guard let row = found.first, let what = row[0], let name = row[1] else { return nil }
        return switch what {
        case "session":
            "session_replication_role is replica, so no trigger works, and no reference is "
                + "checked: set it to origin for the role and the database"
        case "triggers":
            "triggers of the table \(name) are disabled, so its references are not checked, or its "
                + "rows not counted: ALTER TABLE \(name) ENABLE TRIGGER ALL, then run belfry check"
        case "unlogged":
            "the table \(name) is unlogged, so the server empties it after a crash, and what is "
                + "acknowledged could be lost: ALTER TABLE \(name) SET LOGGED"
        default:
            "row-level security hides rows of the table \(name) from the role: ALTER TABLE "
                + "\(name) NO FORCE ROW LEVEL SECURITY, or give the role BYPASSRLS"
        }
    }
}
