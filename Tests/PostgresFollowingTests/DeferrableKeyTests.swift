import ChangeSources
import PostgresFollowing
import RelayModel
import RelayTestKit
import Testing

/// Two rows that have the same key for a while within a transaction, because the key is deferrable.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"),
    .timeLimit(.minutes(15)))
struct DeferrableKeyTests {
    private static func rows(
        outbox: Bool, _ table: String, _ statements: [String], count: Int
    ) async throws -> [FollowedRow] {
        let server = try outbox ? PostgresServer.plain() : PostgresServer.shared()
        let name = try server.database(
            """
            CREATE TABLE t \(table); ALTER TABLE t REPLICA IDENTITY FULL;
            INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')
            """)
        let settings = try outbox ? server.outbox(name) : server.settings(name)
        return try await Followed().follow(settings) { followed in
            await followed.until { $0.words.last == "following" }
            for statement in statements { try server.sql(statement, in: name) }
            await followed.until { $0.rows.count == count + 3 }
            return Array(followed.seen.rows.dropFirst(3))
        }
    }

    private static func row(_ id: Int64, _ text: String) -> RecordFields {
        ["id": .integer(id), "v": .string(text)]
    }

    @Test(arguments: [false, true])
    func `a row that leaves a key reports which row took it in the same transaction`(
        outbox: Bool
    ) async throws {
        let rows = try await Self.rows(
            outbox: outbox, "(id int PRIMARY KEY DEFERRABLE, v text)",
            [
                "UPDATE t SET id = id + 1", "DELETE FROM t WHERE id = 3",
                """
                BEGIN; SET CONSTRAINTS ALL DEFERRED; INSERT INTO t VALUES (2, 'd');
                UPDATE t SET v = 'e' WHERE v = 'd'; DELETE FROM t WHERE v = 'a';
                DELETE FROM t WHERE v = 'e'; COMMIT
                """,
            ], count: 8)
        #expect(
            rows.map(\.formerTakenBy) == [
                nil, Self.row(2, "a"), Self.row(3, "b"), nil, nil, nil, Self.row(2, "e"), nil,
            ])
    }

    @Test(arguments: [false, true])
    func `rows that exchange keys through a third one are sent unchanged`(
        outbox: Bool
    ) async throws {
        let rows = try await Self.rows(
            outbox: outbox, "(id int PRIMARY KEY, v text)",
            [
                """
                BEGIN; UPDATE t SET id = -1 WHERE id = 1; UPDATE t SET id = 1 WHERE id = 2;
                UPDATE t SET id = 2 WHERE id = -1; COMMIT
                """
            ], count: 3)
        #expect(rows.map(\.formerTakenBy) == [nil, nil, nil])
    }

    /// The rows of the last part must take into account which keys the rows of the first parts
    /// took.
    @Test func `a follower restarted within a transaction knows which row took a key`()
        async throws
    {
        let server = try PostgresServer.plain()
        let name = try server.database(
            """
            CREATE TABLE t (id int PRIMARY KEY DEFERRABLE, v text);
            CREATE TABLE u (id int PRIMARY KEY);
            INSERT INTO t SELECT n, 'v' || n FROM generate_series(1, 1200) n
            """)
        let settings = try server.outbox(name, ["public.t", "public.u"])
        let first = Followed()
        try await first.follow(settings) { followed in
            await followed.until { $0.words.last == "following" }
            // The relay takes the first part of the transaction and refuses the others.
            followed.refuse(after: 1)
            try server.sql(
                "BEGIN; INSERT INTO u VALUES (1); UPDATE t SET id = id + 1; COMMIT", in: name)
            await followed.until { $0.attempts > $0.requests.count }
        }
        let taken = first.seen.rows.filter { !$0.isSnapshot }
        #expect(taken.count > 1 && taken.count < 1201)
        // Rows of such a transaction stay in the outbox until all are taken. Others are deleted as
        // soon as the relay has them.
        #expect(try server.sql("SELECT count(*) FROM belfry.outbox", in: name) == "1200")
        let rest = try await Followed().follow(settings) { followed in
            await followed.until { $0.rows.count == 1200 }
            try await server.wait(for: "0", of: "SELECT count(*) FROM belfry.outbox", in: name)
            return followed.seen.rows
        }
        let expected = (1...1200).map { number -> FieldValue? in
            number == 1 ? nil : .string("v\(number - 1)")
        }
        #expect(rest.map { row -> FieldValue? in row.formerTakenBy?["v"] } == expected)
        #expect(Set(taken.dropFirst().map(\.position)).isSubset(of: Set(rest.map(\.position))))
    }
}
