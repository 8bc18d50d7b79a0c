import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Synchronization
import Testing

/// The embedded engine honours the contract of every engine.
@Suite struct RelayStoreConformanceTests {
    @Test(arguments: StoreConformance.cases)
    func `the store honours its contract:`(_ contract: ConformanceCase) async throws {
        try await contract.check(RelayStoreFactory())
    }
}

/// Creates stores in folders that live as long as the factory.
final class RelayStoreFactory: StoreFactory {
    private let homes = Mutex<[String: TemporaryStore]>([:])

    func makeStore() async throws -> any ConformingStore {
        let home = try TemporaryStore()
        homes.withLock { $0[home.path] = home }
        return try home.open()
    }

    func reopen(_ store: any ConformingStore) async throws -> any ConformingStore {
        let store = try #require(store as? RelayStore)
        await store.close()
        let home = try #require(homes.withLock { $0[store.path] })
        return try home.open()
    }
}
