import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StoragePostgreSQL
@testable import StorageSQL

/// Record types that are no longer kept, on a real server.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
struct UnkeptTests {
    private static let type = RecordTypeDefinition(Sample.identifier("Artwork"), isInferred: true)

    /// Inserts many records of a source and some of a user, with their counts.
    private static let filling = """
        INSERT INTO shadowRecord (container, database, owner, zoneOwner, zoneName, recordType,
            recordName, source, position, fields, isKept, isDeleted, createdBy)
        SELECT container.id, 'public', '', '', '_defaultZone', 'Artwork', 'r' || n,
            CASE WHEN n % 4 = 0 THEN '_cloudkit' ELSE 'postgres' END, n,
            CASE WHEN n % 5 = 0 THEN NULL ELSE '{"n":{"value":1}}' END, 1,
            CASE WHEN n % 5 = 0 THEN 1 ELSE 0 END, CASE WHEN n % 4 = 0 THEN 'alice' END
        FROM container, generate_series(1, 4000) AS n;
        INSERT INTO quotaUse (container, thing, holder, number, bytes)
        SELECT container, 3, '', sum(1 - isDeleted), sum(bytes) FROM recordHolding
        GROUP BY container
        UNION ALL
        SELECT container, 3, holder, sum(1 - isDeleted), sum(bytes) FROM recordHolding
        WHERE holder <> '' GROUP BY container, holder;
        """

    @Test func `many records of an unkept type are deleted and counted`() async throws {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        try await store.extendSchema(of: Sample.container, with: [Self.type])
        try test.server.sql(
            "SET search_path = \(test.schema); SET session_replication_role = replica; "
                + Self.filling)
        try test.server.sql("ANALYZE \(test.schema).shadowRecord")
        func counted() throws -> String {
            try test.server.sql(
                """
                SELECT string_agg(
                    '[' || holder || '] ' || number || ' ' || bytes, ', ' ORDER BY holder)
                FROM \(test.schema).quotaUse WHERE thing = 3
                """)
        }
        #expect(try counted().hasPrefix("[] 3200 "))
        #expect(try counted().contains("[alice] 800 "))
        try await store.replaceSchema(
            of: Sample.container, with: ContainerSchema(), at: Sample.moment(1))
        // Saving the schema deletes some of the records; upkeep deletes the rest.
        #expect(try !counted().hasPrefix("[] 0 "))
        while try await store.forgetUnkept(parts: 9) > 0 {}
        #expect(try counted() == "[] 0 0, [alice] 0 0")
        let kept = try test.server.sql(
            "SELECT count(*) FROM \(test.schema).shadowRecord WHERE isKept = 1")
        #expect(kept == "0")
        // The counts of a type that is kept again start anew, row by row.
        try await store.extendSchema(of: Sample.container, with: [Self.type])
        _ = try await store.append(
            [Sample.unkeyed("r1"), Sample.unkeyed("new")], container: Sample.container,
            source: Sample.source, at: Sample.moment(2))
        #expect(try counted().hasPrefix("[] 2 "))
        await store.close()
    }
}
