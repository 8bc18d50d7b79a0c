import ChangeSources
import PostgresFollowing
import RelayModel
import RelayTestKit
import Testing

/// Transactions with a fixed snapshot that write, through an outbox's triggers, to tables altered
/// since.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"),
    .timeLimit(.minutes(15)))
struct OutboxMomentTests {
    /// Such a transaction sees the catalogue as it was when it began, but writes to the tables as
    /// they are now.
    @Test(arguments: ["REPEATABLE READ", "SERIALIZABLE"])
    func `a transaction with a fixed snapshot can write to tables altered since`(
        level: String
    ) async throws {
        let server = try PostgresServer.plain()
        let name = try server.database(
            "CREATE TABLE t (id int PRIMARY KEY, v int, w int); INSERT INTO t VALUES (1, 1, 1)")
        let rows = try await Followed().follow(try server.outbox(name)) { followed in
            await followed.until { $0.words.last == "following" }
            let session = try PostgresSession(server, name)
            try session.run("BEGIN ISOLATION LEVEL \(level); SELECT count(*) FROM pg_class")
            try server.sql(
                """
                ALTER TABLE t RENAME v TO "V v"; ALTER TABLE t DROP w; ALTER TABLE t ADD d date;
                ALTER TABLE t ADD g int GENERATED ALWAYS AS (id * 2) STORED; ALTER TABLE t RENAME
                TO "T t"
                """, in: name)
            try session.run(
                """
                INSERT INTO "T t" VALUES (2, 2, '2026-01-02'); UPDATE "T t" SET d = NULL
                WHERE id = 2; DELETE FROM "T t" WHERE id = 2; COMMIT
                """)
            session.end()
            await followed.until { $0.rows.count == 4 }
            return followed.seen.rows
        }
        let whole = #"{"V v":2,"d":{"$ts":[1767312000,0]},"id":2}"#
        let empty = #"{"V v":2,"d":null,"id":2}"#
        #expect(
            rows.dropFirst().map(line) == [
                "create T t[id] - \(whole)", "update T t[id] \(whole) \(empty)",
                "delete T t[id] \(empty) -",
            ])
    }

    /// The column names are read from the row itself, which contains such JSON.
    @Test func `a transaction with a fixed snapshot can write JSON that no text can hold`()
        async throws
    {
        let server = try PostgresServer.plain()
        let name = try server.database("CREATE TABLE t (id int PRIMARY KEY, j json)")
        let rows = try await Followed().follow(try server.outbox(name)) { followed in
            await followed.until { $0.words.last == "following" }
            let session = try PostgresSession(server, name)
            try session.run("BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM pg_class")
            try server.sql(
                #"ALTER TABLE t ADD "q""\ud800" text; ALTER TABLE t ADD w int"#, in: name)
            try session.run(
                #"""
                INSERT INTO t VALUES (1, '"\u0000"', E'\\ud800\n', 5);
                UPDATE t SET j = '"\\ud800 \\\ud800"', w = 6; COMMIT
                """#)
            session.end()
            await followed.until { $0.rows.count == 2 }
            return followed.seen.rows
        }
        #expect(rows.map(\.operation) == [.create, .update])
        #expect(rows.first?.after?.fields[#"q"\ud800"#] == .string("\\ud800\n"))
        #expect(rows.last?.after?.fields["j"] == .string(#""\\ud800 \\\ud800""#))
        #expect(rows.last?.after?.fields["w"] == .integer(6))
    }

    /// The owner of the database may write values into the outbox that no transaction produces.
    @Test(
        arguments: [
            ("1969-12-31 23:59:59.5Z", Timestamp(milliseconds: -500)), ("infinity", nil),
            ("-infinity", nil), ("4000-01-01 00:00:00+00 BC", nil),
            ("294000-01-01 00:00:00+00", nil),
        ] as [(String, Timestamp?)])
    func `a row of an outbox may contain any moment`(text: String, moment: Timestamp?) async throws
    {
        let server = try PostgresServer.plain()
        let name = try server.database("CREATE TABLE t (id int PRIMARY KEY)")
        let rows = try await Followed().follow(try server.outbox(name)) { followed in
            await followed.until { $0.words.last == "following" }
            try server.sql(
                """
                INSERT INTO belfry.outbox (number, transaction, at, operation, relation, "schema",
                    "table", columns, after)
                VALUES (nextval('belfry.outbox_number'), pg_current_xact_id(), '\(text)', 'INSERT',
                    't'::regclass, 'public', 't', '{{id,23}}', '(1)')
                """, in: name)
            await followed.until { !$0.rows.isEmpty || $0.words.last != "following" }
            return followed.seen.rows
        }
        #expect(rows.map(line) == [#"create t[id] - {"id":1}"#])
        #expect(rows.first?.occurredAt == moment)
    }
}
