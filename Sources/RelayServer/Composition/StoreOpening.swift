import Fanout
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

    /// How often a relay that stands by looks who owns the store.
    private static let look = Duration.milliseconds(50)

    init(_ configuration: RelayConfiguration, _ world: World, _ logger: Logger) {
        self.configuration = configuration
        self.world = world
        self.logger = logger
    }

    /// Opens the listeners, where they stand before the store does, and then the store.
    ///
    /// - Throws: What ``listeners(_:)`` and ``open(copyingTo:at:)`` do, and of a server what
    ///   `checkConnections` does; there are no listeners then.
    func opened(
        copyingTo spool: LogSpool?, _ metrics: PrometheusMetrics, _ ports: ServedPorts,
        _ certificate: ServedCertificate?
    ) async throws -> OpenedRelayStore {
        if let place = try place {
            // Who has too few would stand by, or own the store, and do neither well.
            try await patience.attempt { try place.checkConnections() }
        }
        let listeners = try await listeners {
            ListenerMaker(
                configuration, world: world, metrics: metrics, logger: logger, ports: ports,
                certificate: certificate, isForwarding: true)
        }
        do {
            return try await open(copyingTo: spool, at: listeners)
        } catch {
            await listeners?.close()
            throw error
        }
    }

    /// Opens the listeners that stand before the store does; `nil` for a store that one relay alone
    /// can use, or if this one is not to be reached by others.
    ///
    /// - Throws: ``StorageError`` if the server cannot be used, ``AddressError`` if an address
    ///   cannot be had.
    private func listeners(_ maker: () -> ListenerMaker) async throws -> NodeListeners? {
        guard let place = try place, configuration.nodes.advertised != .none else { return nil }
        let own = try await patience.attempt { try place.ownAddress() }
        return try await NodeListeners.opened(maker(), own: own)
    }

    private var place: PostgresPlace? {
        get throws {
            try configuration.storageURL.map {
                try PostgresPlace(url: $0, schema: configuration.storageSchema)
            }
        }
    }

    private var patience: StorePatience {
        StorePatience(clock: world.clock) { [logger] error in
            logger.error("cannot open the store yet", metadata: ["reason": "\(error)"])
        }
    }

    /// Opens it, and waits for what passes: a full disk, a server that is not there yet.
    ///
    /// A store on a server that another relay owns is waited for: this one stands by, and takes its
    /// place. A file that another one has open is not, because two on one machine are a mistake.
    ///
    /// `spool` gets what is committed to a file, for continuous backup.
    private func open(
        copyingTo spool: LogSpool?, at listeners: NodeListeners?
    ) async throws -> OpenedRelayStore {
        guard let place = try place else {
            let store = try await patience.attempt {
                try RelayStore.open(
                    path: configuration.storagePath, settings: configuration.store, spool: spool)
            }
            return OpenedRelayStore(listeners: listeners, store: store)
        }
        // Without listeners it has no port yet, which is the one that is set then.
        let name =
            listeners?.name
            ?? configuration.nodes.named(on: world.machine, port: configuration.http.port)
        let claimant = StoreClaimant(
            name: name, identity: world.randomBytes(16), version: world.version,
            endpoint: listeners?.endpoint, settings: configuration.agreed)
        let warmth = StandbyWarmth(configuration, world, logger)
        let watch = try StoreWatch(place, as: claimant) { warmth.standby }
        defer { warmth.end() }
        let store = try await take(watch, listeners?.answering) {
            warmth.begin(place, claimant)
            listeners?.answering.note(warmth.follower)
        }
        return OpenedRelayStore(listeners: listeners, store: store, standby: warmth.follower)
    }

    /// Takes the store as soon as nobody else has it; `standingBy` is called when another does.
    private func take(
        _ watch: StoreWatch, _ answering: NodeAnswering?, standingBy: () -> Void
    ) async throws -> RelayStore {
        var standing = StandbyPatience()
        let disagreements = DisagreementLog(logger)
        while true {
            answering?.current.post(.nobody("the relay opens the store"))
            do {
                return try await watch.open(configuration.store)
            } catch let error as StorageError {
                try tell(standing.verdict(on: error), error)
                if case .locked = error { standingBy() }
            }
            try await standBy(watch, answering, disagreements, &standing)
        }
    }

    /// Returns once the store may be asked for.
    private func standBy(
        _ watch: StoreWatch, _ answering: NodeAnswering?, _ disagreements: DisagreementLog,
        _ standing: inout StandbyPatience
    ) async throws {
        while true {
            try await world.clock.sleep(for: Self.look)
            do {
                guard let owner = try await watch.owner() else { return }
                answering?.note(owner)
                answering?.noteSight()
                disagreements.tell(watch.disagreements)
            } catch let error as StorageError {
                // Calls go to the owner meanwhile, who may reach the database.
                answering?.noteNoSight(error)
                try tell(standing.verdict(on: error), error)
            }
        }
    }

    private func tell(_ verdict: StandbyPatience.Verdict, _ error: StorageError) throws {
        switch verdict {
        case .end: throw error
        case .wait(isNews: false): break
        case .wait(isNews: true):
            if case .locked(_, let holder) = error {
                logger.notice("standing by for the store", metadata: ["owner": "\(holder)"])
            } else {
                logger.warning("cannot stand by for now", metadata: ["reason": "\(error)"])
            }
        }
    }
}

/// A store that this relay owns from now on.
struct OpenedRelayStore: Sendable {
    /// The listeners that stand already; `nil` of a store that one relay alone can use.
    let listeners: NodeListeners?
    let store: RelayStore
    /// What stood by for the store; `nil` if nothing did.
    var standby: StandbyFollower?
}

/// How long a relay that wants a store bears with what keeps it from it: a pure decision.
///
/// What is wrong when it comes ends it, for whoever starts it to see. Who stands by already could
/// use the server before: it restarts, or another takes its place, and who stands by must be there
/// then.
struct StandbyPatience: Sendable, Hashable {
    /// What follows from a failure.
    enum Verdict: Sendable, Hashable {
        /// It is tried again; whether that is to be told.
        case wait(isNews: Bool)
        /// The relay ends with it.
        case end
    }

    private var isStandingBy = false
    private var last = ""

    /// What follows from not getting the store.
    mutating func verdict(on error: StorageError) -> Verdict {
        switch error {
        case .locked(_, let holder):
            isStandingBy = true
            return wait(holder)
        case .inaccessible(_, let reason) where isStandingBy: return wait(reason)
        case let error where error.passes: return wait("\(error)")
        default: return .end
        }
    }

    private mutating func wait(_ reason: String) -> Verdict {
        defer { last = reason }
        return .wait(isNews: reason != last)
    }
}

extension RelayConfiguration {
    /// What begins the names of files that a relay keeps for itself.
    func localPath(of store: RelayStore) -> String {
        storageURL == nil ? store.place : storagePath
    }
}
