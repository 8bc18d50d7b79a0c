import ChangeSources
import PostgresFollowing
import RelayModel
import RelayTestKit
import Testing

/// Generated columns.
///
/// PostgreSQL 18 can send stored ones. It refuses updates and deletions of rows whose identity has
/// a generated column that is not sent.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"),
    .timeLimit(.minutes(15)))
struct GeneratedColumnTests {
    private static func tellsGenerated(_ server: PostgresServer) throws -> Bool {
        (Int(try server.sql("SHOW server_version_num")) ?? 0) >= 180_000
    }

    private static let table = """
        CREATE TABLE t (id int PRIMARY KEY, g int GENERATED ALWAYS AS (id * 2) STORED, v text);
        ALTER TABLE t REPLICA IDENTITY FULL; INSERT INTO t (id, v) VALUES (1, 'a')
        """

    @Test(arguments: [false, true])
    func `followed rows with stored generated columns can be changed`(
        isPrepared: Bool
    ) async throws {
        // The SQL creates a role, which all databases of a server share, so it gets a server of its
        // own.
        let server =
            try isPrepared ? PostgresServer(["wal_level=logical"]) : PostgresServer.shared()
        let name = try server.database(Self.table)
        if isPrepared {
            try server.sql(#"CREATE TABLE "a$$b" (id int PRIMARY KEY)"#, in: name)
            let sql = PreparingSQL(
                publication: "belfry", slot: name, tables: ["public.t", #""a$$b""#])
            try server.sql(sql.text, in: name)
        }
        let rows = try await Followed().follow(try server.settings(name)) { followed in
            await followed.until { $0.words.last == "following" }
            try server.sql("UPDATE t SET v = 'b'; DELETE FROM t", in: name)
            await followed.until { $0.rows.count == 3 }
            return followed.seen.rows
        }
        let told = try Self.tellsGenerated(server) ? #""g":2,"# : ""
        let (first, second) = (#"{\#(told)"id":1,"v":"a"}"#, #"{\#(told)"id":1,"v":"b"}"#)
        #expect(
            rows.map(line) == [
                "create t[id] - \(first) snapshot", "update t[id] \(first) \(second)",
                "delete t[id] \(second) -",
            ])
    }

    @Test func `a row is identified by a renamed key beside a stored generated column`()
        async throws
    {
        let server = try PostgresServer.shared()
        let name = try server.database(Self.table)
        let settings = try server.settings(name)
        try await Followed().follow(settings) { followed in
            await followed.until { $0.words.last == "following" }
        }
        try server.sql(
            "INSERT INTO t (id, v) VALUES (2, 'b'); ALTER TABLE t RENAME id TO z", in: name)
        let rows = try await Followed().follow(settings) { followed in
            await followed.until { $0.rows.count == 1 }
            return followed.seen.rows
        }
        #expect(rows.map(\.key) == [["id"]])
    }

    /// Two rows would otherwise become the same record.
    @Test(arguments: [
        "ALTER TABLE t ADD PRIMARY KEY (a, g)",
        "CREATE UNIQUE INDEX i ON t (a, g); ALTER TABLE t REPLICA IDENTITY USING INDEX i",
    ])
    func `a key whose stored generated column is not sent identifies no row`(
        key: String
    ) async throws {
        let server = try PostgresServer.shared()
        let name = try server.database(
            """
            CREATE TABLE t (
                a int NOT NULL, b int, g int NOT NULL GENERATED ALWAYS AS (b * 2) STORED);
            \(key); CREATE PUBLICATION belfry FOR TABLE t; INSERT INTO t VALUES (1, 1)
            """)
        let rows = try await Followed().follow(try server.settings(name)) { followed in
            await followed.until { ["following", "lagging"].contains($0.words.last) }
            try server.sql("INSERT INTO t VALUES (1, 2), (1, 3)", in: name)
            await followed.until { $0.rows.count == 3 }
            return followed.seen.rows
        }
        #expect(rows.map(\.key) == [[], [], []])
    }

    @Test func `no publication is created that blocks changes of virtual columns`()
        async throws
    {
        let server = try PostgresServer.shared()
        guard try Self.tellsGenerated(server) else { return }
        let name = try server.database(
            """
            CREATE TABLE p (id int PRIMARY KEY, g int GENERATED ALWAYS AS (id * 2) VIRTUAL)
                PARTITION BY RANGE (id);
            CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
            ALTER TABLE p1 REPLICA IDENTITY FULL; INSERT INTO p VALUES (1)
            """)
        for tables in [[], ["public.p"]] {
            let settings = try server.settings(name) { $0.tables = tables }
            #expect(try await Followed().problem(settings) == .identityVirtual("public.p1"))
        }
        try server.sql(
            "UPDATE p SET id = 2; ALTER TABLE p1 REPLICA IDENTITY DEFAULT", in: name)
        let rows = try await Followed().follow(try server.settings(name)) { followed in
            await followed.until { $0.words.last == "following" }
            try server.sql("UPDATE p SET id = 3", in: name)
            await followed.until { $0.rows.count == 2 }
            return followed.seen.rows
        }
        // A virtual column is computed on reading, and never sent.
        #expect(
            rows.map(line) == [
                #"create p[id] - {"id":2} snapshot"#, #"update p[id] ~{"id":2} {"id":3}"#,
            ])
    }

    @Test func `an existing publication that blocks changes of a table is reported`() async throws {
        let server = try PostgresServer.shared()
        guard try Self.tellsGenerated(server) else { return }
        let name = try server.database(
            """
            \(Self.table);
            CREATE TABLE k (a int, g int GENERATED ALWAYS AS (a + 1) STORED PRIMARY KEY);
            CREATE TABLE fine (id int PRIMARY KEY, g int GENERATED ALWAYS AS (id * 2) STORED);
            CREATE PUBLICATION belfry FOR ALL TABLES
            """)
        let followed = Followed()
        let follower = try followed.follower(try server.settings(name), clock: HurriedClock())
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await follower.run() }
            await followed.until { $0.words.last == "lagging" }
            let said = follower.status.sentence
            #expect(said.contains("(public.k, public.t)"), "\(said)")
            #expect(said.contains("ALTER PUBLICATION belfry SET (publish_generated_columns"))
            try server.sql(
                "ALTER PUBLICATION belfry SET (publish_generated_columns = stored)", in: name)
            _ = await Turns.yield { follower.status.word == "following" }
            try server.sql("UPDATE t SET v = 'b'; UPDATE k SET a = 3", in: name)
            await followed.until { $0.rows.contains { $0.operation == .update } }
            // A later alteration is noticed too.
            try server.sql("ALTER TABLE t ADD w int GENERATED ALWAYS AS (id * 3)", in: name)
            _ = await Turns.yield { follower.status.word == "lagging" }
            let later = follower.status.sentence
            #expect(later.contains("(public.t)") && later.contains("REPLICA IDENTITY DEFAULT"))
            group.cancelAll()
        }
    }
}
