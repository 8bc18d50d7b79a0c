//  The composition root: the rooms are joined here, and nowhere else.
//
//  Life: open the store; load what was active at the progress; follow, deliver, serve. The end goes
//  the way of the walk: listeners close, the follower stops, what is in flight finishes within its
//  bound, the store closes. A crash at any point loses none of what was acknowledged.

import Delivery
package import Fanout
import Gateway
package import Logging
import Metrics
import RelayModel
import ServiceLifecycle
import Storage
import StorageSQLite
import Synchronization

/// A relay on an embedded store.
package final class Relay: Service {
    let configuration: RelayConfiguration
    let world: World
    let logger: Logger
    let metrics: PrometheusMetrics
    let store: RelayStore
    let directory: ContainerDirectory
    let tokens: ProviderTokenBuffer
    let gateway: CurlPushGateway
    let courier: CourierPushGateway
    let polls: CourierPolls
    let queries: QueryAdmission
    let worker: DeliveryWorker
    let turns: IntakeTurns
    /// The containers' indexes, which the follower enters.
    let indexes = IndexDirectory()
    private let snapshots: SnapshotStore?
    private let lastImage = Mutex<StateImage?>(nil)
    private let onSuppression: Follower.SuppressionWatcher?
    /// The badges, which the follower and the ranges raise.
    let badges = BadgeCounts()
    /// Says that the badges are loaded.
    let recovered = AsyncStream<Void>.makeStream()
    let phase = Mutex(Phase.starting)
    /// What the follower is at.
    let pulse: FollowerPulse
    /// What is being loaded.
    let loading = Mutex<LoadingStage?>(nil)
    /// The ports that the listeners got.
    package let ports = ServedPorts()

    /// What the relay is doing, for `/readyz`.
    enum Phase: String, Sendable {
        case starting, recovering, following, stopping
    }

    /// Opens the store and prepares the rooms; nothing is served yet.
    ///
    /// - Parameters:
    ///   - configuration: How it runs.
    ///   - world: Clocks and chance.
    ///   - metrics: Where the calls' metrics go.
    ///   - logger: Hears what an operator should know.
    ///   - onSuppression: Is told of each device that is left out because it made the change.
    /// - Throws: ``Storage/StorageError`` if the store cannot be used,
    ///   ``Gateway/GatewaySetupError``
    ///   if the gateway cannot.
    package init(
        _ configuration: RelayConfiguration, world: World, metrics: PrometheusMetrics,
        logger: Logger, onSuppression: Follower.SuppressionWatcher? = nil
    ) async throws {
        self.configuration = configuration
        self.world = world
        self.metrics = metrics
        self.logger = logger
        self.onSuppression = onSuppression
        let began = world.clock.measureStart()
        pulse = FollowerPulse { began.elapsed() }
        // What the configuration gets wrong is said before a store is opened, or made.
        let settings = try CurlGatewaySettings(configuration.gateway)
        let patience = StorePatience(clock: world.clock) { error in
            logger.error("cannot open the store yet", metadata: ["reason": "\(error)"])
        }
        store = try await patience.attempt {
            try RelayStore.open(path: configuration.storagePath, settings: configuration.store)
        }
        snapshots = try await Self.snapshots(
            configuration, store: store, world: world, logger: logger)
        let directory = ContainerDirectory(try await store.containers())
        self.directory = directory
        let tokens = try await ProviderTokenBuffer(registry: store, logger: logger)
        self.tokens = tokens
        let polls = CourierPolls(
            queue: store, settings: configuration.fetching.polls, clock: world.clock,
            now: world.now)
        self.polls = polls
        turns = IntakeTurns(clock: world.clock, window: configuration.delivery.inFlight) {
            [gate = store.gate] in gate.count(.share)
        }
        queries = QueryAdmission(settings: configuration.queries, clock: world.clock)
        let ledger = DeliveryLedger(
            at: try await store.mark(), settings: DeliverySettings(configuration.delivery),
            judge: OutcomeJudge(
                retries: RetryPolicy(maximumAttempts: configuration.delivery.maximumAttempts)),
            now: world.now, generator: world.generator, logger: logger, flow: turns.flow)
        gateway = try CurlPushGateway(
            settings: settings,
            world: GatewayWorld(
                credentials: { container, _ in directory.credential(of: container) },
                wallClock: world.now, generator: world.generator, tokenStore: tokens.store,
                observer: { event in logger.log(event) }), sink: ledger.take)
        courier = CourierPushGateway(
            queue: store, bounds: configuration.fetching.bounds, now: world.now, sink: ledger.take,
            onQueued: { polls.ring($0) },
            onDropped: { count in
                Counter(label: "belfry_courier_dropped_total").increment(by: count)
                logger.info(
                    "dropped couriers' oldest notifications", metadata: ["count": "\(count)"])
            })
        worker = DeliveryWorker(
            on: ledger, recordingTo: store,
            through: GatewaySwitch(apns: gateway, courier: courier), clock: world.clock)
    }

    // MARK: Running

    /// Serves and delivers until a graceful shutdown.
    package func run() async throws {
        log(CurlPushGateway.version)
        logger.info("opened the store", metadata: ["path": "\(store.path)"])
        try await warn()
        let services: [any Service] =
            [
                LoopService { try await self.worker.run() },
                LoopService { await self.tokens.write() },
                LoopService { await self.courier.run() },
                LoopService { try await self.follow() },
                LoopService { try await self.watchFollower() },
                LoopService { try await self.workRanges() },
                LoopService { try await self.upkeep().run() },
                LoopService { try await self.keepSnapshots() },
            ] + (try listeners())
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: services.map {
                    // A failure ends the others in order too: an HTTP server that is cancelled
                    // while a connection comes in ends the process by a trap.
                    ServiceGroupConfiguration.ServiceConfiguration(
                        service: $0, successTerminationBehavior: .gracefullyShutdownGroup,
                        failureTerminationBehavior: .gracefullyShutdownGroup)
                }, logger: quietLogger))
        let outcome: Result<Void, any Error>
        do {
            try await withGracefulShutdownHandler {
                try await group.run()
            } onGracefulShutdown: {
                self.phase.withLock { $0 = .stopping }
                Task { await group.triggerGracefulShutdown() }
            }
            outcome = .success(())
        } catch {
            outcome = .failure(error)
        }
        do {
            try await finish()
        } catch {
            // What ended the relay comes before what followed from it.
            try outcome.get()
            throw error
        }
        try outcome.get()
    }

    /// Lets what is in flight finish, and closes the store.
    private func finish() async throws {
        logger.info("finishing what is in flight", metadata: ["count": "\(worker.inFlight)"])
        do {
            try await worker.shutDown(within: configuration.shutdownGrace)
        } catch {
            // What could not be recorded is owed still, and is worked after the next start.
            logger.error("could not record the last step", metadata: ["reason": "\(error)"])
        }
        await tokens.writeRest()
        do {
            try await snapshots?.finish(
                lastImage.withLock { $0.take() }, progress: worker.recordedMark.position)
        } catch {
            logger.warning("could not keep the last snapshot", metadata: ["reason": "\(error)"])
        }
        if let failure = await store.close() {
            logger.critical("the store did not end in order", metadata: ["reason": "\(failure)"])
            throw failure
        }
        logger.info("closed the store")
    }

    private func keepSnapshots() async throws {
        guard let snapshots else {
            // A loop that ends would end the relay.
            return try await gracefulShutdown()
        }
        try await snapshots.run { [worker] in worker.recordedMark.position }
    }

    private func follow() async throws {
        phase.withLock { $0 = .recovering }
        var generator = world.generator
        let began = world.clock.measureStart()
        var follower = Follower(
            log: store, progress: store, identity: DeliveryIdentity(store: store.storeIdentity),
            indexSeed: generator.next(), badges: badges,
            rangeThreshold: configuration.rangeThreshold, now: world.now, clock: world.clock,
            settings: { [directory] key in directory[key] }, logger: logger, directory: indexes,
            snapshots: snapshots, pulse: pulse, onSuppression: onSuppression,
            take: { [worker, turns, pulse] batch in
                try await worker.accept(batch)
                guard let position = batch.finished else { return }
                turns.followed(upTo: position, work: pulse.takeWork())
            })
        let mark = worker.recordedMark
        try await follower.recover(at: mark, from: store) { stage in
            loading.withLock { $0 = stage }
        }
        logger.info(
            "recovered",
            metadata: ["position": "\(mark.position)", "seconds": "\(began.elapsed())"])
        phase.withLock { $0 = .following }
        recovered.continuation.yield()
        do {
            try await follower.follow(from: mark)
        } catch let error as CancellationError {
            let image = follower.lastImage()
            lastImage.withLock { $0 = image }
            throw error
        }
    }

    /// Returns once everything in the log as it stands is settled.
    ///
    /// - Throws: ``NotSettled`` if that takes longer than `bound`.
    package func waitUntilSettled(within bound: Duration) async throws {
        let head = try await store.head()
        let began = world.clock.measureStart()
        while worker.recordedMark.position < head {
            guard began.elapsed() < bound else { throw NotSettled(inFlight: worker.inFlight) }
            try await world.clock.sleep(for: .milliseconds(5))
        }
    }

    /// Says what an operator should think about.
    private func warn() async throws {
        if store.secretsKeyID == nil {
            logger.warning(
                "secrets lie in the store as they are: set secrets.keyFile to encrypt them")
        }
        for settings in try await store.containers() {
            for warning in settings.warnings {
                logger.warning(
                    "a container's settings are open",
                    metadata: ["container": "\(settings.key)", "reason": "\(warning)"])
            }
        }
    }

    private func log(_ version: TransportVersion) {
        logger.info("push transport", metadata: ["version": "\(version)"])
        if let warning = version.warning { logger.warning("\(warning)") }
    }

    /// The group's own words are of no use to an operator.
    private var quietLogger: Logger {
        var quiet = logger
        quiet.logLevel = .error
        return quiet
    }
}

/// A loop that runs until the group shuts down.
struct LoopService: Service {
    let body: @Sendable () async throws -> Void

    func run() async throws {
        do {
            try await cancelWhenGracefulShutdown { try await body() }
        } catch is CancellationError {
            // The usual end of a loop.
        }
    }
}

/// Something in the log is not settled in time.
package struct NotSettled: Error, Sendable, CustomStringConvertible {
    let inFlight: Int

    /// What is open still.
    package var description: String { "\(inFlight) deliveries are not settled in time" }
}
