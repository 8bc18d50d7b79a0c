import Storage

// Whatever the walk and the doors ask of a store, in one value: on one file there is one shard, and
// whoever has the file owns it forever.
extension RelayStore: Registry {}
extension RelayStore: ActiveVersions {}
extension RelayStore: ShardHandle {}
extension RelayStore: StoreUpkeep {}
