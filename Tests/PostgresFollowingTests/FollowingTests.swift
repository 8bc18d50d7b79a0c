import ChangeSources
import PostgresFollowing
import RelayModel
import RelayTestKit
import Testing

/// Follows a real server's logical log, and checks the posted rows.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"),
    .timeLimit(.minutes(15)))
struct FollowingTests {
    @Test func `a snapshot comes first, then each transaction completely and in order`()
        async throws
    {
        let server = try PostgresServer.shared()
        let name = try server.database(
            "CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        let seen = try await Followed().follow(try server.settings(name)) { followed in
            await followed.until { $0.words.last == "following" }
            try server.sql("INSERT INTO t VALUES (3, 'c')", in: name)
            try server.sql(
                "BEGIN; UPDATE t SET v = 'A' WHERE id = 1; DELETE FROM t WHERE id = 2; COMMIT",
                in: name)
            await followed.until { $0.rows.count == 5 }
            return followed.seen
        }
        #expect(
            seen.rows.map(line) == [
                #"create t[id] - {"id":1,"v":"a"} snapshot"#,
                #"create t[id] - {"id":2,"v":"b"} snapshot"#,
                #"create t[id] - {"id":3,"v":"c"}"#,
                #"update t[id] - {"id":1,"v":"A"}"#,
                #"delete t[id] ~{"id":2} -"#,
            ])
        let versions = seen.rows.compactMap(\.version)
        #expect(versions == versions.sorted() && versions[3] == versions[4])
        #expect(Set(seen.rows.map(\.position)).count == 5)
        // Both changes of one transaction came in one request.
        #expect(seen.requests.contains { $0.map(\.operation) == [.update, .delete] })
    }

    @Test func `updates with unread values, moved keys and authors are sent`() async throws {
        let server = try PostgresServer.shared()
        let name = try server.database(
            """
            CREATE TABLE t (id int PRIMARY KEY, n int, big text);
            ALTER TABLE t ALTER big SET STORAGE EXTERNAL;
            CREATE TABLE f (a int, b text, n int, big text, PRIMARY KEY (b, a));
            ALTER TABLE f ALTER big SET STORAGE EXTERNAL;
            ALTER TABLE f REPLICA IDENTITY FULL;
            INSERT INTO t VALUES (1, 1, repeat('x', 3000));
            INSERT INTO f VALUES (1, 'k', 1, repeat('y', 3000))
            """)
        let rows = try await Followed().follow(
            try server.settings(name) { $0.takesSnapshot = false }
        ) { followed in
            await followed.until { $0.words.last == "following" }
            try server.sql(
                """
                BEGIN; UPDATE t SET n = 2; UPDATE f SET n = 2;
                SELECT pg_logical_emit_message(true, 'belfry',
                    '{"deviceID": "d-1", "userRecordName": "u-1"}');
                UPDATE t SET id = 7; COMMIT; DELETE FROM f; TRUNCATE t
                """, in: name)
            await followed.until { $0.rows.count == 5 }
            return followed.seen.rows
        }
        let long = String(repeating: "y", count: 3000)
        #expect(
            rows.map(line) == [
                // The value is stored apart (TOAST) and did not change: it is unknown, or taken
                // from the row before.
                #"update t[id] - ~{"id":1,"n":2}"#,
                #"update f[b,a] {"a":1,"b":"k","big":"\#(long)","n":1} "#
                    + #"{"a":1,"b":"k","big":"\#(long)","n":2}"#,
                #"update t[id] ~{"id":1} ~{"id":7,"n":2} by d-1/u-1"#,
                #"delete f[b,a] {"a":1,"b":"k","big":"\#(long)","n":2} -"#,
                "truncate t[id] - -",
            ])
    }

    @Test func `values have their declared types in the snapshot and in changes`() async throws {
        let server = try PostgresServer.shared()
        let name = try server.database(
            """
            CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN price AS numeric(30,10);
            CREATE TABLE t (id int PRIMARY KEY, p price, n numeric, at timestamptz, l timestamp,
                d date, j jsonb, ts text[], m mood, ms mood[], ps price[], b bytea, u uuid,
                f float8, k bool, i interval, g int[][]);
            """)
        let row = """
            INSERT INTO t VALUES (%, 12.50, 12345678901234567890.5, '2026-01-02 03:04:05.678+02',
            '2026-01-02 03:04:05', '2026-01-02', '{"a": [1, 2.5, {"$x": null}]}',
            '{a,"b,\\"c",NULL}', 'ok', '{sad,ok}', '{1.5,2}', '\\xdead',
            '9f2c0000-0000-0000-0000-000000000001', 1, true, '1 day', '{{1,2},{3,4}}')
            """
        try server.sql(row.replacing("%", with: "1"), in: name)
        let rows = try await Followed().follow(try server.settings(name)) { followed in
            await followed.until { $0.words.last == "following" }
            try server.sql(row.replacing("%", with: "2"), in: name)
            await followed.until { $0.rows.count == 2 }
            return followed.seen.rows
        }
        func expected(_ id: Int) -> String {
            #"create t[id] - {"at":{"$ts":[1767315845,678000000]},"b":{"$bytes":"3q0="},"#
                + #""d":{"$ts":[1767312000,0]},"f":1.0,"g":[[1,2],[3,4]],"i":"1 day","id":\#(id),"#
                + #""j":{"a":[1,2.5,{"$map":{"$x":null}}]},"k":true,"l":{"$ts":[1767323045,0]},"#
                + #""m":"ok","ms":["sad","ok"],"n":"12345678901234567890.5","p":12.5,"#
                + #""ps":[1.5,2],"ts":["a","b,\"c",null],"#
                + #""u":{"$uuid":"9f2c0000-0000-0000-0000-000000000001"}}"#
        }
        #expect(rows.map(line) == [expected(1) + " snapshot", expected(2)])
    }

    @Test func `an array of any built-in type becomes a list`() throws {
        let server = try PostgresServer.shared()
        let arrays = try server.sql(
            """
            SELECT oid FROM pg_type WHERE typcategory = 'A' AND typtype = 'b' AND oid < 10000
            AND typname LIKE '\\_%'
            """)
        let types = arrays.split(separator: "\n").compactMap { UInt32($0) }
        #expect(types.count > 70)
        let others = types.filter { type in
            guard case .list = TypeCatalogue().kind(of: type) else { return true }
            return false
        }
        #expect(others == [])
    }

    @Test func `a row is read with the columns that its table had at the time`() async throws {
        let server = try PostgresServer.shared()
        let name = try server.database("CREATE TABLE t (id int PRIMARY KEY, v int)")
        let rows = try await Followed().follow(try server.settings(name)) { followed in
            await followed.until { $0.words.last == "following" }
            try server.sql(
                """
                INSERT INTO t VALUES (1, 1); ALTER TABLE t ADD w text DEFAULT 'n';
                INSERT INTO t VALUES (2, 2); ALTER TABLE t DROP v; ALTER TABLE t RENAME w TO x;
                INSERT INTO t VALUES (3, 'y'); CREATE TABLE more (id int PRIMARY KEY);
                INSERT INTO more VALUES (4)
                """, in: name)
            await followed.until { $0.rows.count == 4 }
            return followed.seen.rows
        }
        #expect(
            rows.map(line) == [
                #"create t[id] - {"id":1,"v":1}"#, #"create t[id] - {"id":2,"v":2,"w":"n"}"#,
                #"create t[id] - {"id":3,"x":"y"}"#, #"create more[id] - {"id":4}"#,
            ])
    }

    @Test func `a transaction too large for one request comes in parts, each row once`()
        async throws
    {
        let server = try PostgresServer.shared()
        let name = try server.database("CREATE TABLE t (id int PRIMARY KEY, v text)")
        let seen = try await Followed().follow(try server.settings(name)) { followed in
            await followed.until { $0.words.last == "following" }
            followed.refuse(1)
            try server.sql("INSERT INTO t SELECT n, 'v' FROM generate_series(1, 2300) n", in: name)
            await followed.until { $0.rows.count == 2300 }
            return followed.seen
        }
        #expect(seen.requests.map(\.count) == [1000, 1000, 300])
        #expect(Set(seen.rows.map(\.position)).count == 2300)
        #expect(seen.words.contains("relayUnreachable"))
    }

    @Test func `a relay that is away for long costs no connection, and the log is watched`()
        async throws
    {
        let server = try PostgresServer.shared()
        let name = try server.database("CREATE TABLE t (id int PRIMARY KEY, v text)")
        let followed = Followed()
        let follower = try followed.follower(try server.settings(name), clock: HurriedClock())
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await follower.run() }
            await followed.until { $0.words.last == "following" }
            followed.refuse(.max)
            // More than fits into the batch that is posted, the prepared batches and the buffer.
            try server.sql("INSERT INTO t SELECT n, 'v' FROM generate_series(1, 4000) n", in: name)
            await followed.until { $0.attempts >= 8 }
            let retained = follower.status.retainedBytes
            #expect(retained ?? 0 > 0)
            followed.refuse(0)
            await followed.until { $0.rows.count == 4000 }
            group.cancelAll()
        }
        #expect(!followed.seen.words.contains("unreachable"))
        #expect(Set(followed.seen.rows.map(\.position)).count == 4000)
    }

    @Test func `confirmed rows do not come again, and repeated ones keep their positions`()
        async throws
    {
        let server = try PostgresServer.shared()
        let name = try server.database("CREATE TABLE t (id int PRIMARY KEY)")
        let settings = try server.settings(name)
        try await Followed().follow(settings) { followed in
            await followed.until { $0.words.last == "following" }
            try server.sql("INSERT INTO t VALUES (1)", in: name)
            await followed.until { $0.rows.count == 1 }
        }
        // The second row is not confirmed, because the relay was away all the time.
        let asked = Followed()
        asked.refuse(.max)
        try await asked.follow(settings) { followed in
            try server.sql("INSERT INTO t VALUES (2)", in: name)
            await followed.until { $0.attempts > 0 }
        }
        let first = try await Followed().follow(settings) { followed in
            await followed.until { $0.rows.contains { line($0).contains("2") } }
            return followed.seen.rows
        }
        let again = try await Followed().follow(settings) { followed in
            try server.sql("INSERT INTO t VALUES (3)", in: name)
            await followed.until { $0.rows.contains { line($0).contains("3") } }
            return followed.seen.rows
        }
        #expect(first.map(line).last == #"create t[id] - {"id":2}"#)
        let positions = Dictionary(grouping: first + again, by: line).mapValues {
            Set($0.map(\.position)).count
        }
        #expect(positions.values.allSatisfy { $0 == 1 })
    }

    @Test func `rows taken before an orderly end are confirmed by it`() async throws {
        let server = try PostgresServer.shared()
        let name = try server.database("CREATE TABLE t (id int PRIMARY KEY)")
        let followed = Followed()
        let follower = try followed.follower(try server.settings(name))
        let confirmed = try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await follower.run() }
            await followed.until { $0.words.last == "following" }
            try server.sql("INSERT INTO t VALUES (1)", in: name)
            _ = await Turns.yield { follower.status.rows == 1 }
            group.cancelAll()
            return try #require(follower.status.confirmed)
        }
        // Otherwise the position is confirmed twice a second, and not after the end.
        try await server.wait(
            for: "t",
            of: "SELECT confirmed_flush_lsn >= '\(confirmed)' FROM pg_replication_slots "
                + "WHERE slot_name = '\(name)'")
    }

    @Test func `a broken connection is renewed, and no row comes twice`() async throws {
        let server = try PostgresServer.shared()
        let name = try server.database("CREATE TABLE t (id int PRIMARY KEY)")
        let seen = try await Followed().follow(try server.settings(name)) { followed in
            await followed.until { $0.words.last == "following" }
            try server.sql("INSERT INTO t VALUES (1)", in: name)
            await followed.until { $0.rows.count == 1 }
            try server.sql(
                """
                SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots
                WHERE slot_name = '\(name)'
                """)
            try server.sql("INSERT INTO t VALUES (2)", in: name)
            await followed.until { $0.rows.count == 2 }
            return followed.seen
        }
        #expect(seen.rows.map(line) == [#"create t[id] - {"id":1}"#, #"create t[id] - {"id":2}"#])
        #expect(seen.words.filter { $0 == "following" }.count == 2)
        #expect(seen.words.contains("unreachable"))
    }

    @Test func `a partitioned table is followed as one table with its logged keys`()
        async throws
    {
        let server = try PostgresServer.shared()
        let name = try server.database(
            """
            CREATE TABLE p (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
            CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
            CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20);
            ALTER TABLE p REPLICA IDENTITY FULL; ALTER TABLE p2 REPLICA IDENTITY FULL;
            INSERT INTO p VALUES (1, 'a')
            """)
        let rows = try await Followed().follow(try server.settings(name)) { followed in
            await followed.until { $0.words.last == "following" }
            try server.sql("UPDATE p SET id = 11; DELETE FROM p", in: name)
            await followed.until { $0.rows.count == 4 }
            return followed.seen.rows
        }
        #expect(
            rows.map(line) == [
                #"create p[id] - {"id":1,"v":"a"} snapshot"#, #"delete p[id] ~{"id":1} -"#,
                #"create p[id] - {"id":11,"v":"a"}"#, #"delete p[id] {"id":11,"v":"a"} -"#,
            ])
    }

    @Test(arguments: ["DEFAULT", "FULL"])
    func `a partition with another identity index only sends that index's columns`(
        whole: String
    ) async throws {
        let server = try PostgresServer.shared()
        let name = try server.database(
            """
            CREATE TABLE p (id int PRIMARY KEY, code int NOT NULL, big text)
                PARTITION BY RANGE (id);
            CREATE TABLE a PARTITION OF p FOR VALUES FROM (0) TO (9);
            ALTER TABLE a ALTER big SET STORAGE EXTERNAL;
            CREATE UNIQUE INDEX other ON a (code); ALTER TABLE p REPLICA IDENTITY \(whole);
            ALTER TABLE a REPLICA IDENTITY USING INDEX other;
            INSERT INTO p VALUES (1, 5, repeat('x', 3000))
            """)
        let rows = try await Followed().follow(try server.settings(name)) { followed in
            await followed.until { $0.words.last == "following" }
            try server.sql("UPDATE p SET code = 6; DELETE FROM p", in: name)
            await followed.until { $0.rows.count == 3 }
            return Array(followed.seen.rows.dropFirst())
        }
        #expect(
            rows.map(line) == [
                #"update p[id] ~{"code":5} ~{"code":6,"id":1}"#, #"delete p[id] ~{"code":6} -"#,
            ])
    }

    @Test func `a value that is too large is left out of later updates too`()
        async throws
    {
        let server = try PostgresServer.shared()
        let name = try server.database(
            """
            CREATE TABLE t (id int PRIMARY KEY, a text, b text);
            ALTER TABLE t REPLICA IDENTITY FULL
            """)
        let rows = try await Followed().follow(try server.settings(name)) { followed in
            await followed.until { $0.words.last == "following" }
            try server.sql(
                """
                INSERT INTO t SELECT 1, string_agg(md5(i::text), ''), 'x'
                FROM generate_series(1, 40000) AS i; UPDATE t SET b = 'y'
                """, in: name)
            await followed.until { $0.rows.count == 2 }
            return followed.seen.rows
        }
        #expect(
            rows.map(line) == [
                #"create t[id] - ~{"b":"x","id":1}"#,
                #"update t[id] ~{"b":"x","id":1} ~{"b":"y","id":1}"#,
            ])
    }

    @Test func `a row identified by a replica identity keeps one key for all changes`()
        async throws
    {
        let server = try PostgresServer.shared()
        let name = try server.database(
            """
            CREATE TABLE u (id int, b text NOT NULL, a text NOT NULL, UNIQUE (a, b));
            ALTER TABLE u REPLICA IDENTITY USING INDEX u_a_b_key; INSERT INTO u VALUES (1, 'b', 'a')
            """)
        let rows = try await Followed().follow(try server.settings(name)) { followed in
            await followed.until { $0.words.last == "following" }
            try server.sql("DELETE FROM u", in: name)
            await followed.until { $0.rows.count == 2 }
            return followed.seen.rows
        }
        #expect(
            rows.map(line) == [
                #"create u[b,a] - {"a":"a","b":"b","id":1} snapshot"#,
                #"delete u[b,a] ~{"a":"a","b":"b"} -"#,
            ])
    }

    @Test func `a text with endless combining marks is left out, and its neighbours are sent`()
        async throws
    {
        let server = try PostgresServer.shared()
        let name = try server.database("CREATE TABLE t (id int PRIMARY KEY, v text, j jsonb)")
        let rows = try await Followed().follow(try server.settings(name)) { followed in
            await followed.until { $0.words.last == "following" }
            try server.sql(
                #"""
                INSERT INTO t SELECT i, 'a' || repeat(U&'\0301', i), NULL
                FROM generate_series(64, 66) AS i; INSERT INTO t SELECT 67, NULL,
                jsonb_build_object('k', 'a' || repeat(U&'\0301', 65))
                """#, in: name)
            await followed.until { $0.rows.count == 4 }
            return followed.seen.rows
        }
        #expect(rows.map { $0.after?.fields["v"] != nil } == [true, false, false, true])
        #expect(rows.map { $0.after?.completeness } == [.full, .partial, .partial, .partial])
        #expect(rows.last?.after?.fields["j"] == nil)
    }

    /// The relay could not read a request that is nested too deeply.
    @Test func `JSON that is nested too deeply is sent as a text`() async throws {
        let server = try PostgresServer.shared()
        let name = try server.database("CREATE TABLE t (id int PRIMARY KEY, j jsonb, js json[])")
        let rows = try await Followed().follow(try server.settings(name)) { followed in
            await followed.until { $0.words.last == "following" }
            try server.sql(
                """
                INSERT INTO t SELECT i, (repeat('[', i) || '1' || repeat(']', i))::jsonb, NULL
                FROM unnest(ARRAY[120, 121, 128, 500]) AS i;
                INSERT INTO t SELECT 1000 + i,
                    (repeat('{"$a":', i) || '1' || repeat('}', i))::jsonb, NULL
                FROM unnest(ARRAY[60, 61, 100]) AS i;
                INSERT INTO t SELECT 2000 + i, NULL,
                    ARRAY[(repeat('[', i) || '1' || repeat(']', i))::json]
                FROM unnest(ARRAY[119, 120]) AS i
                """, in: name)
            await followed.until { $0.rows.count == 9 }
            return followed.seen.rows
        }
        let kinds = rows.map { row in
            let value = row.after?.fields[row.after?.fields["js"] == .null ? "j" : "js"]
            return value?.kind ?? ""
        }
        #expect(
            kinds == [
                "a list", "a text", "a text", "a text", "a dictionary", "a text", "a text",
                "a list", "a text",
            ])
        for row in rows {
            let body = JSONValue.array([.object(row.json)]).text
            #expect(throws: Never.self) { try JSONValue(parsing: body) }
        }
    }

    @Test func `rows are identified by the key that their table had at the time`()
        async throws
    {
        let server = try PostgresServer.shared()
        let name = try server.database(
            """
            CREATE TABLE t (a int, b int, c int, PRIMARY KEY (b, a));
            CREATE TABLE u (id int PRIMARY KEY, code text NOT NULL)
            """)
        let rows = try await Followed().follow(try server.settings(name)) { followed in
            await followed.until { $0.words.last == "following" }
            try server.sql("INSERT INTO t VALUES (1, 2, 3)", in: name)
            await followed.until { $0.rows.count == 1 }
            try server.sql("BEGIN; DELETE FROM t; DROP TABLE t; COMMIT", in: name)
            await followed.until { $0.rows.count == 2 }
            return followed.seen.rows
        }
        #expect(
            rows.map(line) == [
                #"create t[b,a] - {"a":1,"b":2,"c":3}"#, #"delete t[b,a] ~{"a":1,"b":2} -"#,
            ])
        try server.sql(
            """
            INSERT INTO u VALUES (1, 'x'); DELETE FROM u WHERE id = 1;
            ALTER TABLE u DROP CONSTRAINT u_pkey; ALTER TABLE u ADD PRIMARY KEY (code);
            INSERT INTO u VALUES (2, 'y')
            """, in: name)
        let later = try await Followed().follow(try server.settings(name)) { followed in
            // What was not confirmed comes again.
            await followed.until { seen in seen.rows.count { $0.table == "u" } == 3 }
            return followed.seen.rows.filter { $0.table == "u" }
        }
        #expect(
            later.map(line) == [
                #"create u[id] - {"code":"x","id":1}"#, #"delete u[id] ~{"id":1} -"#,
                #"create u[code] - {"code":"y","id":2}"#,
            ])
    }

    @Test func `rows are identified in the order of their key even after a renaming`()
        async throws
    {
        let server = try PostgresServer.shared()
        let name = try server.database(
            """
            CREATE TABLE t (a int, b int, v text, PRIMARY KEY (b, a));
            CREATE TABLE f (a int, b int, v text, PRIMARY KEY (b, a));
            ALTER TABLE f REPLICA IDENTITY FULL
            """)
        let settings = try server.settings(name)
        try await Followed().follow(settings) { followed in
            await followed.until { $0.words.last == "following" }
        }
        for table in ["t", "f"] {
            try server.sql(
                """
                INSERT INTO \(table) VALUES (1, 2, 'x'); DELETE FROM \(table);
                ALTER TABLE \(table) RENAME a TO z
                """, in: name)
        }
        let rows = try await Followed().follow(settings) { followed in
            await followed.until { $0.rows.count == 4 }
            return followed.seen.rows
        }
        let whole = #"{"a":1,"b":2,"v":"x"}"#
        #expect(
            rows.map(line) == [
                "create t[b,a] - \(whole)", #"delete t[b,a] ~{"a":1,"b":2} -"#,
                "create f[b,a] - \(whole)", "delete f[b,a] \(whole) -",
            ])
    }

    @Test func `a new index as replica identity identifies rows from then on`() async throws {
        let server = try PostgresServer.shared()
        let name = try server.database(
            """
            CREATE TABLE t (a int NOT NULL UNIQUE, b int NOT NULL UNIQUE);
            ALTER TABLE t REPLICA IDENTITY USING INDEX t_a_key
            """)
        let rows = try await Followed().follow(try server.settings(name)) { followed in
            await followed.until { $0.words.last == "following" }
            try server.sql(
                """
                INSERT INTO t VALUES (1, 2); ALTER TABLE t REPLICA IDENTITY USING INDEX t_b_key;
                DELETE FROM t
                """, in: name)
            await followed.until { $0.rows.count == 2 }
            return followed.seen.rows
        }
        #expect(
            rows.map(line) == [
                #"create t[a] - {"a":1,"b":2}"#, #"delete t[b] ~{"b":2} -"#,
            ])
    }

    @Test(
        arguments: [false, true],
        [
            "(id int, v text, PRIMARY KEY (id) INCLUDE (v))",
            "(id int NOT NULL, v text); CREATE UNIQUE INDEX i ON t (id) INCLUDE (v); "
                + "ALTER TABLE t REPLICA IDENTITY USING INDEX i",
        ])
    func `included columns of a key's index are no part of the key`(
        outbox: Bool, table: String
    ) async throws {
        let server = try outbox ? PostgresServer.plain() : PostgresServer.shared()
        let name = try server.database("CREATE TABLE t \(table); INSERT INTO t VALUES (1, 'a')")
        let settings = try outbox ? server.outbox(name) : server.settings(name)
        let rows = try await Followed().follow(settings) { followed in
            await followed.until { $0.words.last == "following" }
            try server.sql("UPDATE t SET v = 'b'; DELETE FROM t", in: name)
            await followed.until { $0.rows.count == 3 }
            return followed.seen.rows
        }
        #expect(rows.map(\.key) == [["id"], ["id"], ["id"]])
    }

    @Test func `only what a publication contains is followed`() async throws {
        let server = try PostgresServer.shared()
        let name = try server.database(
            """
            CREATE TABLE t (id int PRIMARY KEY, open bool, secret text, v int);
            CREATE TABLE other (id int);
            INSERT INTO t VALUES (1, true, 's', 1), (2, false, 's', 1);
            CREATE PUBLICATION belfry FOR TABLE t (id, v) WHERE (id <> 2)
            """)
        let rows = try await Followed().follow(try server.settings(name)) { followed in
            await followed.until { $0.words.last == "following" }
            try server.sql(
                """
                INSERT INTO other VALUES (1); INSERT INTO t VALUES (3, true, 's', 2);
                UPDATE t SET secret = 'z', v = 9 WHERE id = 1
                """, in: name)
            await followed.until { $0.rows.count == 3 }
            return followed.seen.rows
        }
        #expect(
            rows.map(line) == [
                #"create t[id] - {"id":1,"v":1} snapshot"#, #"create t[id] - {"id":3,"v":2}"#,
                #"update t[id] - {"id":1,"v":9}"#,
            ])
    }
}
