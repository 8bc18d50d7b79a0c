import Foundation
import PostgresFollowing
import PostgresLink
import RelayTestKit
import Testing

/// Problems that keep a database from being followed, each provoked on a real server.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"),
    .timeLimit(.minutes(15)))
struct ProblemTests {
    private func problem(
        _ database: String, on server: PostgresServer,
        _ change: (inout FollowSettings) throws -> Void = { _ in }
    ) async throws -> FollowProblem? {
        var settings = try server.settings(database)
        try change(&settings)
        return try await Followed().problem(settings)
    }

    @Test func `a server without a logical log says so`() async throws {
        let server = try PostgresServer([])
        #expect(
            try await problem("postgres", on: server)?.advice
                == "wal_level is replica: set wal_level = logical in postgresql.conf and restart "
                + "the server.")
    }

    @Test func `a role without the right to replicate learns what to ask for`() async throws {
        let server = try PostgresServer.shared()
        let name = try server.database()
        try server.sql("CREATE ROLE plain LOGIN")
        let found = try await problem(name, on: server) {
            $0.target = try PostgresTarget("host=\(server.folder) user=plain dbname=\(name)")
        }
        #expect(found == .noReplicationRight(role: "plain"))
    }

    @Test func `a missing database and a missing role are named`() async throws {
        let server = try PostgresServer.shared()
        let nowhere = try await problem("nowhere", on: server)
        #expect(nowhere?.code == "databaseMissing")
        let nobody = try await problem("postgres", on: server) {
            $0.target = try PostgresTarget("host=\(server.folder) user=nobody dbname=postgres")
        }
        #expect(nobody?.code == "wrongPassword")
    }

    @Test(arguments: [
        ("NOLOGIN", "", "is not permitted to log in"),
        ("LOGIN", "REVOKE CONNECT ON DATABASE %d FROM public", "permission denied for database"),
    ])
    func `a role that is locked out is not reported as a network problem`(
        kind: String, sql: String, reason: String
    ) async throws {
        let server = try PostgresServer.shared()
        let name = try server.database()
        let role = "kept_out_\(kind.lowercased())"
        try server.sql("CREATE ROLE \(role) \(kind); \(sql.replacing("%d", with: name))")
        let found = try await problem(name, on: server) {
            $0.target = try PostgresTarget("host=\(server.folder) user=\(role) dbname=\(name)")
        }
        #expect(found?.code == "wrongPassword")
        #expect(found?.advice.contains(reason) == true)
    }

    @Test func `publication and slot are only created if that is requested`() async throws {
        let server = try PostgresServer.shared()
        let name = try server.database("CREATE TABLE t (id int PRIMARY KEY)")
        #expect(
            try await problem(name, on: server) { $0.makes = false }
                == .publicationMissing("belfry"))
        try server.sql("CREATE PUBLICATION belfry", in: name)
        #expect(try await problem(name, on: server) { $0.makes = false } == .slotMissing(name))
        #expect(try await problem(name, on: server) == .publicationEmpty("belfry"))
    }

    @Test func `a missing table is named, and nothing is created`() async throws {
        let server = try PostgresServer.shared()
        let name = try server.database("CREATE TABLE t (id int PRIMARY KEY)")
        let tables = ["public.t", "public.tt", "nowhere.t", "T"]
        let missing = FollowProblem.tableMissing("public.tt, nowhere.t, T")
        #expect(try await problem(name, on: server) { $0.tables = tables } == missing)
        #expect(
            try await problem(name, on: server) {
                $0.tables = tables
                $0.way = .outbox
            } == missing)
        #expect(
            try await problem(name, on: server) { $0.makes = false }
                == .publicationMissing("belfry"))
    }

    @Test(arguments: [
        ("CREATE VIEW v AS SELECT 1 AS id", false, "This operation is not supported for views."),
        (
            "CREATE UNLOGGED TABLE v (id int PRIMARY KEY)", false,
            "This operation is not supported for unlogged tables."
        ),
        (
            "CREATE VIEW v AS SELECT 1 AS id", true,
            "Views cannot have row-level BEFORE or AFTER triggers."
        ),
    ])
    func `a table that cannot be followed is named with the reason`(
        made: String, byOutbox: Bool, reason: String
    ) async throws {
        let server = try PostgresServer.shared()
        let name = try server.database(made)
        let settings =
            try byOutbox
            ? server.outbox(name, ["public.v"]) : server.settings(name) { $0.tables = ["public.v"] }
        // Retrying cannot help, so the follower ends before it has begun.
        let found = try await Followed().problem(settings)
        #expect(found?.code == "tableMissing")
        let sentence = found?.advice ?? ""
        #expect(sentence.contains("\"v\"") && sentence.contains(reason), "\(sentence)")
    }

    @Test func `tables without an identity are not published and stay writable`()
        async throws
    {
        let server = try PostgresServer.shared()
        let name = try server.database(
            """
            CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE log (a int);
            INSERT INTO log VALUES (1);
            CREATE TABLE p (a int) PARTITION BY RANGE (a);
            CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10)
            """)
        #expect(try await problem(name, on: server) == .identityMissing("public.log, public.p1"))
        #expect(
            try await problem(name, on: server) { $0.tables = ["public.t", "public.p"] }
                == .identityMissing("public.p1"))
        try server.sql("UPDATE log SET a = 2; ALTER TABLE p1 REPLICA IDENTITY FULL", in: name)
        let settings = try server.settings(name) { $0.tables = ["public.t", "public.p"] }
        try await Followed().follow(settings) { followed in
            await followed.until { $0.words.last == "following" }
        }
    }

    @Test func `tables missing in a publication are named before they are waited for`()
        async throws
    {
        let server = try PostgresServer.shared()
        let name = try server.database(
            """
            CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE more (id int PRIMARY KEY);
            CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id);
            CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
            CREATE PUBLICATION belfry FOR TABLE t, p
            """)
        let tables = ["public.t", "more", "public.p", "public.p1", "public.none"]
        #expect(
            try await problem(name, on: server) { $0.tables = tables }
                == .tablesNotPublished(publication: "belfry", tables: "more, public.none"))
        try server.sql("ALTER PUBLICATION belfry ADD TABLE more", in: name)
        let settings = try server.settings(name) { $0.tables = Array(tables.dropLast()) }
        try await Followed().follow(settings) { followed in
            await followed.until { $0.words.last == "following" }
        }
        // An existing slot is followed on, and the status says what is missing.
        try server.sql("ALTER PUBLICATION belfry DROP TABLE more", in: name)
        try await Followed().follow(settings) { followed in
            await followed.until { $0.words.last == "following" }
        }
    }

    @Test func `a slot that is used by others or of another kind is left alone`() async throws {
        let server = try PostgresServer.shared()
        let name = try server.database("CREATE TABLE t (id int PRIMARY KEY)")
        try server.sql("SELECT pg_create_physical_replication_slot('\(name)')")
        let kind = try await problem(name, on: server)
        #expect(kind?.code == "slotOfOtherKind")
        let prepared = name + "_prepared"
        try server.sql(
            "SELECT pg_create_logical_replication_slot('\(prepared)', 'pgoutput', false, true)",
            in: name)
        let tellsPrepared = try await problem(name, on: server) { $0.slot = prepared }
        #expect(tellsPrepared?.code == "slotOfOtherKind")
        #expect(tellsPrepared?.advice.contains("was made with two_phase") == true)
        let slot = name + "_mine"
        var settings = try server.settings(name) { $0.slot = slot }
        settings.endsBeforeItBegan = false
        let mine = settings
        try await Followed().follow(mine) { first in
            await first.until { $0.words.last == "following" }
            try await Followed().follow(mine) { second in
                await second.until { $0.words.contains("slotTaken") }
            }
        }
    }

    @Test func `a slot whose log is gone says how to begin anew`() async throws {
        let server = try PostgresServer([
            "wal_level=logical", "max_slot_wal_keep_size=1MB", "max_wal_size=32MB",
            "min_wal_size=32MB",
        ])
        try server.sql("CREATE TABLE t (id int PRIMARY KEY)")
        try await Followed().follow(try server.settings("postgres")) { followed in
            await followed.until { $0.words.last == "following" }
        }
        for _ in 0..<4 {
            try server.sql(
                "SELECT pg_logical_emit_message(false, 'x', repeat('x', 1000000)), pg_switch_wal()")
            try server.sql("CHECKPOINT")
        }
        let found = try await problem("postgres", on: server)
        #expect(found == .slotLost("postgres"))
    }

    @Test func `a publication dropped in between is named even after it is created again`()
        async throws
    {
        let server = try PostgresServer.shared()
        let name = try server.database("CREATE TABLE t (id int PRIMARY KEY)")
        var settings = try server.settings(name)
        settings.endsBeforeItBegan = false
        let followed = Followed()
        try await followed.run(settings) { follower in
            await followed.until { $0.words.last == "following" }
            try server.sql("DROP PUBLICATION belfry; INSERT INTO t VALUES (1)", in: name)
            await followed.until { $0.words.contains("publicationMissing") }
            try server.sql("CREATE PUBLICATION belfry FOR ALL TABLES", in: name)
            await followed.until { $0.words.last == "publicationLost" }
            let advice = follower.status.sentence
            #expect(advice.contains("pg_drop_replication_slot") && advice.contains("--make"))
            #expect(FollowProblem.publicationLost("").needsSomebody)
        }
    }

    @Test func `a dropped publication is named before a row changes`() async throws {
        let server = try PostgresServer.shared()
        let name = try server.database("CREATE TABLE t (id int PRIMARY KEY)")
        let followed = Followed()
        let follower = try followed.follower(try server.settings(name), clock: HurriedClock())
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await follower.run() }
            await followed.until { $0.words.last == "following" }
            try server.sql("DROP PUBLICATION belfry", in: name)
            await followed.until { $0.words.last == "publicationMissing" }
            try server.sql("CREATE PUBLICATION belfry FOR ALL TABLES", in: name)
            // PostgreSQL 18 would skip the changes that were made meanwhile.
            let version = Int(try server.sql("SHOW server_version_num")) ?? 0
            let last = version >= 180_000 ? "publicationLost" : "following"
            await followed.until { $0.words.last == last }
            group.cancelAll()
        }
    }

    @Test func `a failover to a server without the slot is reported with the next step`()
        async throws
    {
        let first = try PostgresServer(["wal_level=logical"])
        try first.sql("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
        var settings = try first.settings("postgres") { $0.slot = "shop" }
        settings.endsBeforeItBegan = false
        let second = try PostgresServer(["wal_level=logical"], copyOf: first)
        settings.target = try PostgresTarget(
            "host=\(first.folder),\(second.folder) user=postgres dbname=postgres")
        let followed = Followed()
        try await followed.run(settings) { follower in
            await followed.until { $0.words.last == "following" }
            try second.sql("SELECT pg_promote()")
            first.end()
            await followed.until { $0.words.last == "slotMissing" }
            #expect(follower.status.sentence == FollowProblem.slotMissing("shop").advice)
        }
        // A new follower takes a snapshot of all rows and continues.
        let rows = try await Followed().follow(settings) { followed in
            await followed.until { $0.words.last == "following" }
            try second.sql("INSERT INTO t VALUES (2)")
            await followed.until { $0.rows.count == 2 }
            return followed.seen.rows
        }
        #expect(
            rows.map(line) == [
                #"create t[id] - {"id":1} snapshot"#, #"create t[id] - {"id":2}"#,
            ])
    }

    @Test func `another cluster in place of the followed one is noticed`()
        async throws
    {
        let first = try PostgresServer.shared()
        let name = try first.database("CREATE TABLE t (id int PRIMARY KEY)")
        let second = try PostgresServer(["wal_level=logical"])
        try second.sql("CREATE DATABASE \(name)")
        try second.sql(
            "CREATE TABLE t (id int PRIMARY KEY); CREATE PUBLICATION belfry FOR TABLE t", in: name)
        let place = second.folder + "/place"
        let files = FileManager.default
        try files.createSymbolicLink(atPath: place, withDestinationPath: first.folder)
        var settings = try first.settings(name)
        settings.endsBeforeItBegan = false
        settings.target = try PostgresTarget("host=\(place) user=postgres dbname=\(name)")
        let followed = Followed()
        try await followed.run(settings) { _ in
            await followed.until { $0.words.last == "following" }
            try files.removeItem(atPath: place)
            try files.createSymbolicLink(atPath: place, withDestinationPath: second.folder)
            try first.sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '\(name)'")
            await followed.until { $0.words.contains("otherServer") }
        }
    }

    @Test(arguments: [
        ("orders", #""public"."orders""#), ("shop.orders", #""shop"."orders""#),
        ("shop.we.ird", #""shop"."we.ird""#), (#""we ird"."T ab.le""#, #""we ird"."T ab.le""#),
        (#"shop."a""b""#, #""shop"."a""b""#), (#""Orders""#, #""public"."Orders""#),
        (#"shop.a"b"#, #""shop"."a""b""#),
    ]) func `tables can be named as in conversation or as in SQL`(text: String, sql: String) {
        #expect(text.quotedTable == sql)
    }

    @Test func `names in suggested SQL can be pasted`() {
        #expect(
            FollowProblem.publicationMissing("Shop's").advice.contains(
                #"CREATE PUBLICATION "Shop's" FOR TABLE"#))
        #expect(
            FollowProblem.publicationEmpty("order").advice.contains(
                #"ALTER PUBLICATION "order" ADD TABLE"#))
        #expect(
            FollowProblem.tablesNotPublished(publication: #"a"b"#, tables: "t").advice.contains(
                #"ALTER PUBLICATION "a""b" ADD TABLE"#))
        #expect(
            FollowProblem.noReplicationRight(role: "we-ird").advice.contains(
                #"ALTER ROLE "we-ird" REPLICATION"#))
        #expect(
            FollowProblem.publicationEmpty("shop_2").advice.contains(
                "ALTER PUBLICATION shop_2 ADD TABLE"))
    }

    @Test func `URLs contain no password and no forbidden parameters`() {
        func advice(_ url: String) -> String {
            do throws(FollowProblem) {
                _ = try PostgresTarget.followed(url)
                return "fine"
            } catch {
                return error.advice
            }
        }
        #expect(
            advice("postgresql://me:hidden@db/shop")
                == "The URL of the database cannot be used: it contains a password, which others "
                + "could see: put it into the file that PGPASSFILE names, or into PGPASSWORD.")
        #expect(advice("postgresql://db/shop?options=-cx").contains("\"options\" cannot be set"))
        #expect(advice("http://db/shop").hasPrefix("The URL of the database cannot be used:"))
        #expect(advice("postgresql://a@b:5432,c:5433/shop?sslmode=require") == "fine")
    }

    @Test func `a database that takes no connections is reported as such`() {
        let words = "FATAL:  database \"shop\" is not currently accepting connections"
        #expect(PostgresError(state: "", message: words).refusal == .closed)
        let advice = FollowProblem.unreachable(words).advice
        #expect(advice.hasPrefix("The database takes no connections (\(words)): allow them"))
        #expect(advice.contains("ALLOW_CONNECTIONS true") && !advice.contains("network"))
    }

    /// Some container images of PostgreSQL are built so; a certificate would not help.
    @Test func `a server without TLS is reported as such`() {
        let error = PostgresError(
            state: "", message: "server does not support SSL, but SSL was required")
        #expect(error.refusal == .untrusted)
        let advice = FollowProblem.untrusted(error.message).advice
        #expect(advice.hasPrefix("The server does not speak TLS (\(error.message)): set ssl = on"))
        #expect(advice.contains("sslmode=disable") && !advice.contains("sslrootcert"))
        #expect(FollowProblem.untrusted("x").advice.contains("sslrootcert"))
    }

    @Test func `every problem has a code, a sentence and a line in the documentation`() throws {
        let all: [FollowProblem] = [
            .badURL("x"), .unreachable("x"), .untrusted("x"), .wrongPassword("x"),
            .databaseMissing("x"),
            .serverTooOld(130_001), .walLevel("x"), .noReplicationRight(role: "x"),
            .notPermitted("x"), .publicationMissing("x"), .publicationEmpty("x"),
            .publicationLost("x"), .tableMissing("x"), .identityMissing("x"),
            .identityVirtual("x"), .tablesNotPublished(publication: "x", tables: "x"),
            .slotMissing("x"), .slotLost("x"), .slotMoved("x"), .slotTaken("x"),
            .slotOfOtherKind("x"),
            .serverFull("x"), .serverRefused("x"), .rowRefused("x"), .outboxMissing,
            .outboxEmpty, .outboxTaken("x"),
            .otherServer(expected: "x", found: "x"), .serverWentBack("x"), .storeRestored("x"),
            .brokenStream("x"), .relayUnreachable("x"),
            .relayRefuses("x"),
        ]
        #expect(all.map(\.code) == FollowProblem.codes)
        #expect(all.allSatisfy { $0.advice.hasSuffix(".") })
        let standby = FollowProblem.unreachable("failed: server is in hot standby mode")
        #expect(standby.advice.contains("name the primary"))
        let upgraded = FollowProblem.otherServer(expected: "1", found: "2")
        #expect(upgraded.advice.contains("pg_upgrade, save the source as it is"))
        let url = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../docs/postgresql.md")
        let page = try String(contentsOf: url, encoding: .utf8)
        #expect(all.map(\.code).filter { !page.contains("`\($0)`") } == [])
    }

    @Test func `the SQL that prepares a database lets its role follow`() async throws {
        let server = try PostgresServer.shared()
        let name = try server.database(
            """
            CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'a');
            CREATE SCHEMA "Shop"; CREATE TABLE "Shop".orders (id int PRIMARY KEY)
            """)
        let sql = PreparingSQL(
            publication: "belfry", slot: name, tables: ["public.t", #""Shop".orders"#])
        try server.sql(sql.text, in: name)
        // Roles are shared by all databases of a server.
        let other = try server.database("CREATE TABLE u (id int PRIMARY KEY)")
        let more = PreparingSQL(publication: "belfry", slot: other, tables: ["public.u"])
        try server.sql(more.text, in: other)
        var settings = try server.settings(name)
        settings.target = try PostgresTarget("host=\(server.folder) user=belfry dbname=\(name)")
        let rows = try await Followed().follow(settings) { followed in
            await followed.until { $0.words.last == "following" }
            try server.sql("UPDATE t SET v = 'b'", in: name)
            await followed.until { $0.rows.count == 2 }
            return followed.seen.rows
        }
        #expect(
            rows.map(line) == [
                #"create t[id] - {"id":1,"v":"a"} snapshot"#,
                #"update t[id] {"id":1,"v":"a"} {"id":1,"v":"b"}"#,
            ])
    }
}
