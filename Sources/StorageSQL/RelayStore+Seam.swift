package import RelayModel
import Storage

// All that the walk and the routes ask of a store, in one value: there is one shard, and whoever
// has opened the store owns it.
extension RelayStore: Registry {}
extension RelayStore: ShardHandle {
    package var shardIdentity: UUIDBytes { storeIdentity }
}
extension RelayStore: StoreUpkeep {}
