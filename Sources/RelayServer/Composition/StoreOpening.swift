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

    /// The interval at which a relay that stands by checks who owns the store.
    private static let look = Duration.milliseconds(50)
    /// How long a relay that should not own the store leaves it to the one that should: several
    /// looks, but no longer than a hand-over may take.
    private static let headStart = Duration.milliseconds(300)
    /// The same for a relay without the store's state, for example one that has just handed the
    /// store over.
    ///
    /// Loading the state would take it longer than this.
    private static let longHeadStart = Duration.seconds(2)

    init(_ configuration: RelayConfiguration, _ world: World, _ logger: Logger) {
        self.configuration = configuration
        self.world = world
        self.logger = logger
    }

    /// Opens the listeners, if they must be open before the store is, and then the store.
    ///
    /// - Throws: The errors of ``listeners(_:)`` and ``open(copyingTo:at:)``, and for a server
    ///   those of `checkConnections`; then no listener stays open.
    func opened(
        copyingTo spool: LogSpool?, _ metrics: PrometheusMetrics, _ ports: ServedPorts,
        _ certificate: ServedCertificate?
    ) async throws -> OpenedRelayStore {
        if let place = try place {
            // With too few connections, the relay could neither stand by nor own the store
            // properly.
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

    /// Opens the listeners that must be open before the store is.
    ///
    /// It returns `nil` for a store that only one relay can use, and if other relays cannot reach
    /// this one.
    ///
    /// - Throws: ``StorageError`` if the server cannot be used, ``AddressError`` if an address is
    ///   not available.
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
                try PostgresPlace(
                    url: $0, schema: configuration.storageSchema,
                    requiresStandby: configuration.requiresStandby)
            }
        }
    }

    private var patience: StorePatience {
        StorePatience(clock: world.clock) { [logger] error in
            logger.error("cannot open the store; trying again", metadata: ["reason": "\(error)"])
        }
    }

    /// Opens the store, and waits while the obstacle is temporary: a full disk, or a server that
    /// has not started yet.
    ///
    /// If another relay owns a store on a server, this one stands by and takes its place later. If
    /// another process has a file open, this fails, because two relays on one machine are a
    /// mistake.
    ///
    /// `spool` receives what is committed to a file, for continuous backup.
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
        // Without listeners there is no actual port yet, so the name contains the configured one.
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
        let store: RelayStore
        do {
            store = try await take(watch, warmth, listeners?.answering) {
                warmth.begin(place, claimant)
                listeners?.answering.note(warmth.follower)
            }
        } catch {
            await watch.leave()
            throw error
        }
        let claim =
            configuration.nodes.isSharded
            ? ContainerClaim(place, as: claimant, schemas: configuration.nodes.schemas) : nil
        return OpenedRelayStore(
            listeners: listeners, store: store, standby: warmth.follower, claim: claim,
            census: census)
    }

    /// Takes the store as soon as no other relay owns it; calls `standingBy` if another one does.
    private func take(
        _ watch: StoreWatch, _ warmth: StandbyWarmth, _ answering: NodeAnswering?,
        standingBy: () -> Void
    ) async throws -> RelayStore {
        var standing = StandbyPatience()
        let disagreements = DisagreementLog(logger)
        let began = world.clock.measureStart()
        // The reason why the last attempt failed; callers see it, because the next attempt may take
        // as long.
        var obstacle = ""
        while true {
            answering?.current.post(.nobody("the relay is opening the store\(obstacle)"))
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

    /// Returns the part of a failure that callers may see.
    private static func obstacle(_ error: StorageError) -> String {
        guard case .inaccessible(_, let reason) = error else { return "" }
        return ": \(NodeAnswering.told(reason))"
    }

    /// If no relay owns the store, lets the machine that should own it take it first.
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

    /// Returns once this relay may try to take the store.
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
                // Calls still go to the last known owner, which may be able to reach the database.
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
                logger.warning("cannot stand by; trying again", metadata: ["reason": "\(error)"])
            }
        }
    }
}

/// A store that this relay owns from now on.
struct OpenedRelayStore: Sendable {
    /// The listeners that are already open; `nil` for a store that only one relay can use.
    let listeners: NodeListeners?
    let store: RelayStore
    /// The follower that stood by for the store; `nil` if there was none.
    var standby: StandbyFollower?
    /// Ensures that only one shard gets a container; `nil` if the store is the only one.
    var claim: ContainerClaim?
    /// Knows the relays of all stores; `nil` if the store is not spread with others.
    var census: StoreCensus?
}

/// Decides whether a relay that wants a store waits or ends after a failure.
///
/// A permanent failure at the start ends the relay, so that the operator sees it. A relay that
/// already stands by could use the server before, so the server is only restarting or being
/// replaced. The relay must still be there when it returns.
struct StandbyPatience: Sendable, Hashable {
    /// What the relay does after a failure.
    enum Verdict: Sendable, Hashable {
        /// The relay tries again; `isNews` says whether to log the reason.
        case wait(isNews: Bool)
        /// The relay ends with the error.
        case end
    }

    /// How long a store without an owner is left alone after the server has returned.
    ///
    /// Its owner could not renew the lease either, and tries to once a second.
    static let welcome = Duration.milliseconds(2500)

    private var isStandingBy = false
    private var last = ""
    /// Whether the last look failed to reach the server, and the time at which the server was back.
    private var isAway = false
    private var back: Duration?

    /// Decides what follows from a failure to get the store.
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

    /// Returns whether the relay may try to take a store without an owner; the server answered at
    /// `moment`.
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
    /// Returns the path with which the names of the relay's local files begin.
    func localPath(of store: RelayStore) -> String {
        storageURL == nil ? store.place : storagePath
    }
}
