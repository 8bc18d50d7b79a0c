@testable import StorageSQL
@testable import StorageSQLite

extension RelayStore {
    /// The connections of a store on a file, for what no store is asked.
    var pool: EmbeddedPool {
        guard let engine = engine as? EmbeddedEngine else {
            preconditionFailure("the store is on no file")
        }
        return engine.pool
    }
}
