import Fanout
import Logging
import RelayModel
import Storage

extension SnapshotStore {
    /// Opens the snapshots of a shard, in files whose names begin with `stem`.
    ///
    /// It returns `nil` if no snapshots are kept, and then removes existing ones.
    static func opened(
        of shard: any ShardHandle, stem: String, every interval: Duration?, world: World,
        logger: Logger
    ) async throws -> SnapshotStore? {
        guard let interval else {
            try await shard.forgetSnapshot()
            SnapshotFile.removeAll(stem: stem, except: nil)
            return nil
        }
        return SnapshotStore(
            Settings(stem: stem, interval: interval), storeIdentity: shard.shardIdentity,
            store: shard, now: world.now, clock: world.clock,
            makeIdentity: {
                var generator = world.generator
                return UUIDBytes(high: generator.next(), low: generator.next())
            }, logger: logger)
    }
}
