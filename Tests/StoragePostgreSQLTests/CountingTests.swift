import RelayTestKit
import Storage
import Testing

@testable import StoragePostgreSQL
@testable import StorageSQL

/// The cost of counting kept records on a real server.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
struct CountingTests {
    private static let creation = """
        INSERT INTO shadowRecord (container, database, owner, zoneOwner, zoneName, recordType,
            recordName, source, position, fields, isKept, createdBy)
        SELECT id, 'public', '', '', '_defaultZone', 'Artwork', 'r', '_cloudkit', 1, '{"a":1}',
            1, 'ann'
        FROM container
        """

    /// Runs `body` with one record of ann's, in a transaction that is rolled back.
    private static func withRecord(_ body: (Database, TestPlace) throws -> Void) async throws {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        let connection = try test.session().connectAgain(limits: PostgresSession.readingLimits)
        let db = Database(connection)
        try connection.begin()
        try db.execute(sql: creation)
        #expect(try counted(db) == "[] 1 263, [ann] 1 263")
        try body(db, test)
        connection.rollBack()
        await store.close()
    }

    /// Returns the counted number and size of records, for the container and for each holder.
    private static func counted(_ db: Database) throws -> String? {
        try String.fetchOne(
            db,
            sql: """
                SELECT string_agg(
                    '[' || holder || '] ' || number || ' ' || bytes, ', ' ORDER BY holder)
                FROM quotaUse WHERE thing = 3
                """)
    }

    /// Returns how many updates of count rows the transaction has made.
    private static func updates(_ db: Database, _ test: TestPlace) throws -> Int64? {
        try Int64.fetchOne(
            db,
            sql: """
                SELECT n_tup_upd FROM pg_stat_xact_user_tables
                WHERE schemaname = '\(test.schema)' AND relname = 'quotause'
                """)
    }

    /// Each update of a count walks over the row versions that its transaction made before, and a
    /// webhook may change a thousand records.
    @Test func `a changed record updates its counts once, by the difference`() async throws {
        try await Self.withRecord { db, test in
            let before = try #require(try Self.updates(db, test))
            // This changes nothing that is counted.
            try db.execute(sql: "UPDATE shadowRecord SET fields = '{\"a\":2}', source = source")
            #expect(try Self.updates(db, test) == before)
            // One update for the container's count, and one for its user's.
            try db.execute(sql: "UPDATE shadowRecord SET fields = '{\"a\":10}'")
            #expect(try Self.updates(db, test) == before + 2)
            #expect(try Self.counted(db) == "[] 1 264, [ann] 1 264")
            try db.execute(sql: "UPDATE shadowRecord SET isDeleted = 1, fields = NULL")
            #expect(try Self.updates(db, test) == before + 4)
            #expect(try Self.counted(db) == "[] 0 256, [ann] 0 256")
        }
    }

    @Test func `a record that changes its holder or is no longer kept is counted so`()
        async throws
    {
        try await Self.withRecord { db, _ in
            for (statement, expected) in [
                (
                    "UPDATE shadowRecord SET createdBy = 'bob', fields = NULL",
                    "[] 1 256, [ann] 0 0, [bob] 1 256"
                ),
                ("UPDATE shadowRecord SET source = 'postgres'", "[] 1 256, [ann] 0 0, [bob] 0 0"),
                ("UPDATE shadowRecord SET isKept = 0", "[] 0 0, [ann] 0 0, [bob] 0 0"),
                (
                    "UPDATE shadowRecord SET isKept = 1, wire = '{}', source = '_cloudkit'",
                    "[] 1 258, [ann] 0 0, [bob] 1 258"
                ),
                ("DELETE FROM shadowRecord", "[] 0 0, [ann] 0 0, [bob] 0 0"),
            ] {
                try db.execute(sql: statement)
                #expect(try Self.counted(db) == expected)
            }
        }
    }
}
