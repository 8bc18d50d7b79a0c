import ChangeSources
import PostgresFollowing
import RelayTestKit
import Testing

/// A relay's store in the followed database, in a schema with the name of an outbox's schema.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"),
    .timeLimit(.minutes(15)))
struct OwnStoreTests {
    @Test func `other tables in the schema of an outbox are not dropped with it`() async throws {
        let server = try PostgresServer.plain()
        let name = try server.database(
            """
            CREATE TABLE t (id int PRIMARY KEY);
            CREATE SCHEMA belfry; CREATE TABLE belfry.store (id int)
            """)
        let settings = try server.outbox(name)
        try await Followed().follow(settings) { followed in
            await followed.until { $0.words.last == "following" }
        }
        try OutboxRemoval.run(settings) { .zero }
        let left = "SELECT relname FROM pg_class WHERE relnamespace = 'belfry'::regnamespace"
        #expect(try server.sql(left, in: name) == "store")
        // The first removal left no trigger, and now the schema goes too, since it is empty.
        try server.sql("INSERT INTO t VALUES (1); DROP TABLE belfry.store", in: name)
        try OutboxRemoval.run(settings) { .zero }
        #expect(try server.sql("SELECT to_regnamespace('belfry') IS NULL", in: name) == "t")
        try OutboxRemoval.run(settings) { .zero }
    }

    /// Each row of the store that was followed would create further rows in it.
    @Test func `a relay's own store is not followed along with all tables`() async throws {
        let server = try PostgresServer.shared()
        let name = try server.database(
            """
            CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1);
            CREATE SCHEMA relay; CREATE TABLE relay.migration (number int PRIMARY KEY);
            CREATE TABLE relay.shard (shard int PRIMARY KEY);
            CREATE TABLE relay.commitMark (node int PRIMARY KEY);
            CREATE TABLE relay.logEntry (position int PRIMARY KEY);
            INSERT INTO relay.logEntry VALUES (1)
            """)
        let rows = try await Followed().follow(try server.settings(name)) { followed in
            await followed.until { $0.words.last == "following" }
            try server.sql(
                "INSERT INTO relay.logEntry VALUES (2); INSERT INTO t VALUES (2)", in: name)
            await followed.until { $0.rows.contains { line($0).hasSuffix(#" - {"id":2}"#) } }
            return followed.seen.rows
        }
        #expect(
            rows.map(line) == [
                #"create t[id] - {"id":1} snapshot"#, #"create t[id] - {"id":2}"#,
            ])
    }

    /// The outbox holds the rows of other tables as texts, for which no mapping defines readers.
    @Test func `an outbox is not followed along with all tables`() async throws {
        let server = try PostgresServer.shared()
        let name = try server.database("CREATE TABLE t (id int PRIMARY KEY)")
        try await Followed().follow(try server.outbox(name)) { followed in
            await followed.until { $0.words.last == "following" }
        }
        try server.sql("INSERT INTO t VALUES (0)", in: name)
        let rows = try await Followed().follow(try server.settings(name)) { followed in
            await followed.until { $0.words.last == "following" }
            try server.sql("INSERT INTO t VALUES (1)", in: name)
            try server.sql("INSERT INTO t VALUES (2)", in: name)
            await followed.until { $0.rows.contains { line($0).hasSuffix(#" - {"id":2}"#) } }
            return followed.seen.rows
        }
        #expect(
            rows.map(line) == [
                #"create t[id] - {"id":0} snapshot"#, #"create t[id] - {"id":1}"#,
                #"create t[id] - {"id":2}"#,
            ])
    }
}
