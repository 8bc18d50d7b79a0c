import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StoragePostgreSQL
@testable import StorageSQL

/// What it costs a real server to find what became of one change among a week's deliveries.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
struct ReceiptCostTests {
    @Test func `the receipts of one change are found without a look at the others`() async throws {
        let test = try TestPlace()
        let store = try RelayStore.open(try test.place(), as: .forTests(), settings: .forTests)
        try test.server.sql(
            """
            SET search_path = \(test.schema);
            INSERT INTO receiptBlock
                (firstPosition, lastPosition, lastAt, outcomes, count, body)
            SELECT n, n, n, 2, 1, '\\x00' FROM generate_series(1, 20000) AS n WHERE n <> 10000;
            """)
        try test.server.sql("ANALYZE \(test.schema).receiptBlock")
        let connection = try test.session().connectAgain(limits: PostgresSession.readingLimits)
        let db = Database(connection)
        try connection.begin()
        let receipt = Sample.receipt(1, .accepted, at: 10_000)
        try #require(ReceiptBlock([receipt])).insert(in: db)
        #expect(try connection.commit() == "COMMIT")

        try connection.begin(" ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        var filter = ReceiptFilter()
        filter.position = LogPosition(10_000)
        #expect(try ReceiptScan(filter: filter, limit: 9, bound: 99).run(in: db) == [receipt])
        var wanted = ReceiptListFilter()
        wanted.receipt = filter
        let page = try ReceiptListScan(filter: wanted, limit: 9, bound: 99)
            .run(before: nil, in: db)
        #expect(page.elements == [receipt])
        let looked = try Int64.fetchOne(
            db,
            sql: """
                SELECT coalesce(idx_tup_fetch, 0) + seq_tup_read FROM pg_stat_xact_user_tables
                WHERE schemaname = '\(test.schema)' AND relname = 'receiptblock'
                """)
        #expect(try #require(looked) < 1000)
        #expect(try connection.commit() == "COMMIT")
        await store.close()
    }
}
