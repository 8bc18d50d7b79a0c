import Logging
import Storage
import StoragePostgreSQL
import StorageSQL
import StorageSQLite

/// Opens the store that a configuration names.
struct StoreOpening {
    private let configuration: RelayConfiguration
    private let world: World
    private let logger: Logger

    /// How long a relay waits before it asks for a store again that another one owns.
    private static let standby = Duration.milliseconds(500)

    init(_ configuration: RelayConfiguration, _ world: World, _ logger: Logger) {
        self.configuration = configuration
        self.world = world
        self.logger = logger
    }

    /// Opens it, and waits for what passes: a full disk, a server that is not there yet.
    ///
    /// A store on a server that another relay owns is waited for: this one stands by, and takes its
    /// place. A file that another one has open is not, because two on one machine are a mistake.
    ///
    /// `spool` gets what is committed to a file, for continuous backup.
    func open(copyingTo spool: LogSpool?) async throws -> RelayStore {
        let patience = StorePatience(clock: world.clock) { [logger] error in
            logger.error("cannot open the store yet", metadata: ["reason": "\(error)"])
        }
        return try await patience.attempt {
            guard let url = configuration.storageURL else {
                return try RelayStore.open(
                    path: configuration.storagePath, settings: configuration.store, spool: spool)
            }
            return try await take(try PostgresPlace(url: url, schema: configuration.storageSchema))
        }
    }

    private func take(_ place: PostgresPlace) async throws -> RelayStore {
        let claimant = StoreClaimant(
            name: world.machine, identity: world.randomBytes(16), version: world.version)
        var isStandingBy = false
        var lastReason = ""
        while true {
            do {
                return try RelayStore.open(place, as: claimant, settings: configuration.store)
            } catch StorageError.locked(_, let holder) {
                if lastReason != holder {
                    logger.notice("standing by for the store", metadata: ["owner": "\(holder)"])
                }
                lastReason = holder
                isStandingBy = true
            } catch StorageError.inaccessible(_, let reason) where isStandingBy {
                // It could be used before, and a server that restarts or fails over comes back: who
                // stands by must be there then.
                if lastReason != reason {
                    logger.warning("cannot stand by for now", metadata: ["reason": "\(reason)"])
                }
                lastReason = reason
            }
            try await world.clock.sleep(for: Self.standby)
        }
    }
}

extension RelayConfiguration {
    /// What begins the names of files that a relay keeps for itself.
    func localPath(of store: RelayStore) -> String {
        storageURL == nil ? store.place : storagePath
    }
}
