import PostgresLink
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import Synchronization
import Testing

@testable import StoragePostgreSQL

/// The age at which a connection discards its cached plans.
struct PlanAgeTests {
    @Test func `plans are renewed less and less often`() {
        var age = PlanAge(at: .seconds(10))
        let moments = [10.5, 11, 12, 13, 16, 17, 100, 115, 116, 147, 148, 207, 208, 267, 268]
        let made = moments.filter { age.isOver(at: .seconds($0)) }
        #expect(made == [11, 13, 17, 100, 116, 148, 208, 268])
    }
}

/// The age of plans on a real server.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
struct PlanTests {
    /// A new store is such a table: an app saves its subscriptions before the server has analysed
    /// the table.
    @Test func `a plan made for an empty table is renewed once the table has rows`()
        async throws
    {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        try test.server.sql(
            "ALTER TABLE \(test.schema).subscription SET (autovacuum_enabled = off)")
        let passed = Mutex(Duration.zero)
        let session = PostgresSession(
            place: try test.place(), watch: { passed.withLock { $0 } }, name: "belfry test")
        let connection = try session.connectAgain(limits: PostgresSession.readingLimits)
        let db = Database(connection)
        func looked() throws -> Int64 {
            try connection.begin(" ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            defer { connection.rollBack() }
            let find = try db.cachedStatement(
                sql: """
                    SELECT serial, body, activation FROM subscription
                    WHERE owner = ? AND database = ? AND subscriptionID = ? AND ended IS NULL
                    """)
            _ = try Row.fetchOne(find, arguments: [Int64(1), "public", "s4000"])
            return try test.rowsRead(of: "subscription", in: db)
        }
        #expect(try looked() == 0)
        try test.server.sql(
            """
            SET search_path = \(test.schema);
            INSERT INTO "user" (id, container, name) SELECT 1, id, 'alice' FROM container;
            INSERT INTO subscription (container, owner, database, subscriptionID, contentDigest,
                firesOnce, body, activation)
            SELECT container, id, 'public', 's' || n, sha256(n::text::bytea), 0,
                repeat('x', 500), 1
            FROM "user", generate_series(1, 5000) AS n
            """)
        passed.withLock { $0 = .seconds(2) }
        #expect(try looked() < 10)
        await store.close()
    }
}
