import Fanout
import Logging
import RelayModel
import Storage
import StorageSQLite
import Synchronization

extension Relay {
    /// The keeper of the store's snapshots; `nil` if none are to be kept, and then those that are
    /// there are removed.
    static func keeper(
        _ configuration: RelayConfiguration, store: RelayStore, world: World, logger: Logger
    ) async throws -> SnapshotKeeper? {
        let stem = store.path + "-snapshot-"
        guard let interval = configuration.snapshotInterval else {
            try await store.forgetSnapshot()
            SnapshotFile.removeAll(stem: stem, except: nil)
            return nil
        }
        return SnapshotKeeper(
            SnapshotKeeper.Settings(stem: stem, interval: interval),
            storeIdentity: store.storeIdentity, store: store, now: world.now, clock: world.clock,
            makeIdentity: {
                var generator = world.generator
                return UUIDBytes(high: generator.next(), low: generator.next())
            }, logger: logger)
    }

    /// What the relay waits for before it is ready.
    var readinessReasons: [String: String] {
        let phase = phase.withLock { $0 }
        var reasons = ["follower": phase.rawValue]
        if phase == .recovering, let stage = loading.withLock({ $0 }) {
            reasons["loading"] = "\(stage)"
        }
        return reasons
    }
}
