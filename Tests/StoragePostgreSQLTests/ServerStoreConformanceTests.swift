import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import Synchronization
import Testing

@testable import StoragePostgreSQL

/// The engine on a server honours the contract of every engine.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
struct ServerStoreConformanceTests {
    @Test(arguments: StoreConformance.cases)
    func `the store honours its contract:`(_ contract: ConformanceCase) async throws {
        let factory = ServerStoreFactory()
        do {
            try await contract.check(factory)
        } catch {
            await factory.close()
            throw error
        }
        await factory.close()
    }
}

/// Creates each store in a schema of its own.
final class ServerStoreFactory: StoreFactory {
    private let stores = Mutex<[String: RelayStore]>([:])

    func makeStore() async throws -> any ConformingStore {
        try open(try TestPlace().place())
    }

    func reopen(_ store: any ConformingStore) async throws -> any ConformingStore {
        let store = try #require(store as? RelayStore)
        await store.close()
        let place = try #require((store.engine as? ServerEngine)?.target)
        return try open(place)
    }

    private func open(_ place: PostgresPlace) throws -> RelayStore {
        let store = try RelayStore.open(place, as: .forTests(), settings: .forTests)
        stores.withLock { $0[place.schema] = store }
        return store
    }

    /// Closes the stores, and with them their connections.
    func close() async {
        for store in stores.withLock({ $0 }).values { await store.close() }
    }
}
