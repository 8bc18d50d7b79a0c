import Migrations
import PostgresLink
import RelayTestKit
import Storage
import StorageSQL
import Synchronization
import Testing

@testable import StoragePostgreSQL

/// The schema of a store and its migrations.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
struct SchemaTests {
    private static func schema(
        _ place: TestPlace, _ migrations: [Migration] = Migration.releasedOnPostgreSQL
    ) throws -> PostgresSchema {
        PostgresSchema(place: try place.place(), migrations: migrations)
    }

    private static func changed(_ name: String) -> Migration {
        Migration(name: name, sql: "SELECT 1;", checksum: "0")
    }

    @Test func `a schema is created once`() throws {
        let place = try TestPlace()
        let connection = try place.session().connect()
        let schema = try Self.schema(place)
        #expect(try schema.found(connection) == nil)
        #expect(
            try schema.apply(connection, makesSchema: true)
                == Migration.releasedOnPostgreSQL.map(\.name))
        #expect(try schema.apply(connection, makesSchema: false) == [])
        #expect(try schema.found(connection) == Migration.releasedOnPostgreSQL.count)
    }

    @Test func `two processes at once create one schema`() async throws {
        let place = try TestPlace()
        let applied = try await withThrowingTaskGroup(of: [String].self) { group in
            for _ in 0..<4 {
                group.addTask {
                    let thread = try #require(PostgresThread())
                    thread.start()
                    defer { thread.end() }
                    return try await thread.run {
                        let connection = try place.session().connect()
                        return try Self.schema(place).apply(connection, makesSchema: true)
                    }
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        #expect(applied == Migration.releasedOnPostgreSQL.map(\.name))
    }

    /// A suspended server behaves so: its machine still answers for it.
    @Test func `waiting for another's migration on a silent server has a limit`()
        async throws
    {
        let place = try TestPlace()
        let holder = try place.session().connect()
        try holder.query(
            "SELECT pg_advisory_lock(hashtextextended('belfry ' || $1, 0))", [place.schema])
        let began = ContinuousClock.now
        let hasPassed = Mutex(false)
        let session = PostgresSession(
            place: try place.place(),
            watch: {
                let skipped = hasPassed.withLock { $0 } ? Duration.seconds(1000) : Duration.zero
                return began.duration(to: .now) + skipped
            }, name: "belfry test waits")
        let thread = try #require(PostgresThread())
        thread.start()
        defer { thread.end() }
        async let refusal = thread.run { () -> String in
            let connection = try session.connect()
            do {
                _ = try Self.schema(place).apply(connection, makesSchema: true)
                return "applied"
            } catch {
                return "\(error)"
            }
        }
        try await place.server.wait(
            for: "1",
            of: """
                SELECT count(*) FROM pg_stat_activity
                WHERE application_name = 'belfry test waits' AND wait_event = 'advisory'
                """)
        hasPassed.withLock { $0 = true }
        #expect(try await refusal.contains("90"))
    }

    @Test func `a schema is not created unless that is requested`() throws {
        let place = try TestPlace()
        let connection = try place.session().connect()
        let missing = try place.place().missing
        #expect(throws: missing) { try Self.schema(place).apply(connection, makesSchema: false) }
        #expect(missing.description.contains("postgresql://… --schema \(place.schema)"))
        #expect(!missing.description.contains("mounted"))
    }

    @Test func `a newer schema is refused`() throws {
        let place = try TestPlace()
        let connection = try place.session().connect()
        let newer = Migration.releasedOnPostgreSQL + [Self.changed("p9999_later")]
        _ = try Self.schema(place, newer).apply(connection, makesSchema: true)
        let known = Migration.releasedOnPostgreSQL.count
        #expect(
            throws: StorageError.newerSchema(
                found: "version \(known + 1)", known: "versions up to \(known)")
        ) { try Self.schema(place).apply(connection, makesSchema: true) }
    }

    /// Creates a role that may use the schema of `place` and all tables that exist now.
    private static func user(of place: TestPlace) throws -> String {
        let role = "r\(place.schema)"
        try place.server.sql("CREATE ROLE \(role) LOGIN")
        try place.server.sql("GRANT USAGE ON SCHEMA \(place.schema) TO \(role)")
        try place.server.sql("GRANT ALL ON ALL TABLES IN SCHEMA \(place.schema) TO \(role)")
        try place.server.sql("GRANT ALL ON ALL SEQUENCES IN SCHEMA \(place.schema) TO \(role)")
        return role
    }

    @Test func `a role that may not change the schema learns who can migrate it`() throws {
        let place = try TestPlace()
        let connection = try place.session().connect()
        let count = Migration.releasedOnPostgreSQL.count
        let older = Array(Migration.releasedOnPostgreSQL.dropLast())
        _ = try Self.schema(place, older).apply(connection, makesSchema: true)
        let other = try place.place(role: try Self.user(of: place))
        let refusal = #expect(throws: StorageError.self) {
            _ = try RelayStore.open(other, as: .forTests(), settings: .forTests)
        }
        let told = refusal?.description ?? ""
        #expect(told.contains("version \(count - 1), this Belfry needs"), "\(told)")
        #expect(told.contains("run belfry migrate as the role that owns it"), "\(told)")
        #expect(try Self.schema(place, older).found(connection) == count - 1)
    }

    /// A newer version may add a table after the role got its rights to the tables that there were.
    @Test func `a role without rights to a table is refused at the start`() async throws {
        let place = try TestPlace()
        _ = try RelayStore.migrate(try place.place())
        let role = try Self.user(of: place)
        let other = try place.place(role: role)
        let table = "\(place.schema).forgottenType"
        try place.server.sql("REVOKE ALL ON \(table) FROM \(role)")
        // A table that is not the store's does not matter.
        try place.server.sql("CREATE TABLE \(place.schema).others (name text)")
        let refusal = #expect(throws: StorageError.self) {
            _ = try RelayStore.open(other, as: .forTests(), settings: .forTests)
        }
        let told = refusal?.description ?? ""
        #expect(told.contains("permission denied for table forgottentype"), "\(told)")
        try place.server.sql("GRANT ALL ON \(table) TO \(role)")
        let store = try RelayStore.open(other, as: .forTests(), settings: .forTests)
        await store.close()
    }

    /// With any of these missing the relay would own the store, say that it is ready, and refuse
    /// what needs the table.
    @Test(arguments: [
        ("INSERT", "commitMark"), ("SELECT", "shardHead"), ("UPDATE", "shard"),
        ("UPDATE", "ownership"), ("INSERT", "logEntry"), ("DELETE", "retry"),
        ("SELECT", "changeSource"), ("DELETE", "relayNode"), ("UPDATE", "\"user\""),
        ("SELECT", "receiptBlock_id_seq"),
    ])
    func `a role that lacks one privilege is refused at the start`(
        privilege: String, table: String
    ) async throws {
        let place = try TestPlace()
        _ = try RelayStore.migrate(try place.place())
        let role = try Self.user(of: place)
        let other = try place.place(role: role)
        // Privileges that are never used do not matter.
        try place.server.sql(
            "REVOKE TRUNCATE ON ALL TABLES IN SCHEMA \(place.schema) FROM \(role)")
        try place.server.sql("REVOKE INSERT ON \(place.schema).migration FROM \(role)")
        try place.server.sql("REVOKE \(privilege) ON \(place.schema).\(table) FROM \(role)")
        let refusal = #expect(throws: StorageError.self) {
            _ = try RelayStore.open(other, as: .forTests(), settings: .forTests)
        }
        let told = refusal?.description ?? ""
        #expect(told.contains(": no \(privilege)") && told.contains("or grant it"), "\(told)")
        try place.server.sql("GRANT \(privilege) ON \(place.schema).\(table) TO \(role)")
        let store = try RelayStore.open(other, as: .forTests(), settings: .forTests)
        await store.close()
    }

    /// The change of an administrator, what the relay then says, and the change that undoes it.
    @Test(arguments: [
        (
            "ALTER TABLE retry DISABLE TRIGGER ALL", "triggers of the table retry are disabled",
            "ALTER TABLE retry ENABLE TRIGGER ALL"
        ),
        (
            "ALTER TABLE receiptBlock SET UNLOGGED", "the table receiptblock is unlogged",
            "ALTER TABLE receiptBlock SET LOGGED"
        ),
        (
            "ALTER TABLE device ENABLE ROW LEVEL SECURITY",
            "row-level security hides rows of the table device",
            "ALTER TABLE device DISABLE ROW LEVEL SECURITY"
        ),
    ])
    func `tables that no longer keep what they must are refused`(
        change: String, told: String, undoing: String
    ) throws {
        let place = try TestPlace()
        _ = try RelayStore.migrate(try place.place())
        let other = try place.place(role: try Self.user(of: place))
        try place.server.sql("SET search_path = \(place.schema); \(change)")
        let refusal = #expect(throws: StorageError.self) {
            _ = try RelayStore.open(other, as: .forTests(), settings: .forTests)
        }
        #expect("\(try #require(refusal))".contains(told))
        #expect(try RelayStore.check(other).problems.contains { $0.contains(told) })
        try place.server.sql("SET search_path = \(place.schema); \(undoing)")
        #expect(try RelayStore.check(other).problems == [])
    }

    @Test func `a disabled trigger that is not the store's own is let be`() throws {
        let place = try TestPlace()
        _ = try RelayStore.migrate(try place.place())
        try place.server.sql(
            """
            CREATE SCHEMA audit\(place.schema);
            CREATE FUNCTION audit\(place.schema).note() RETURNS trigger LANGUAGE plpgsql
                AS 'BEGIN RETURN NULL; END';
            SET search_path = \(place.schema);
            CREATE TRIGGER noted AFTER INSERT ON device
                FOR EACH ROW EXECUTE FUNCTION audit\(place.schema).note();
            ALTER TABLE device DISABLE TRIGGER noted
            """)
        #expect(try RelayStore.check(try place.place()).problems == [])
    }

    @Test func `a role whose sessions are those of a replica is refused`() throws {
        let place = try TestPlace()
        _ = try RelayStore.migrate(try place.place())
        let role = try Self.user(of: place)
        try place.server.sql("ALTER ROLE \(role) SET session_replication_role = replica")
        let refusal = #expect(throws: StorageError.self) {
            _ = try RelayStore.open(
                try place.place(role: role), as: .forTests(), settings: .forTests)
        }
        #expect("\(try #require(refusal))".contains("session_replication_role is replica"))
    }

    /// Without the privilege to use the schema, tables would be made among the temporary ones.
    @Test(arguments: ["", "USAGE", "CREATE"])
    func `a role that may not make tables in an empty schema is told so`(granted: String) throws {
        let place = try TestPlace()
        let role = "r\(place.schema)"
        try place.server.sql("CREATE ROLE \(role) LOGIN")
        try place.server.sql("CREATE SCHEMA \(place.schema)")
        if !granted.isEmpty {
            try place.server.sql("GRANT \(granted) ON SCHEMA \(place.schema) TO \(role)")
        }
        let other = try place.place(role: role)
        let refusal = #expect(throws: StorageError.self) { try RelayStore.migrate(other) }
        let told = refusal?.description ?? ""
        #expect(told.contains("permission denied for schema \(place.schema)"), "\(told)")
        #expect(told.contains("the role lacks a privilege"), "\(told)")
        try place.server.sql("GRANT USAGE, CREATE ON SCHEMA \(place.schema) TO \(role)")
        #expect(try RelayStore.migrate(other).count == Migration.releasedOnPostgreSQL.count)
    }

    @Test func `tables of another program are reported with what to do`() throws {
        let place = try TestPlace()
        try place.server.sql("CREATE SCHEMA \(place.schema)")
        try place.server.sql("CREATE TABLE \(place.schema).container (name text)")
        let refusal = #expect(throws: StorageError.self) {
            try RelayStore.migrate(try place.place())
        }
        let told = refusal?.description ?? ""
        #expect(told.hasSuffix("tables that are not Belfry's: name another schema"), "\(told)")
    }

    @Test func `a released migration that was changed is noticed`() throws {
        let place = try TestPlace()
        let connection = try place.session().connect()
        _ = try Self.schema(place).apply(connection, makesSchema: true)
        let other =
            [Self.changed("p0001_createSchema")] + Migration.releasedOnPostgreSQL.dropFirst()
        #expect(throws: StorageError.self) {
            try Self.schema(place, Array(other)).apply(connection, makesSchema: true)
        }
    }

    @Test func `a schema of another program is refused`() throws {
        let place = try TestPlace()
        try place.server.sql(
            "CREATE SCHEMA \(place.schema); CREATE TABLE \(place.schema).migration (id int)")
        let connection = try place.session().connect()
        let refusal = #expect(throws: StorageError.self) {
            try Self.schema(place).apply(connection, makesSchema: true)
        }
        #expect(refusal?.description.contains("name another schema") == true)
    }

    @Test func `a failing migration leaves nothing behind`() throws {
        let place = try TestPlace()
        let connection = try place.session().connect()
        let broken =
            Migration.releasedOnPostgreSQL + [
                Migration(
                    name: "p9999_broken", sql: "CREATE TABLE half (id int); SELECT 1 / 0;",
                    checksum: "")
            ]
        #expect(throws: PostgresError.self) {
            try Self.schema(place, broken).apply(connection, makesSchema: true)
        }
        #expect(try Self.schema(place).found(connection) == Migration.releasedOnPostgreSQL.count)
        #expect(try connection.query("SELECT to_regclass('half')") == [[nil]])
    }
}
