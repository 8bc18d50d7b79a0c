import Fanout
import Logging
import RelayModel
import Storage
import StorageSQLite
import Synchronization

extension Relay {
    /// Opens the store's snapshots; returns `nil` if none are to be kept, and then removes those
    /// that are there.
    static func snapshots(
        _ configuration: RelayConfiguration, store: RelayStore, world: World, logger: Logger
    ) async throws -> SnapshotStore? {
        let stem = store.path + "-snapshot-"
        guard let interval = configuration.snapshotInterval else {
            try await store.forgetSnapshot()
            SnapshotFile.removeAll(stem: stem, except: nil)
            return nil
        }
        return SnapshotStore(
            SnapshotStore.Settings(stem: stem, interval: interval),
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
