import RelayTestKit
import Storage
import StoragePostgreSQL
import StorageSQL
import Synchronization

extension Lives {
    /// Whether there is a PostgreSQL server to live on.
    package static let hasServer = PostgresServer.isInstalled

    /// Runs the life of every seed on a PostgreSQL server, one after the other.
    ///
    /// At some crashes another relay takes the store, while the former owner still has it open.
    ///
    /// - Returns: The sum of the lives that kept the promises, and the broken promises.
    /// - Throws: An error of a store, or of the server.
    package static func liveOnServer(
        _ seeds: Range<UInt64>
    ) async throws -> (tally: LifeTally, broken: [BrokenPromise]) {
        let server = try PostgresServer.ofStores()
        var all = LifeTally()
        var broken: [BrokenPromise] = []
        for seed in seeds where broken.count < 5 {
            do {
                all += try await live(seed: seed, on: server)
            } catch let promise as BrokenPromise {
                broken.append(promise)
            }
        }
        return (all, broken)
    }

    private static func live(
        seed: UInt64, on server: PostgresServer
    ) async throws -> LifeTally {
        let schema = server.schemaName()
        let place = try PostgresPlace(url: server.url(), schema: schema)
        let identities = Mutex(SeededGenerator(seed: seed ^ 0x0DD))
        let open: @Sendable () throws -> RelayStore = {
            let identity = identities.withLock { generator in
                (0..<16).map { _ in UInt8.random(in: 0...255, using: &generator) }
            }
            return try RelayStore.open(
                place, as: StoreClaimant(name: "life", identity: identity), settings: .forTests)
        }
        let home = LifeHome(
            path: try TemporaryStore(in: .memory).path,
            takeOver: {
                // As if the lease had ended: nobody waits for that here.
                try server.sql("UPDATE \(schema).ownership SET owner = NULL")
                return try open()
            }, check: { try RelayStore.check(place) })
        let tally = try await live(seed: seed, in: home, on: try open(), withClients: false)
        try server.sql("DROP SCHEMA \(schema) CASCADE")
        return tally
    }
}
