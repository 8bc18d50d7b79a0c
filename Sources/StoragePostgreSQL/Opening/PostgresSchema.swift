import Migrations
import PostgresLink
import Storage
import StorageSQL

/// Brings a schema of a database to the newest version; only one process does so at a time.
///
/// The version is the number of migrations in the table `migration`. Their checksums there reveal a
/// migration that was changed after its release.
struct PostgresSchema {
    let place: PostgresPlace
    /// The migrations in order.
    let migrations: [Migration]

    /// The version that these migrations lead to.
    var version: Int { migrations.count }

    /// Returns the version of the schema; `nil` if it does not exist or is empty.
    ///
    /// - Throws: ``StorageError/foreignSchema(path:reason:)`` if it belongs to another program, and
    ///   ``StorageError/newerSchema(found:known:)`` if it has more migrations than this build
    ///   knows.
    func found(_ connection: PostgresConnection) throws -> Int? {
        let rows = try connection.query(
            """
            SELECT (SELECT count(*) FROM pg_catalog.pg_class WHERE relnamespace = space.oid),
                (SELECT count(*) FROM pg_catalog.pg_class
                    WHERE relnamespace = space.oid
                        AND relname IN ('migration', 'shard', 'logentry')),
                has_schema_privilege(space.oid, 'USAGE')
            FROM pg_catalog.pg_namespace AS space WHERE nspname = $1
            """, [place.schema])
        guard let row = rows.first, let all = row[0], all != "0" else { return nil }
        guard row[1] == "3" else {
            throw StorageError.foreignSchema(
                path: "\(place)",
                reason: "it has tables that are not Belfry's: name another schema")
        }
        // Without this check the error would say that the tables do not exist.
        guard row[2] == "t" else {
            throw PostgresError(
                state: "42501", message: "permission denied for schema \(place.schema)")
        }
        let steps = try connection.query("SELECT name, checksum FROM migration ORDER BY number")
        guard steps.count <= version else {
            throw StorageError.newerSchema(
                found: "version \(steps.count)", known: "versions up to \(version)")
        }
        for (step, migration) in zip(steps, migrations)
        where step != [migration.name, migration.checksum] {
            throw StorageError.foreignSchema(
                path: "\(place)",
                reason: "migration \(step[0] ?? "") is not the released \(migration.name): "
                    + StorageError.othersSchema)
        }
        return steps.count
    }

    /// Refuses a role that lacks a privilege on one of the store's tables.
    ///
    /// This happens when privileges on all tables were granted before a newer version created
    /// another table, or when not all four were granted. Without the check, the relay would own the
    /// store and fail later.
    ///
    /// - Throws: ``PostgresError``, with the server's own state and message for the table.
    func refuseUngranted(_ connection: PostgresConnection) throws {
        if let lacking = try NeededPrivileges.lacking(in: place.schema, connection) {
            throw lacking
        }
    }

    /// Refuses tables for which an administrator has switched off what the store relies on.
    ///
    /// - Throws: ``StorageError/inaccessible(path:reason:)``.
    func refuseAltered(_ connection: PostgresConnection) throws {
        if let finding = try AlteredTables.finding(in: place.schema, connection) {
            throw StorageError.inaccessible(path: "\(place)", reason: finding)
        }
    }

    /// How long another process's migrations are waited for.
    ///
    /// It is longer than the server's limit for a lock, so that the server's own error comes first.
    /// A server that hangs sends none, and a standby relay would then wait for ever, although
    /// another server may have replaced it.
    private static let longestWait = Duration.seconds(90)

