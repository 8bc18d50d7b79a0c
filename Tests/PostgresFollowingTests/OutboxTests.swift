import ChangeSources
import PostgresFollowing
import PostgresLink
import RelayModel
import RelayTestKit
import Testing

/// Follows a real server without a logical log through an outbox that triggers write.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"),
    .timeLimit(.minutes(15)))
struct OutboxTests {
    /// Counts the rows that are left in the outbox.
    private static let left = "SELECT count(*) FROM belfry.outbox"

    @Test func `a snapshot comes first, then each transaction with the former rows`()
        async throws
    {
        let server = try PostgresServer.plain()
        let name = try server.database(
            """
            CREATE TABLE t (a int, id int PRIMARY KEY, v text, w int GENERATED ALWAYS AS (id * 2)
                STORED);
            ALTER TABLE t DROP a; INSERT INTO t VALUES (1, 'a'), (2, 'b')
            """)
        let seen = try await Followed().follow(try server.outbox(name)) { followed in
            await followed.until { $0.words.last == "following" }
            try server.sql("INSERT INTO t VALUES (3, NULL)", in: name)
            try server.sql(
                """
                BEGIN; SET LOCAL belfry.origin = '{"deviceID": "d-1", "userRecordName": "u-1"}';
                UPDATE t SET v = 'A "q", \\(é)' WHERE id = 1; DELETE FROM t WHERE id = 2; COMMIT
                """, in: name)
            await followed.until { $0.rows.count == 5 }
            try server.sql("TRUNCATE t", in: name)
            await followed.until { $0.rows.count == 6 }
            return followed.seen
        }
        #expect(
            seen.rows.map(line) == [
                #"create t[id] - {"id":1,"v":"a"} snapshot"#,
                #"create t[id] - {"id":2,"v":"b"} snapshot"#,
                #"create t[id] - {"id":3,"v":null}"#,
                #"update t[id] {"id":1,"v":"a"} {"id":1,"v":"A \"q\", \\(é)"} by d-1/u-1"#,
                #"delete t[id] {"id":2,"v":"b"} - by d-1/u-1"#,
                "truncate t[] - -",
            ])
        let versions = seen.rows.compactMap(\.version)
        #expect(versions == versions.sorted() && versions.count == 6)
        #expect(Set(seen.rows.map(\.position)).count == 6)
        #expect(seen.requests.contains { $0.map(\.operation).suffix(2) == [.update, .delete] })
    }

    @Test func `a late commit comes before later numbers, and no row is skipped`()
        async throws
    {
        let server = try PostgresServer.plain()
        let name = try server.database("CREATE TABLE t (id int PRIMARY KEY)")
        let rows = try await Followed().follow(try server.outbox(name)) { followed in
            await followed.until { $0.words.last == "following" }
            let slow = try PostgresSession(server, name)
            try slow.run("BEGIN; INSERT INTO t VALUES (1)")
            try server.sql("INSERT INTO t VALUES (2)", in: name)
            // The follower was woken, and has seen the second row.
            try await server.wait(
                for: "0",
                of: "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 2 "
                    + "AND mode = 'ExclusiveLock' AND database = "
                    + "(SELECT oid FROM pg_database WHERE datname = '\(name)')")
            #expect(followed.seen.rows.isEmpty)
            try slow.run("SAVEPOINT s; INSERT INTO t VALUES (4); ROLLBACK TO s; COMMIT")
            await followed.until { $0.rows.count == 2 }
            try slow.run("BEGIN; INSERT INTO t VALUES (5)")
            try server.sql("INSERT INTO t VALUES (6)", in: name)
            try slow.run("INSERT INTO t VALUES (7); COMMIT")
            slow.end()
            await followed.until { $0.rows.count == 5 }
            return followed.seen.rows
        }
        // A transaction is ordered by its last row.
        #expect(
            rows.map(line) == [1, 2, 6, 5, 7].map { #"create t[id] - {"id":\#($0)}"# })
    }

    @Test func `locks that any role can take block nothing, and their holder is named`()
        async throws
    {
        let server = try PostgresServer.plain()
        let name = try server.database("CREATE TABLE t (id int PRIMARY KEY)")
        try server.sql("CREATE ROLE stranger LOGIN")
        let settings = try server.outbox(name)
        try await Followed().follow(settings) { followed in
            await followed.until { $0.words.last == "following" }
        }
        let stranger = try PostgresSession(server, name, role: "stranger")
        for lock in 1...2 { try stranger.run("SELECT pg_advisory_lock(\(0x62_656C_66), \(lock))") }
        let followed = Followed()
        let follower = try followed.follower(settings, clock: HurriedClock())
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await follower.run() }
            try server.sql("INSERT INTO t VALUES (1)", in: name)
            await followed.until { $0.rows.count == 1 }
            _ = await Turns.yield { follower.status.warning != nil }
            let sentence = follower.status.sentence
            #expect(sentence.contains("role stranger, psql, from this machine"), "\(sentence)")
            #expect(follower.status.word == "lagging")
            group.cancelAll()
        }
        try stranger.run("SELECT pg_advisory_lock(\(0x62_656C_66), 3)")
        var impatient = settings
        impatient.endsBeforeItBegan = false
        let waiting = Followed()
        let second = try waiting.follower(impatient)
        await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await second.run() }
            await waiting.until { $0.words.contains("outboxTaken") }
            #expect(second.status.sentence.contains("role stranger"))
            group.cancelAll()
        }
        stranger.end()
    }

    @Test func `a long open transaction is named`() async throws {
        let server = try PostgresServer.plain()
        let name = try server.database("CREATE TABLE t (id int PRIMARY KEY)")
        let followed = Followed()
        let follower = try followed.follower(try server.outbox(name), clock: HurriedClock())
        let slow = try PostgresSession(server, name)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await follower.run() }
            await followed.until { $0.words.last == "following" }
            try slow.run("BEGIN; INSERT INTO t VALUES (1)")
            try server.sql("INSERT INTO t VALUES (2)", in: name)
            _ = await Turns.yield { follower.status.warning != nil }
            let sentence = follower.status.sentence
            #expect(
                sentence.contains("changed followed tables (process ")
                    && sentence.contains("role postgres, psql"), "\(sentence)")
            try slow.run("COMMIT")
            await followed.until { $0.rows.count == 2 }
            _ = await Turns.yield { follower.status.warning == nil }
            group.cancelAll()
        }
        slow.end()
    }

    @Test func `a transaction open during the snapshot is sent as changes`() async throws {
        let server = try PostgresServer.plain()
        let name = try server.database(
            "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 1), (2, 1)")
        try server.sql(
            OutboxSQL(tables: ["public.t"]).text, in: name)
        let open = try PostgresSession(server, name)
        // A transaction that has written already is waited for (SnapshotEndTests).
        try open.run("BEGIN; SELECT 1")
        try server.sql("UPDATE t SET v = 3 WHERE id = 2", in: name)
        let followed = Followed()
        try await followed.run(try server.outbox(name)) { _ in
            await followed.until { $0.words.last == "following" }
            try open.run("UPDATE t SET v = 2 WHERE id = 1; COMMIT")
            await followed.until { $0.rows.count == 3 }
        }
        open.end()
        #expect(
            followed.seen.rows.map(line) == [
                #"create t[id] - {"id":1,"v":1} snapshot"#,
                #"create t[id] - {"id":2,"v":3} snapshot"#,
                #"update t[id] {"id":1,"v":1} {"id":1,"v":2}"#,
            ])
    }

    @Test
    func `a large transaction comes in parts, each row once, and is deleted when taken`()
        async throws
    {
        let server = try PostgresServer.plain()
        let name = try server.database("CREATE TABLE t (id int PRIMARY KEY, v text)")
        let seen = try await Followed().follow(try server.outbox(name)) { followed in
            await followed.until { $0.words.last == "following" }
            followed.refuse(1)
            try server.sql("INSERT INTO t SELECT n, 'v' FROM generate_series(1, 2300) n", in: name)
            await followed.until { $0.rows.count == 2300 }
            try await server.wait(for: "0", of: Self.left, in: name)
            return followed.seen
        }
        #expect(seen.requests.map(\.count) == [500, 500, 500, 500, 300])
        #expect(Set(seen.rows.map(\.position)).count == 2300)
        #expect(seen.words.contains("relayUnreachable"))
    }

    @Test func `rows that were not taken come again with the same position, a snapshot does not`()
        async throws
    {
        let server = try PostgresServer.plain()
        let name = try server.database(
            "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
        let settings = try server.outbox(name)
        try await Followed().follow(settings) { followed in
            await followed.until { $0.words.last == "following" }
        }
        var positions: [String] = []
        for isRefused in [true, false] {
            let followed = Followed()
            if isRefused { followed.refuse(.max) }
            try await followed.follow(settings) { followed in
                if isRefused { try server.sql("INSERT INTO t VALUES (2)", in: name) }
                await followed.until { $0.attempts > 0 }
            }
            positions += followed.seen.attempted.map(\.position)
        }
        #expect(positions.count == 2 && Set(positions).count == 1)
    }

    @Test func `rows of an outbox are identified even if their key was renamed`()
        async throws
    {
        let server = try PostgresServer.plain()
        let name = try server.database("CREATE TABLE t (a int, b int, v text, PRIMARY KEY (b, a))")
        try await Followed().follow(try server.outbox(name)) { followed in
            await followed.until { $0.words.last == "following" }
        }
        for statement in [
            "INSERT INTO t VALUES (1, 2, 'x')", "ALTER TABLE t RENAME a TO z",
            "ALTER TABLE t ADD n int", "UPDATE t SET v = 'y'",
        ] {
            try server.sql(statement, in: name)
        }
        let rows = try await Followed().follow(try server.outbox(name)) { followed in
            await followed.until { $0.rows.count == 2 }
            return followed.seen.rows
        }
        #expect(rows.map(\.key) == [["b", "a"], ["b", "z"]])
    }

    @Test func `a replica identity identifies the rows of an outbox like those of a slot`()
        async throws
    {
        let server = try PostgresServer.plain()
        let name = try server.database(
            """
            CREATE TABLE t (id int, email text NOT NULL UNIQUE); INSERT INTO t VALUES (1, 'a');
            ALTER TABLE t REPLICA IDENTITY USING INDEX t_email_key
            """)
        let rows = try await Followed().follow(try server.outbox(name)) { followed in
            await followed.until { $0.words.last == "following" }
            try server.sql("DELETE FROM t", in: name)
            await followed.until { $0.rows.count == 2 }
            return followed.seen.rows
        }
        #expect(
            rows.map(line) == [
                #"create t[email] - {"email":"a","id":1} snapshot"#,
                #"delete t[email] {"email":"a","id":1} -"#,
            ])
    }

    /// Otherwise such a row would end following for ever.
    @Test(arguments: [
        ("{{id,23},{v,25}}", "(1)"), ("{{id,23},{v,25}}", "(1,a"), ("{{id,text}}", "(1)"),
    ])
    func `an unreadable row of an outbox is sent without its former image`(
        columns: String, row: String
    ) async throws {
        let server = try PostgresServer.plain()
        let name = try server.database("CREATE TABLE t (id int PRIMARY KEY, v text)")
        let rows = try await Followed().follow(try server.outbox(name)) { followed in
            await followed.until { $0.words.last == "following" }
            try server.sql(
                """
                INSERT INTO belfry.outbox (number, transaction, at, operation, relation, "schema",
                    "table", columns, after)
                VALUES (nextval('belfry.outbox_number'), pg_current_xact_id(), now(), 'INSERT',
                    't'::regclass, 'public', 't', '\(columns)', '\(row)');
                INSERT INTO t VALUES (2, 'b')
                """, in: name)
            await followed.until { $0.rows.count == 2 || $0.words.contains("brokenStream") }
            return followed.seen.rows
        }
        #expect(rows.map(\.operation) == [.create, .create])
        #expect(rows.first?.after == nil)
        #expect(rows.last.map(line) == #"create t[id] - {"id":2,"v":"b"}"#)
    }

    @Test(arguments: [["public.parts", "public.part"], ["public.part", "public.parts"]])
    func `a partition named beside its table is followed at each start`(
        tables: [String]
    ) async throws {
        let server = try PostgresServer.plain()
        let name = try server.database(
            """
            CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY LIST (id);
            CREATE TABLE part PARTITION OF parts FOR VALUES IN (1, 2)
            """)
        let settings = try server.outbox(name, tables)
        for id in 1...2 {
            let created = #"create parts[id] - {"id":\#(id)}"#
            let seen = try await Followed().follow(settings) { followed in
                await followed.until { ["following", "serverRefused"].contains($0.words.last) }
                try server.sql("INSERT INTO parts VALUES (\(id))", in: name)
                await followed.until { seen in
                    seen.rows.last.map(line) == created || seen.words.contains("serverRefused")
                }
                return followed.seen
            }
            // Rows that were taken before the end may not be deleted yet, and then come again.
            #expect(seen.rows.map(line).filter { $0 == created } == [created])
        }
    }

    /// The session that writes may have other settings for how names and amounts are written and
    /// texts are read.
    @Test func `rows are written the same whatever settings the session has`()
        async throws
    {
        let server = try PostgresServer.plain()
        let name = try server.database(
            "CREATE TABLE t (id int PRIMARY KEY, r regclass, m money, v text)")
        try server.sql("ALTER DATABASE \(name) SET lc_monetary = 'POSIX'")
        let rows = try await Followed().follow(try server.outbox(name)) { followed in
            await followed.until { $0.words.last == "following" }
            for (id, level) in [(1, "READ COMMITTED"), (2, "REPEATABLE READ")] {
                try server.sql(
                    """
                    SET quote_all_identifiers = on; SET lc_monetary = 'C';
                    SET standard_conforming_strings = off; SET escape_string_warning = off;
                    BEGIN ISOLATION LEVEL \(level);
                    INSERT INTO t VALUES (\(id), 'pg_class', '1.5', E'a\\\\b'); COMMIT
                    """, in: name)
            }
            await followed.until { $0.rows.count == 2 }
            return followed.seen.rows
        }
        #expect(
            rows.map(line)
                == (1...2).map { id in
                    #"create t[id] - {"id":\#(id),"m":"$1.50","r":"pg_class","v":"a\\b"}"#
                })
        let settings = try server.sql(
            "SELECT array_to_string(proconfig, ';') FROM pg_proc WHERE proname = 'note_change'",
            in: name)
        // The database's setting, and not that of the session that writes.
        #expect(settings.contains("lc_monetary=POSIX"), "\(settings)")
    }

    @Test func `the outbox function of another version is replaced`() async throws {
        let server = try PostgresServer.plain()
        let name = try server.database("CREATE TABLE t (id int PRIMARY KEY)")
        let settings = try server.outbox(name)
        let written = "SELECT prosrc FROM pg_proc WHERE proname = 'note_change'"
        try await Followed().follow(settings) { followed in
            await followed.until { $0.words.last == "following" }
        }
        let own = try server.sql(written, in: name)
        try server.sql(
            """
            CREATE OR REPLACE FUNCTION belfry.note_change() RETURNS trigger LANGUAGE plpgsql
            AS $$ BEGIN RETURN NULL; END $$
            """, in: name)
        var kept = settings
        kept.makes = false
        for (settings, isOwn) in [(kept, false), (settings, true)] {
            try await Followed().follow(settings) { followed in
                await followed.until { $0.words.last == "following" }
            }
            let now = try server.sql(written, in: name)
            #expect((now == own) == isOwn)
        }
        // A function of a later version stays. Otherwise two followers would replace each other's
        // function in turn.
        for (version, isOwn) in [("999999999", false), ("0", true), ("1000000000000", true)] {
            try server.sql(
                """
                CREATE OR REPLACE FUNCTION belfry.note_change() RETURNS trigger LANGUAGE plpgsql
                AS $f$
                -- Belfry's function, version \(version): a later one is not replaced by it.
                BEGIN RETURN NULL; END $f$
                """, in: name)
            try await Followed().follow(settings) { followed in
                await followed.until { $0.words.last == "following" }
            }
            let now = try server.sql(written, in: name)
            #expect((now == own) == isOwn, "\(version)")
        }
    }

    @Test(arguments: [["public.parts", "public.part"], ["public.part", "public.parts"]])
    func `the SQL that is shown accepts a partition beside its table, and can be repeated`(
        tables: [String]
    ) async throws {
        let server = try PostgresServer.plain()
        let name = try server.database(
            """
            CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY LIST (id);
            CREATE TABLE part PARTITION OF parts FOR VALUES IN (1, 2);
            CREATE TABLE "a$$b" (id int PRIMARY KEY)
            """)
        // Roles are shared by all databases of a server, on which tests run in parallel.
        let sql = OutboxSQL(tables: tables + ["public.a$$b"], role: "again_\(name)").text
        for _ in 0..<2 { try server.sql(sql, in: name) }
        let settings = try server.outbox(name, tables) { $0.makes = false }
        let rows = try await Followed().follow(settings) { followed in
            await followed.until { $0.words.last == "following" }
            try server.sql("INSERT INTO parts VALUES (1)", in: name)
            try server.sql(#"INSERT INTO "a$$b" VALUES (2)"#, in: name)
            await followed.until { $0.rows.count == 2 }
            return followed.seen.rows
        }
        #expect(
            rows.map(line) == [#"create parts[id] - {"id":1}"#, #"create a$$b[id] - {"id":2}"#])
        try server.sql(OutboxSQL.dropText, in: name)
    }

    @Test func `an outbox has one follower, and can be extended and dropped`()
        async throws
    {
        let server = try PostgresServer.plain()
        let name = try server.database(
            """
            CREATE TABLE t (id int PRIMARY KEY);
            CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id);
            CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
            """)
        var without = try server.outbox(name)
        without.makes = false
        #expect(try await Followed().problem(without) == .outboxMissing)
        try await Followed().follow(try server.outbox(name)) { first in
            await first.until { $0.words.last == "following" }
            let second = try server.outbox(name) { $0.endsBeforeItBegan = false }
            try await Followed().follow(second) { second in
                await second.until { $0.words.contains("outboxTaken") }
            }
        }
        let rows = try await Followed().follow(
            try server.outbox(name, ["public.t", "public.p"])
        ) { followed in
            await followed.until { $0.words.last == "following" }
            try server.sql("INSERT INTO p VALUES (7); INSERT INTO t VALUES (1)", in: name)
            await followed.until { $0.rows.count == 2 }
            return followed.seen.rows
        }
        #expect(rows.map(line) == [#"create p[id] - {"id":7}"#, #"create t[id] - {"id":1}"#])
        try OutboxRemoval.run(without) { .zero }
        try server.sql("INSERT INTO p VALUES (8)", in: name)
        #expect(try await Followed().problem(without) == .outboxMissing)
    }

    @Test(arguments: ["DROP TABLE u", "DROP TABLE u; CREATE VIEW u AS SELECT 1 AS id"])
    func `a dropped table does not block other tables`(how: String) async throws {
        let server = try PostgresServer.plain()
        let name = try server.database(
            "CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE u (id int PRIMARY KEY)")
        let settings = try server.outbox(name, ["public.t", "public.u"])
        try await Followed().follow(settings) { followed in
            await followed.until { $0.words.last == "following" }
        }
        try server.sql(how, in: name)
        let followed = Followed()
        try await followed.run(settings) { follower in
            await followed.until { ["following", "tableMissing"].contains($0.words.last) }
            try #require(followed.seen.words.last == "following")
            try server.sql("INSERT INTO t VALUES (1)", in: name)
            await followed.until { $0.rows.count == 1 }
            #expect(await Turns.yield { follower.status.word == "lagging" })
            #expect(follower.status.sentence.contains("(public.u)"))
        }
    }

    @Test(arguments: ["DISABLE", "ENABLE REPLICA"])
    func `a trigger that does not fire is reported`(how: String) async throws {
        let server = try PostgresServer.plain()
        let name = try server.database("CREATE TABLE t (id int PRIMARY KEY)")
        var settings = try server.outbox(name)
        try await Followed().follow(settings) { followed in
            await followed.until { $0.words.last == "following" }
        }
        try server.sql("ALTER TABLE t \(how) TRIGGER belfry_outbox", in: name)
        settings.makes = false
        let followed = Followed()
        try await followed.run(settings) { follower in
            await followed.until { $0.words.last == "following" }
            #expect(await Turns.yield { follower.status.word == "lagging" })
            #expect(follower.status.sentence.contains("(public.t)"))
        }
    }

    @Test func `the SQL that is shown lets its role follow and nothing more`() async throws {
        let server = try PostgresServer.plain()
        let name = try server.database(
            """
            CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'a');
            CREATE SCHEMA "Shop"; CREATE TABLE "Shop".orders (id int PRIMARY KEY)
            """)
        let sql = OutboxSQL(tables: ["public.t", #""Shop".orders"#], role: "belfry")
        try server.sql(sql.text, in: name)
        let target = try PostgresTarget("host=\(server.folder) user=belfry dbname=\(name)")
        let settings = try server.outbox(name) {
            $0.makes = false
            $0.target = target
        }
        let rows = try await Followed().follow(settings) { followed in
            await followed.until { $0.words.last == "following" }
            try server.sql("UPDATE t SET v = 'b'", in: name)
            await followed.until { $0.rows.count == 2 }
            try await server.wait(for: "0", of: Self.left, in: name)
            return followed.seen.rows
        }
        #expect(
            rows.map(line) == [
                #"create t[id] - {"id":1,"v":"a"} snapshot"#,
                #"update t[id] {"id":1,"v":"a"} {"id":1,"v":"b"}"#,
            ])
        try server.sql(OutboxSQL.dropText, in: name)
    }

    @Test(arguments: [
        ("(1,\"a \"\"b\"\"\",)", [ColumnText.text("1"), .text("a \"b\""), .null]),
        (#"("\\d","",x y)"#, [.text(#"\d"#), .text(""), .text("x y")]), ("()", [.null]),
    ])
    func `a row's text is parsed field by field`(text: String, fields: [ColumnText]) {
        #expect(RecordText(Array(text.utf8))?.values.map(ColumnText.init) == fields)
    }

    @Test(arguments: ["", "(", "1,2", "(\"a)", "(a\\)", "(\")"])
    func `a malformed row's text is refused`(text: String) {
        #expect(RecordText(Array(text.utf8)) == nil)
    }
}

/// The value of a column as a test writes it.
enum ColumnText: Sendable, Equatable {
    case null, text(String), other

    init(_ value: ColumnValue) {
        self =
            switch value {
            case .null: .null
            case .text(let bytes): .text(String(decoding: bytes, as: UTF8.self))
            default: .other
            }
    }
}
