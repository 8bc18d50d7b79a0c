import Fanout
import Logging
import StoragePostgreSQL
import StorageSQL
import Synchronization

/// Follows a store that another relay owns, so that this relay has the state when it takes over.
final class StandbyWarmth: Sendable {
    private let configuration: RelayConfiguration
    private let logger: Logger
    private let running = Mutex<Task<Void, Never>?>(nil)
    /// The follower that has the state; `nil` if none is kept.
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

    /// How complete the state is; `nil` if none is kept.
    var standby: StoreNode.Standby? {
        follower.map { $0.status?.isWarm == true ? .warm : .loading }
    }

    /// Begins to follow the store at `place`, unless it already does.
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
                    "standing by without the store's state in memory",
                    metadata: ["reason": "\(error)"])
            }
        }
    }

    /// Stops following; the state stays until it is taken.
    func end() {
        running.withLock { $0 }?.cancel()
    }
}
