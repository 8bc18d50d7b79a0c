import ChangeSources
import PostgresFollowing
import RelayModel
import RelayTestKit
import Testing

/// Tables are altered while the snapshot reads them.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"),
    .timeLimit(.minutes(15)))
struct SnapshotTests {
    /// The server creates a slot only after the open transactions have ended.
    @Test func `a table of a transaction that the slot waited for is read too`() async throws {
        // A server of its own: the slot would also wait for other tests' transactions.
        let server = try PostgresServer(["wal_level=logical"])
        defer { server.end() }
        let name = try server.database("CREATE TABLE t (id int PRIMARY KEY)")
        let session = try PostgresSession(server, name)
        try session.run(
            """
            BEGIN; CREATE TYPE mood AS ENUM ('sad', 'ok');
            CREATE TABLE late (id int PRIMARY KEY, ms mood[]); INSERT INTO late VALUES (1, '{ok}')
            """)
        let followed = Followed()
        let follower = try followed.follower(try server.settings(name))
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await follower.run() }
            try await server.wait(
                for: "1", of: "SELECT count(*) FROM pg_replication_slots WHERE plugin = 'pgoutput'")
            try session.run("COMMIT")
            await followed.until { $0.words.last == "following" }
            group.cancelAll()
        }
        session.end()
        #expect(
            followed.seen.rows.map(line) == [#"create late[id] - {"id":1,"ms":["ok"]} snapshot"#])
    }

    /// A transaction with an earlier snapshot would see an empty table after such a rewrite.
    @Test(arguments: [false, true])
    func `a table that is rewritten before it is read is read in its new form`(
        byOutbox: Bool
    ) async throws {
        let server = try PostgresServer.shared()
        let name = try server.database(
            """
            CREATE TABLE a (id int PRIMARY KEY); INSERT INTO a VALUES (1);
            CREATE TABLE b (id int PRIMARY KEY, v text); INSERT INTO b VALUES (1, '5'), (2, '6');
            CREATE TABLE c (id int PRIMARY KEY); INSERT INTO c VALUES (1)
            """)
        let settings =
            try byOutbox
            ? server.outbox(name, ["public.a", "public.b", "public.c"]) : server.settings(name)
        let followed = Followed()
        // The follower stays at the first table until its rows are accepted.
        followed.refuse(.max)
        let rows = try await followed.follow(settings) { followed in
            await followed.until { $0.attempts > 0 }
            try server.sql("ALTER TABLE b ALTER v TYPE int USING v::int", in: name)
            followed.refuse(0)
            await followed.until { $0.words.last == "following" }
            try server.sql("UPDATE b SET v = 7 WHERE id = 1", in: name)
            await followed.until { $0.rows.last?.operation == .update }
            return followed.seen.rows
        }
        let former = byOutbox ? #"{"id":1,"v":5}"# : "-"
        #expect(
            rows.map(line) == [
                #"create a[id] - {"id":1} snapshot"#, #"create c[id] - {"id":1} snapshot"#,
                #"create b[id] - {"id":1,"v":5} snapshot"#,
                #"create b[id] - {"id":2,"v":6} snapshot"#,
                #"update b[id] \#(former) {"id":1,"v":7}"#,
            ])
        #expect(Set(rows.map(\.position)).count == rows.count)
    }

    /// A transaction holds its locks to its end, and the server has a fixed number for all.
    @Test func `more tables can be read than the server can lock at once`() async throws {
        let server = try PostgresServer([
            "wal_level=logical", "max_connections=20", "max_locks_per_transaction=10",
        ])
        defer { server.end() }
        let name = try server.database()
        try server.sql(
            """
            DO $$ BEGIN FOR n IN 1..600 LOOP
                EXECUTE format('CREATE TABLE t%s (id int PRIMARY KEY)', n);
                EXECUTE format('INSERT INTO t%s VALUES (1)', n);
                IF n % 20 = 0 THEN COMMIT; END IF;
            END LOOP; END $$
            """, in: name)
        let seen = try await Followed().follow(try server.settings(name)) { followed in
            await followed.until {
                $0.words.last == "following" || $0.words.contains("serverRefused")
            }
            return followed.seen
        }
        #expect(seen.rows.count == 600)
        #expect(!seen.words.contains("serverRefused"), "\(seen.sentences.suffix(2))")
    }

    /// Otherwise the snapshot would be read again and again, and the permanent slot never created.
    @Test func `no snapshot is begun without room for the permanent slot`()
        async throws
    {
        let server = try PostgresServer(["wal_level=logical", "max_replication_slots=1"])
        defer { server.end() }
        let name = try server.database(
            "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
        let seen = try await Followed().follow(try server.settings(name)) { followed in
            await followed.until { $0.words.contains("serverFull") }
            return followed.seen
        }
        #expect(seen.sentences.contains { $0.contains("max_replication_slots") })
        #expect(seen.attempts == 0)
    }

    /// A wrong secret has this effect.
    ///
    /// Regression: the follower retried for ever.
    @Test func `a refusal of the relay ends a follower that has not begun`() async throws {
        let server = try PostgresServer.shared()
        let name = try server.database(
            "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
        let refusal = FollowProblem.relayRefuses("401")
        let take: PreparedRows = { .not(refusal) }
        let follower = try PostgresFollower(
            try server.settings(name), clock: ContinuousClock(),
            now: { Timestamp(seconds: 1_700_000_000) }, changed: { _ in }, end: { _ in .taken }
        ) { _ in take }
        await #expect(throws: refusal) { try await follower.run() }
    }
}
