import Logging
import RelayModel
import RelayTestKit
import Storage
import StoragePostgreSQL
import StorageSQL
import Testing

@testable import RelayServer

/// The bound on the size of a store's tables and indexes on a server.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
struct DatabaseBoundTests {
    /// More than an empty store grows by in this test, and less than the ballast.
    private static let allowedGrowth = 2 << 20

    private static func upkeep(of store: RelayStore, most bytes: Int) -> Upkeep {
        var settings = Upkeep.Settings()
        settings.databaseBytes = bytes
        return Upkeep(
            store, settings: settings, world: .real, logger: Logger(label: "test"),
            progress: { .start })
    }

    private static func append(_ name: String, to store: RelayStore) async throws {
        _ = try await store.append(
            [Sample.unkeyed(name)], container: Sample.container, source: Sample.source,
            at: Sample.moment(0))
    }

    /// Waits until the store has measured a size that meets the condition, and returns it.
    private static func size(
        of store: RelayStore, when condition: (Int) -> Bool
    ) async -> Int? {
        let isMet = await Turns.yield { condition(store.footprint.databaseBytes ?? 0) }
        return isMet ? store.footprint.databaseBytes : nil
    }

    @Test func `a database beyond its bound refuses changes until it is below the bound again`()
        async throws
    {
        let server = try PostgresServer.ofStores()
        let schema = server.schemaName()
        let claimant = StoreClaimant(
            name: "test", identity: (0..<16).map { _ in .random(in: 0...255) })
        let store = try RelayStore.open(
            try PostgresPlace(url: server.url(), schema: schema), as: claimant, settings: .forTests)
        try await store.save(
            ContainerSettings(key: Sample.container, topics: []), at: Sample.moment(0))
        let empty = try #require(await Self.size(of: store) { $0 > 0 })
        let bound = empty + Self.allowedGrowth
        let upkeep = Self.upkeep(of: store, most: bound)
        try await upkeep.watch()
        try await Self.append("before", to: store)

        // Some 5 MB, and 3 MB of the index.
        try server.sql(
            """
            CREATE TABLE \(schema).ballast AS SELECT n FROM generate_series(1, 150000) AS n;
            CREATE INDEX ballastIndex ON \(schema).ballast (n)
            """)
        let size = try #require(await Self.size(of: store) { $0 > bound })
        try await upkeep.watch()
        let refusal = await #expect(throws: StorageError.self) {
            try await Self.append("beyond", to: store)
        }
        guard case .bounded(.database, let reason)? = refusal else {
            Issue.record("\(String(describing: refusal))")
            return
        }
        #expect(reason.hasSuffix(" bytes are taken by the tables and indexes in the database"))
        #expect(store.gate.refusals[.database] == 1)

        // A higher bound lets changes in at once.
        try await Self.upkeep(of: store, most: size * 2).watch()
        try await Self.append("raised", to: store)
        try await upkeep.watch()
        await #expect(throws: StorageError.self) { try await Self.append("again", to: store) }

        try server.sql("DROP TABLE \(schema).ballast")
        _ = try #require(await Self.size(of: store) { $0 <= bound })
        try await upkeep.watch()
        try await Self.append("after", to: store)
        #expect(store.gate.reached == [:])
        await store.close()
    }
}
