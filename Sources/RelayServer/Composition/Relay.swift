//  The composition root: the rooms are connected here, and nowhere else.
//
//  The start: open the store; load what was active at the progress; follow the log, deliver, serve.
//  The shutdown follows the walk of a change: the listeners close, the follower stops, deliveries
//  in flight finish within the grace period, the store closes. A crash at any point loses no
//  acknowledged change.

import ChangeSources
import Delivery
package import Fanout
import Gateway
import LogShipping
package import Logging
import Metrics
import RelayModel
import ServiceLifecycle
import Storage
import StoragePostgreSQL
import StorageSQL
import Synchronization

/// A relay on one store: a SQLite file or a schema of a PostgreSQL server.
package final class Relay: Service {
    let configuration: RelayConfiguration
    let world: World
    let logger: Logger
    let metrics: PrometheusMetrics
    let store: RelayStore
    /// Ships the store's backups; `nil` if no place for them is configured.
    let shipper: LogShipper?
    let directory: ContainerDirectory
    let tokens: ProviderTokenBuffer
    let gateway: CurlPushGateway
    let courier: CourierPushGateway
    let polls: CourierPolls
    let queries: QueryAdmission
    /// The containers' indexes, which the follower maintains.
    let indexes = IndexDirectory()
    /// The events of the walk, for listeners.
    let events: WalkEvents
    /// The connected devices, and what they were told over their connections.
    let presence = LivePresence()
    /// The sessions of the console.
    let console: ConsoleSessions
    /// The pushes to the phones of a sandbox; `nil` outside of one.
    let phones: SandboxPushes?
    /// The measurements of the last hour.
    let series: RecentSeries
    /// The result of the last comparison of the deliveries' accounts.
    let accounts = AccountsStanding()
    /// The walk of the store's shard.
    let walk: ShardWalk
    /// The ports on which the listeners are open.
    package let ports: ServedPorts
    /// The listeners that are already open, because another relay may have owned the store; `nil`
    /// if only one relay can use the store.
    let nodeListeners: NodeListeners?
    /// Ensures that only one shard gets a container; `nil` if the store is the only one.
    let claim: ContainerClaim?
    /// Knows the relays of all stores; `nil` if the store is not spread with others.
    let census: StoreCensus?
    /// Whether the store is handed over to another machine; `handOver` signals it.
    let handedOver = Mutex(false)
    let handOver = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
    /// The log level, which can be changed; `nil` if it cannot.
    let levels: LogLevels?
    /// The certificate of the listeners; `nil` without TLS.
    let certificate: ServedCertificate?

    /// Opens the store and prepares the rooms; nothing is served yet.
    ///
    /// - Parameters:
    ///   - configuration: The settings.
    ///   - world: The clocks and the source of randomness.
    ///   - metrics: Receives the metrics.
    ///   - logger: Receives what an operator should know.
    ///   - levels: The log level, which can be changed while the relay runs.
    ///   - watch: Is called with the outcome of each change.
    ///   - phones: Collects the pushes to the phones of a sandbox.
    ///   - ports: Receives the ports of the listeners, which may be open before this returns.
    /// - Throws: ``Storage/StorageError`` if the store cannot be used,
    ///   ``Gateway/GatewaySetupError`` if the gateway cannot.
    package init(
        _ configuration: RelayConfiguration, world: World, metrics: PrometheusMetrics,
        logger: Logger, levels: LogLevels? = nil, watch: ChangeWatch? = nil,
        phones: SandboxPushes? = nil, ports: ServedPorts = ServedPorts()
    ) async throws {
        (self.ports, self.levels) = (ports, levels)
        self.configuration = configuration
        (self.phones, self.world) = (phones, world)
        self.metrics = metrics
        self.logger = logger
        // Errors of the configuration must be reported before a store is opened or created.
        let settings = try CurlGatewaySettings(configuration.gateway)
        let certificate = try configuration.tls.map { files throws(ConfigurationError) in
            try ServedCertificate(files, logger: logger)
        }
        self.certificate = certificate
        let backup = try RelayBackup(configuration, world: world)
        let opened = try await StoreOpening(configuration, world, logger)
            .opened(copyingTo: backup?.spool, metrics, ports, certificate)
        (nodeListeners, store) = (opened.listeners, opened.store)
        (claim, census) = (opened.claim, opened.census)
        shipper = backup?.shipper(of: store, world: world, logger: logger)
        let shard: any ShardHandle = store
        let snapshots = try await SnapshotStore.opened(
            of: shard, stem: configuration.localPath(of: store) + "-snapshot-",
            every: configuration.snapshotInterval, world: world, logger: logger)
        let directory = ContainerDirectory(try await store.containers())
        self.directory = directory
        let tokens = try await ProviderTokenBuffer(registry: store, logger: logger)
        self.tokens = tokens
        let polls = CourierPolls(
            queue: store, settings: configuration.fetching.polls, clock: world.clock,
            now: world.now)
        self.polls = polls
        let turns = IntakeTurns(
            clock: world.clock, window: configuration.delivery.inFlight,
            hasNeighbors: { directory.count > 1 },
            refused: { [gate = store.gate] in gate.count(.share) })
        queries = QueryAdmission(settings: configuration.queries, clock: world.clock)
        console = ConsoleSessions(configuration.console) { world.randomBytes($0) }
        series = RecentSeries(identifiers: RandomIdentifiers { world.randomBytes($0) })
        let events = WalkEvents(clock: world.clock, now: world.now) { world.randomBytes($0) }
        self.events = events
        let ledger = DeliveryLedger(
            at: try await shard.mark(), settings: DeliverySettings(configuration.delivery),
            judge: OutcomeJudge(
                retries: RetryPolicy(maximumAttempts: configuration.delivery.maximumAttempts)),
            now: world.now, generator: world.generator, logger: logger, flow: turns.flow,
            watch: events.answers, presence: presence)
        gateway = try CurlPushGateway(
            settings: settings,
            world: GatewayWorld(
                credentials: { container, _ in directory.credential(of: container) },
                wallClock: world.now, generator: world.generator, tokenStore: tokens.store,
                hasEnded: { shard.hasEnded($0.serial, since: $0.ends) },
                observer: { event in logger.log(event) }), sink: ledger.take)
        courier = CourierPushGateway(
            queue: store, bounds: configuration.fetching.bounds, now: world.now, sink: ledger.take,
            onQueued: { polls.ring($0) }, onDropped: { Self.noteDropped($0, logger) })
        let worker = DeliveryWorker(
            on: ledger, recordingTo: shard,
            through: GatewaySwitch(apns: gateway, courier: courier), clock: world.clock)
        walk = ShardWalk(
            of: shard, worker: worker, turns: turns, snapshots: snapshots, standby: opened.standby,
            in: WalkSurroundings(
                configuration: configuration, world: world, logger: logger, directory: directory,
                indexes: indexes, events: events, watch: events.watch.and(watch),
                metrics: metrics))
    }

    private static func noteDropped(_ count: Int, _ logger: Logger) {
        Counter(label: "belfry_courier_dropped_total").increment(by: count)
        logger.info(
            "dropped the oldest notifications of web couriers",
            metadata: ["count": .stringConvertible(count)])
    }

    // MARK: Running

    /// Serves and delivers until a graceful shutdown.
    package func run() async throws {
        log(CurlPushGateway.version)
        logger.info("opened the store", metadata: ["path": "\(store.place)"])
        if store.secretsKeyID == nil {
            logger.warning(
                "secrets in the store are not encrypted: set secrets.keyFile to encrypt them")
        }
        if let advice = store.advice { logger.warning("\(advice)") }
        let group = try serviceGroup()
        let handingOver = Task { [handOver, walk, store] in
            // A service must not leave the group by itself while the group shuts down.
            for await _ in handOver.stream {
                walk.stop()
                store.expectEnd()
                await group.triggerGracefulShutdown()
            }
        }
        defer { handingOver.cancel() }
        let outcome: Result<Void, any Error>
        do {
            try await withGracefulShutdownHandler {
                try await group.run()
            } onGracefulShutdown: {
                self.walk.stop()
                self.store.expectEnd()
                Task { await group.triggerGracefulShutdown() }
            }
            outcome = .success(())
        } catch {
            outcome = .failure(error)
        }
        do {
            try await finish()
        } catch {
            // The error that ended the relay takes precedence over one that followed from it.
            try outcome.get()
            throw error
        }
        try outcome.get()
    }

    /// All services, in the order in which they start; they end in the reverse order.
    private func serviceGroup() throws -> ServiceGroup {
        let services: [any Service] =
            [
                walk.sending,
                LoopService { await self.tokens.write() },
                LoopService { await self.courier.run() },
            ] + walk.following
            + [
                LoopService { try await self.upkeep.run() },
                LoopService { try await self.sampleSeries() },
                LoopService { try await self.warn() },
            ] + (shipper.map { [shipBackups($0)] } ?? [])
            + (census.map { [spreading($0)] } ?? [])
            + (certificate.map { [watch($0)] } ?? []) + (try listeners())
        return ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: services.map {
                    // A failure shuts the others down gracefully too: an HTTP server that is
                    // cancelled while a connection arrives crashes the process.
                    ServiceGroupConfiguration.ServiceConfiguration(
                        service: $0, successTerminationBehavior: .gracefullyShutdownGroup,
                        failureTerminationBehavior: .gracefullyShutdownGroup)
                }, logger: quietLogger))
    }

    /// Lets what is in flight finish, and closes the store.
    private func finish() async throws {
        let isAwaited = isHandedOver || store.footprint.nodes ?? 1 > 1
        await walk.finishSending(isAwaited: isAwaited)
        await tokens.writeRest()
        // A relay that stands by has the state, and sends as soon as it owns the store. So this one
        // does not delay the hand-over by writing a snapshot.
        await walk.keepState(writesLast: !isAwaited)
        let failure = await store.close()
        await shipRest()
        // Until other relays know the next owner, this one answers their forwarded calls, saying
        // that nothing was done. After a hand-over, the process continues and answers them anyway.
        if !isHandedOver { await nodeListeners?.farewell() }
        if let failure {
            logger.critical("the store was not closed cleanly", metadata: ["reason": "\(failure)"])
            throw failure
        }
        logger.info("closed the store")
    }

    /// The periodic work beside the walk.
    private var upkeep: Upkeep {
        Upkeep(
            store, settings: configuration.upkeep, world: world, logger: logger,
            standing: accounts, metrics: metrics, progress: { [walk] in walk.settled })
    }

    /// Ends the relay once another machine should own the store.
    private func spreading(_ census: StoreCensus) -> any Service {
        LoopService { try await self.spread(by: census) }
    }

    /// Checks regularly whether the files of the certificate have changed.
    private func watch(_ certificate: ServedCertificate) -> any Service {
        LoopService { [world] in try await certificate.watch(by: world.clock) }
    }

    /// Reads the files of the certificate again if they have changed, and logs the result.
    package func renewCertificates() {
        certificate?.look()
    }

    /// Returns once everything in the log as it stands is settled.
    ///
    /// - Throws: ``NotSettled`` if that takes longer than `bound`.
    package func waitUntilSettled(within bound: Duration) async throws {
        let head = try await store.head()
        let began = world.clock.measureStart()
        while walk.settled < head {
            guard began.elapsed() < bound else { throw NotSettled(inFlight: walk.worker.inFlight) }
            try await world.clock.sleep(for: .milliseconds(5))
        }
    }

    /// Logs warnings about the containers' settings.
    ///
    /// It runs beside everything else: with many containers it takes long, and must not delay what
    /// is owed.
    private func warn() async throws {
        do {
            try await warnOfContainers()
        } catch let error as CancellationError {
            throw error
        } catch {
            logger.warning(
                "could not check the containers' settings", metadata: ["reason": "\(error)"])
        }
        // A loop that ends would end the relay.
        try await gracefulShutdown()
    }

    private func warnOfContainers() async throws {
        for settings in try await store.containers() {
            for warning in settings.warnings {
                logger.warning(
                    "a container's settings are too permissive",
                    metadata: ["container": "\(settings.key)", "reason": "\(warning)"])
            }
            for stored in try await store.sources(of: settings.key) {
                guard let source = try? stored.changeSource() else { continue }
                do throws(JSONContractError) {
                    try source.checkSeams()
                } catch {
                    logger.warning(
                        "events of a source are refused in binary mode",
                        metadata: [
                            "container": "\(settings.key)", "source": "\(stored.name)",
                            "reason": "\(error)",
                        ])
                }
            }
        }
    }

    private func log(_ version: TransportVersion) {
        logger.info("push transport", metadata: ["version": "\(version)"])
        if let warning = version.warning { logger.warning("\(warning)") }
    }

    /// The service group's own messages are of no use to an operator.
    private var quietLogger: Logger {
        var quiet = logger
        quiet.logLevel = .error
        return quiet
    }
}

/// The error of a relay that has not settled its log in time.
package struct NotSettled: Error, Sendable, CustomStringConvertible {
    let inFlight: Int

    /// A sentence with the number of open deliveries.
    package var description: String { "\(inFlight) deliveries were not settled in time" }
}
