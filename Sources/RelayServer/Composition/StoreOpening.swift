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
    /// How long one that should not have the store leaves it to the one that should: some looks,
    /// and no more than a hand-over may take.
    private static let headStart = Duration.milliseconds(300)
    /// Likewise of one that has not the store's state, as one that has just handed it over: it
    /// would load for longer than that.
    private static let longHeadStart = Duration.seconds(2)

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
            let more = configuration.nodes.isSharded ? ShardWatch.connectionCount : 0
            try await patience.attempt {
                try place.checkConnections(for: configuration.store, besides: more)
            }
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
        guard configuration.nodes.isSharded else {
            return try await NodeListeners.opened(maker(), own: own)
        }
        let watch = try ShardWatch(place, schemas: configuration.nodes.schemas)
        let sights = try await patience.attempt { try await watch.look() }
        return try await NodeListeners.opened(maker(), own: own, watch, sights)
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
        let nodes = configuration.nodes
        let claimant = StoreClaimant(
            name: name, identity: world.randomBytes(16), version: world.version,
            endpoint: listeners?.endpoint, settings: configuration.agreed,
            machine: nodes.machine(of: world), stores: nodes.isSpreading ? nodes.schemas : [])
        let census = nodes.isSpreading ? StoreCensus(of: nodes.schemas) : nil
        let warmth = StandbyWarmth(configuration, world, logger)
        let watch = try StoreWatch(place, as: claimant, census: census) { warmth.standby }
        defer { warmth.end() }
        let store = try await take(watch, warmth, listeners?.answering) {
            warmth.begin(place, claimant)
            listeners?.answering.note(warmth.follower)
        }
        let claim =
            configuration.nodes.isSharded
            ? ContainerClaim(place, as: claimant, schemas: configuration.nodes.schemas) : nil
        return OpenedRelayStore(
            listeners: listeners, store: store, standby: warmth.follower, claim: claim,
            census: census)
    }

    /// Takes the store as soon as nobody else has it; `standingBy` is called when another does.
    private func take(
        _ watch: StoreWatch, _ warmth: StandbyWarmth, _ answering: NodeAnswering?,
        standingBy: () -> Void
    ) async throws -> RelayStore {
        var standing = StandbyPatience()
        let disagreements = DisagreementLog(logger)
        let began = world.clock.measureStart()
        // What kept it from the store, which may take it as long again to find out.
        var obstacle = ""
        while true {
            answering?.current.post(.nobody("the relay opens the store\(obstacle)"))
            try await leaveHeadStart(
                watch, of: warmth.standby == .warm ? Self.headStart : Self.longHeadStart)
            do {
                return try await watch.open(configuration.store)
            } catch let error as StorageError {
                try tell(standing.verdict(on: error), error)
                if case .locked = error { standingBy() }
                obstacle = Self.obstacle(error)
            }
            try await standBy(watch, answering, disagreements, &standing, since: began)
        }
    }

    /// What whoever asks is told of a failure.
    private static func obstacle(_ error: StorageError) -> String {
        guard case .inaccessible(_, let reason) = error else { return "" }
        return ": \(NodeAnswering.told(reason))"
    }

    /// Lets the machine that should have the store take it first, if nobody has it.
    private func leaveHeadStart(_ watch: StoreWatch, of headStart: Duration) async throws {
        let schema = configuration.storageSchema
        guard let view = await watch.view(), !view.isOwned(schema),
            let machine = view.machine(for: schema),
            machine != configuration.nodes.machine(of: world)
        else { return }
        let began = world.clock.measureStart()
        while began.elapsed() < headStart {
            try await world.clock.sleep(for: Self.look)
            if (try? await watch.owner()) != nil { return }
        }
    }

    /// Returns once the store may be asked for.
    private func standBy(
        _ watch: StoreWatch, _ answering: NodeAnswering?, _ disagreements: DisagreementLog,
        _ standing: inout StandbyPatience, since began: Stopwatch
    ) async throws {
        while true {
            try await world.clock.sleep(for: Self.look)
            do {
                let owner = try await watch.owner()
                let mayTake = standing.mayTake(at: began.elapsed())
                if let owner { answering?.note(owner) } else if mayTake { return }
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
    /// Sees to it that one shard alone gets a container; `nil` if the store is the only one.
    var claim: ContainerClaim?
    /// Looks who of all stores' relays is there; `nil` if the store is not spread with others.
    var census: StoreCensus?
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

    /// How long a store without an owner is left alone once the server is back: its owner could not
    /// renew the lease either, and tries once a second.
    static let welcome = Duration.milliseconds(2500)

    private var isStandingBy = false
    private var last = ""
    /// Whether the server could not be asked last, and when it could be again.
    private var isAway = false
    private var back: Duration?

    /// What follows from not getting the store.
    mutating func verdict(on error: StorageError) -> Verdict {
        switch error {
        case .locked(_, let holder):
            isStandingBy = true
            return wait(holder)
        case .inaccessible(_, let reason) where isStandingBy:
            isAway = true
            return wait(reason)
        case let error where error.passes: return wait("\(error)")
        default: return .end
        }
    }

    /// Whether the store may be asked for if nobody owns it, where the server said so at `moment`.
    mutating func mayTake(at moment: Duration) -> Bool {
        if isAway { (isAway, back) = (false, moment) }
        return back.map { moment - $0 >= Self.welcome } ?? true
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