    /// Applies the missing migrations, each in a transaction of its own.
    ///
    /// - Parameters:
    ///   - connection: A connection without a transaction.
    ///   - makesSchema: Whether a schema is created if there is none.
    /// - Returns: The names of the applied migrations.
    /// - Throws: ``StorageError/newerSchema(found:known:)`` and
    ///   ``StorageError/foreignSchema(path:reason:)``;
    ///   ``StorageError/missingSchema(place:schema:)`` if there is no schema and `makesSchema` is
    ///   false; ``StorageError/inaccessible(path:reason:)`` if the role may not change the schema.
    func apply(_ connection: PostgresConnection, makesSchema: Bool) throws -> [String] {
        // Another process may be migrating, which takes as long as its migrations do. If that
        // process hangs between two of them, the server ends its session.
        try connection.query(
            """
            SET statement_timeout = 0; SET lock_timeout = '60s'; SET idle_session_timeout = '10s'
            """)
        let key = "hashtextextended('belfry ' || $1, 0)"
        try connection.query(
            "SELECT pg_advisory_lock(\(key))", [place.schema], within: Self.longestWait)
        defer {
            _ = try? connection.query("SELECT pg_advisory_unlock(\(key))", [place.schema])
            _ = try? connection.query(PostgresSession.limits)
            _ = try? connection.query(PostgresSession.idleLimit)
        }
        let found = try found(connection)
        guard found != nil || makesSchema else { throw place.missing }
        if found == nil { try make(connection) }
        let first = found ?? 0
        // A migration must not wait long for a lock, because readers queue behind it.
        try connection.query("SET lock_timeout = '3s'")
        for number in first..<version { try apply(number, connection) }
        return migrations[first...].map(\.name)
    }

    /// Makes the schema if there is none; refuses an empty one in which the role may not make
    /// tables.
    ///
    /// Without the privilege to use a schema, it is left out of the search path, and the tables
    /// would be made among the temporary ones.
    private func make(_ connection: PostgresConnection) throws {
        let rows = try connection.query(
            """
            SELECT has_schema_privilege(oid, 'USAGE') AND has_schema_privilege(oid, 'CREATE')
            FROM pg_catalog.pg_namespace WHERE nspname = $1
            """, [place.schema])
        guard let row = rows.first else {
            try connection.query("CREATE SCHEMA \(place.schema.quotedName)")
            return
        }
        guard row[0] == "t" else {
            throw PostgresError(
                state: "42501", message: "permission denied for schema \(place.schema)")
        }
    }

    /// How often a migration is tried if writers or long readers of the store hold the locks that
    /// it needs.
    private static let attempts = 3

    private func apply(_ number: Int, _ connection: PostgresConnection) throws {
        for _ in 1..<Self.attempts {
            do {
                return try applyOnce(number, connection)
            } catch let error as PostgresError where [.again, .busy].contains(error.verdict) {
                // The statements that queued behind this one go first.
                continue
            }
        }
        try applyOnce(number, connection)
    }

    private func applyOnce(_ number: Int, _ connection: PostgresConnection) throws {
        let step = migrations[number]
        let table =
            number > 0
            ? ""
            : """
            CREATE TABLE migration (
                number bigint PRIMARY KEY,
                name text COLLATE "C" NOT NULL,
                checksum text COLLATE "C" NOT NULL
            );

            """
        do {
            // Sent as one text, it is one transaction.
            try connection.query(
                """
                BEGIN;
                \(table)\(step.sql)
                INSERT INTO migration (number, name, checksum)
                VALUES (\(number + 1), \(step.name.quotedText), \(step.checksum.quotedText));
                COMMIT
                """, within: nil)
        } catch {
            _ = try? connection.query("ROLLBACK")
            if number > 0, let error = error as? PostgresError, error.state == "42501" {
                throw refusal(of: error, after: number)
            }
            throw error
        }
    }

    /// The error for a role that may use the tables but not change them, for example because
    /// another role migrates.
    private func refusal(of error: PostgresError, after found: Int) -> StorageError {
        .inaccessible(
            path: "\(place)",
            reason: "its schema has version \(found), this Belfry needs version \(version), and "
                + "the role may not change it (\(error)): run belfry migrate as the role that owns "
                + "it, or make this role its owner")
    }
}
