package import RelayModel
import Storage

// Everything that the walk and the routes ask of a store, in one value. There is one shard, and the
// process that opened the store owns it.
extension RelayStore: Registry {}
extension RelayStore: ShardHandle {
    package var shardIdentity: UUIDBytes { storeIdentity }
}
extension RelayStore: StoreUpkeep {}
