import Fanout
import Logging
import StoragePostgreSQL
import StorageSQL
import Synchronization

/// Keeps the state of a store that another relay owns, as long as this one stands by for it.
final class StandbyWarmth: Sendable {
    private let configuration: RelayConfiguration
    private let logger: Logger
    private let running = Mutex<Task<Void, Never>?>(nil)
    /// What has the state; `nil` if none is to be kept.
    let follower: StandbyFollower?

    init(_ configuration: RelayConfiguration, _ world: World, _ logger: Logger) {
        self.configuration = configuration
        self.logger = logger
        var generator = world.generator
        follower =
            configuration.nodes.isWarm
            ? StandbyFollower(indexSeed: generator.next(), clock: world.clock, logger: logger)
            : nil
    }

    /// How far the state is there; `nil` if none is kept.
    var standby: StoreNode.Standby? {
        follower.map { $0.status?.isWarm == true ? .warm : .loading }
    }

    /// Begins to follow the store at `place`, unless it does already.
    func begin(_ place: PostgresPlace, _ claimant: StoreClaimant) {
        guard let follower else { return }
        running.withLock { running in
            guard running == nil else { return }
            do {
                let store = try RelayStore.reading(
                    place, as: claimant, settings: configuration.store)
                running = Task { await follower.run(from: store) }
            } catch {
                logger.warning(
                    "stands by without the store's state", metadata: ["reason": "\(error)"])
            }
        }
    }

    /// Follows no more; the state stays until it is taken.
    func end() {
        running.withLock { $0 }?.cancel()
    }
}
