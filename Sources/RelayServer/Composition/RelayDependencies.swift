//  RelayServer: HTTP in. The routes of CloudKit's calls, the webhooks, the administrative surface
//  and the metrics.
//
//  Concurrency: every route is a function of a request and of the values here; nothing is kept
//  between requests except metrics. Invariants: no route trusts a container or user that did not
//  come from a credential; no secret reaches an answer or the log; errors become answers only in
//  ErrorMapping. It may import every room.

package import CoreMetrics
package import Delivery
package import Fanout
package import Logging
package import RelayModel
package import Storage

/// Everything that the routes need.
package struct RelayDependencies: Sendable {
    /// The registries; ``RouteTable`` gives each group of routes the part that it uses.
    package var registry: any Registry
    /// The log to which changes are appended.
    package var log: any IntakeLog & ShardLog
    /// The progress of settling.
    package var progress: any ShardProgress
    /// The kept records and the schema.
    package var shadow: any Shadow
    /// The relay's clock.
    package var now: @Sendable () -> Timestamp
    /// Returns the given number of unpredictable bytes.
    package var randomBytes: @Sendable (Int) -> [UInt8]
    /// Whether the relay can serve, and if not, why.
    package var readiness: @Sendable () async -> Readiness
    /// Receives the metrics of the calls.
    package var metrics: any MetricsFactory
    /// Returns the metrics in the Prometheus text format.
    package var renderMetrics: @Sendable () -> String
    /// The clock that measures waits.
    let clock: any Clock<Duration>
    /// The log.
    package var logger: Logger
    /// The limits of requests.
    package var limits: RequestLimits
    /// The role of this relay among those of its store; `nil` if it is the only one.
    package var role: NodeRole?
    /// The shards of the service; `nil` if the store is the only one.
    var shards: ShardAccess?
    /// The token of the administrative surface; `nil` closes it.
    package var adminToken: String?
    /// The ID of the key that encrypts the store's secrets; `nil` if they are not encrypted.
    package var secretsKeyID: String?
    /// The URL at which clients reach the relay, without a slash at the end.
    package var publicURL: PublicURL
    /// The URL at which users sign in; `nil` means the relay's own page, which says that there is
    /// none.
    package var signInURL: String?
    /// The indexes of the containers: the costs of predicates, and statistics.
    package var indexes = IndexDirectory()
    /// Limits how often requests may come.
    package var turnstile: Turnstile
    /// The outcomes of webhooks.
    package let sourceLedger: SourceLedger
    /// The followers of the sources' databases; `nil` if no relay runs.
    package var followers: SourceFollowers?
    /// What the last changes looked like.
    package let seen: SeenChanges
    /// The decoded change sources, which all routes share.
    let decodedSources = SourceMemory()
    /// The open polls of web couriers.
    package var courier: CourierPolls
    /// Admits live clients; `nil` if this process does not follow a log.
    var live: LiveAccess?
    /// Called when a client's right to be connected has ended.
    var revoked: @Sendable (Revocation) async -> Void = { _ in }
    /// Admits queries of records.
    package var queries: QueryAdmission
    /// Limits how many long lists are read at the same time.
    ///
    /// One list may take seconds, so a container leaves two of the turns to others.
    let lists = ReaderLine(turns: 8, left: 2)
    /// The queue in which changes of one container's settings, keys and sources wait for each
    /// other; containers do not wait for one another.
    let settingsLine = ReaderLine(turns: 64, left: 63)
    /// The queue in which replays of one container's parked changes wait for each other; containers
    /// do not wait for one another.
    let replayLine = ReaderLine(turns: 64, left: 63)
    /// The queue in which calls with one-container tokens wait: two at a time for each container.
    let administrationLine = ReaderLine(turns: 8, left: 6)
    /// The queue in which long webhooks are decoded one at a time, by turns of their containers.
    ///
    /// One at a time is enough: the writer takes no more than that.
    let longWebhooks = ReaderLine(turns: 1)
    /// Decodes long webhooks when no other work needs the processor.
    let longWebhookThread = LongWorkThread(name: "belfry.webhooks")
    /// Parses long bodies of clients one at a time, independently of the webhooks.
    let longBodies = LongBodies(
        line: ReaderLine(turns: 1), thread: LongWorkThread(name: "belfry.bodies"))
    /// Answers the calls with one-container tokens that have long bodies, one of each container at
    /// a time.
    ///
    /// Containers do not wait for one another, because such a call may wait for the writer in
    /// between.
    let administrationBodies = LongBodies(
        line: ReaderLine(turns: 64, left: 63), thread: LongWorkThread(name: "belfry.admin"))
    /// Forms and writes long answers.
    let longAnswers = LongAnswers(thread: LongWorkThread(name: "belfry.answers"))
    /// Opens certificates that are saved, which may take seconds, one at a time.
    let certificates = LongBodies(
        line: ReaderLine(turns: 1), thread: LongWorkThread(name: "belfry.certs"))
    /// The beginning of courier URLs; `nil` means the host that the client called.
    package var courierURL: String?
    /// The schema of the store, which courier URLs contain even if the store is the only one; `nil`
    /// for a file.
    ///
    /// More shards may be added later, and a poll names no container.
    package var courierShard: String?
    /// The proxies whose header fields about their clients are trusted.
    package var proxies = TrustedProxies()
    /// The scheme of URLs that begin with the host that the client called.
    package var scheme = "http"
    /// Called with a container's settings after they were saved.
    package var containerSaved: @Sendable (ContainerSettings) -> Void = { _ in }
    /// Called after dead letters were turned into retries that are due.
    package var deadLettersRedriven: @Sendable () -> Void = {}

    /// Slows containers that append faster than the log is followed; `nil` if nothing follows it.
    package var turns: IntakeTurns?
    /// Returns what is owed besides the log.
    package var backlog: @Sendable () async throws -> Backlog = {
        Backlog(retries: 0, ranges: 0, rangeSubscriptions: 0, quarantined: 0)
    }
    /// Returns the halts in force.
    package var halts: @Sendable () -> [HaltInForce] = { [] }
    /// Returns the push gateway's answers to each container since the start.
    package var answers: @Sendable () -> [ContainerKey: GatewayAnswers] = { [:] }
    /// Returns the health of the process.
    package var health: @Sendable () async -> RelayHealth = { RelayHealth() }
    /// The time at which this value was created, which is the start of the relay.
    let startedAt: Timestamp
    /// How long data is kept, for answers about data that is no longer there.
    package var retention = Retention()
    /// Ends the halts of a container, and returns how many there were.
    package var resume: @Sendable (ContainerKey) -> Int = { _ in 0 }
    /// The settings of the access log.
    var accessLog = AccessLog.Settings()
    /// The log level, which can be changed; `nil` if no relay runs.
    package var logLevels: LogLevels?
    /// Reads the files of the listeners' certificate again; `nil` if there are none.
    var renewCertificates: (@Sendable () throws -> Bool)?
    /// The events of the walk, for listeners; `nil` if nothing follows the log.
    package var events: WalkEvents?
    /// The sessions of the console.
    package var console: ConsoleSessions
    /// The pushes to the phones of a sandbox; `nil` outside of one.
    package var phones: SandboxPushes?
    /// The measurements of the last hour; `nil` if nothing follows the log.
    var series: RecentSeries?
    /// Returns the intake limits that are reached, each with a sentence for the operator.
    package var boundsReached: @Sendable () -> [IntakeBound: String] = { [:] }

    /// Creates the dependencies; limits and URLs have defaults.
    package init(
        registry: any Registry, log: any IntakeLog & ShardLog, progress: any ShardProgress,
        shadow: any Shadow, now: @escaping @Sendable () -> Timestamp,
        randomBytes: @escaping @Sendable (Int) -> [UInt8],
        readiness: @escaping @Sendable () async -> Readiness, metrics: any MetricsFactory,
        renderMetrics: @escaping @Sendable () -> String, logger: Logger,
        limits: RequestLimits = RequestLimits(), adminToken: String? = nil,
        publicURL: PublicURL = "http://localhost:8080", signInURL: String? = nil,
        clock: any Clock<Duration>
    ) {
        self.registry = registry
        self.clock = clock
        self.log = log
        self.progress = progress
        self.shadow = shadow
        self.now = now
        startedAt = now()
        self.randomBytes = randomBytes
        self.readiness = readiness
        self.metrics = metrics
        self.renderMetrics = renderMetrics
        self.logger = logger
        self.limits = limits
        self.adminToken = adminToken
        self.publicURL = publicURL
        self.signInURL = signInURL
        turnstile = Turnstile(clock: clock, metrics: metrics)
        sourceLedger = SourceLedger(metrics)
        seen = SeenChanges(log)
        courier = CourierPolls(queue: registry, clock: clock, now: now)
        queries = QueryAdmission(clock: clock)
        console = ConsoleSessions(randomBytes: randomBytes)
    }
}
