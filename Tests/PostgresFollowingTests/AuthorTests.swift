import ChangeSources
import PostgresFollowing
import RelayModel
import RelayTestKit
import Testing

/// The author of a change, as the transaction announces it in a message.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"),
    .timeLimit(.minutes(15)))
struct AuthorTests {
    private static func says(_ user: String) -> String {
        "SELECT pg_logical_emit_message(true, 'belfry', '{\"userRecordName\": \"\(user)\"}')"
    }

    /// If either the message or the change is in a subtransaction, PostgreSQL may send the message
    /// after the change that follows it.
    @Test func `the author of a change is known in whichever subtransaction it is announced`()
        async throws
    {
        let server = try PostgresServer.shared()
        let name = try server.database(
            "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 0)")
        let statements = [
            "BEGIN", "SAVEPOINT a", Self.says("u-1"), "RELEASE a", "UPDATE t SET v = 1",
            Self.says("u-2"), "SAVEPOINT a", "UPDATE t SET v = 2", "RELEASE a",
            "SAVEPOINT a", Self.says("u-3"), "UPDATE t SET v = 3", "ROLLBACK TO a",
            "UPDATE t SET v = 4", Self.says("u-4"), "SAVEPOINT b",
            "INSERT INTO t VALUES (2, 5), (3, 6)", "COMMIT",
        ]
        let rows = try await Followed().follow(try server.settings(name)) { followed in
            await followed.until { $0.words.last == "following" }
            try server.sql(statements.joined(separator: "; "), in: name)
            try server.sql("UPDATE t SET v = 7 WHERE id = 1", in: name)
            await followed.until { $0.rows.count == 7 }
            return followed.seen.rows.dropFirst()
        }
        #expect(rows.map(\.userID) == ["u-1", "u-2", "u-2", "u-4", "u-4", nil])
    }
}
