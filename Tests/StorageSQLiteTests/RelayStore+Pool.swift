@testable import StorageSQL
@testable import StorageSQLite

extension RelayStore {
    /// The pool of connections of a store on a file, for queries that the store itself does not
    /// offer.
    var pool: EmbeddedPool {
        guard let engine = engine as? EmbeddedEngine else {
            preconditionFailure("the store is on no file")
        }
        return engine.pool
    }
}
