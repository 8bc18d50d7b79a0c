import RelayTestKit
import Storage
import Testing

@testable import StoragePostgreSQL
@testable import StorageSQL

/// What it costs a real server to count kept records.
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

    /// Each count walks over those that its transaction made before it, and a webhook may change a
    /// thousand records.
    @Test func `a kept record that changes is counted once, by the difference`() async throws {
        let test = try TestPlace()
        let store = try RelayStore.open(try test.place(), as: .forTests(), settings: .forTests)
        try await store.save(
            ContainerSettings(key: Sample.container, topics: []), at: Sample.moment(0))
        let connection = try test.session().connectAgain(limits: PostgresSession.readingLimits)
        let db = Database(connection)
        try connection.begin()
        func updates() throws -> Int64? {
            try Int64.fetchOne(
                db,
                sql: """
                    SELECT n_tup_upd FROM pg_stat_xact_user_tables
                    WHERE schemaname = '\(test.schema)' AND relname = 'quotause'
                    """)
        }
        func counted() throws -> String? {
            try String.fetchOne(
                db,
                sql: """
                    SELECT string_agg(
                        '[' || holder || '] ' || number || ' ' || bytes, ', ' ORDER BY holder)
                    FROM quotaUse WHERE thing = 3
                    """)
        }
        try db.execute(sql: Self.creation)
        #expect(try counted() == "[] 1 263, [ann] 1 263")
        let before = try #require(try updates())
        // Nothing that is counted changes.
        try db.execute(sql: "UPDATE shadowRecord SET fields = '{\"a\":2}', source = source")
        #expect(try updates() == before)
        // The container's count, and its user's.
        try db.execute(sql: "UPDATE shadowRecord SET fields = '{\"a\":10}'")
        #expect(try updates() == before + 2)
        #expect(try counted() == "[] 1 264, [ann] 1 264")
        try db.execute(sql: "UPDATE shadowRecord SET isDeleted = 1, fields = NULL")
        #expect(try updates() == before + 4)
        #expect(try counted() == "[] 0 256, [ann] 0 256")
        connection.rollBack()
        await store.close()
    }

    @Test func `a record that comes to be another's, or kept no more, is counted so`()
        async throws
    {
        let test = try TestPlace()
        let store = try RelayStore.open(try test.place(), as: .forTests(), settings: .forTests)
        try await store.save(
            ContainerSettings(key: Sample.container, topics: []), at: Sample.moment(0))
        let connection = try test.session().connectAgain(limits: PostgresSession.readingLimits)
        let db = Database(connection)
        try connection.begin()
        try db.execute(sql: Self.creation)
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
            let counted = try String.fetchOne(
                db,
                sql: """
                    SELECT string_agg(
                        '[' || holder || '] ' || number || ' ' || bytes, ', ' ORDER BY holder)
                    FROM quotaUse WHERE thing = 3
                    """)
            #expect(counted == expected)
        }
        connection.rollBack()
        await store.close()
    }
}
