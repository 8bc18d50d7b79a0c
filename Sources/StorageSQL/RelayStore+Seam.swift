package import RelayModel
import Storage

// All that the walk and the routes ask of a store, in one value: on one file there is one shard,
// and whoever has the file owns it for ever.
extension RelayStore: Registry {}
extension RelayStore: ShardHandle {
    package var shardIdentity: UUIDBytes { storeIdentity }
}
extension RelayStore: StoreUpkeep {}
