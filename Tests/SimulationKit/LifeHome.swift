import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite

/// The place of a life's store.
struct LifeHome: Sendable {
    /// The beginning of the names of the snapshots.
    let path: String
    /// Opens the store for another relay, while the owner still has it; `nil` if no other relay
    /// can take it.
    let takeOver: (@Sendable () throws -> RelayStore)?
    /// Checks every row of the store, as `belfry check` does.
    let check: @Sendable () throws -> StoreReport

    init(
        path: String, takeOver: (@Sendable () throws -> RelayStore)?,
        check: @escaping @Sendable () throws -> StoreReport
    ) {
        self.path = path
        self.takeOver = takeOver
        self.check = check
    }

    /// The home of a store in a file.
    init(_ home: TemporaryStore) {
        let path = home.path
        self.init(path: path, takeOver: nil, check: { try RelayStore.check(path: path) })
    }
}
