//  RelayServer: HTTP in. The routes of CloudKit's calls, the webhooks, the administrative surface
//  and the metrics.
//
//  Concurrency: every route is a function of a request and of the values here; nothing is kept
//  between requests except metrics. Invariants: no route believes a container or user that did not
//  come from a credential; no secret reaches an answer or the log; errors become answers in
//  ErrorMapping and nowhere else. It may import every room.

package import CoreMetrics
package import Delivery
package import Fanout
package import Logging
package import RelayModel
package import Storage

/// What the routes need of the world.
package struct RelayDependencies: Sendable {
    /// All that is registered; ``RouteTable`` hands each table of routes the part that it uses.
    package var registry: any Registry
    /// Where changes are appended.
    package var log: any IntakeLog & ShardLog
    /// How far deliveries are settled.
    package var progress: any ShardProgress
    /// The records that are kept, and the schema.
    package var shadow: any Shadow
    /// The relay's clock.
    package var now: @Sendable () -> Timestamp
    /// Makes unpredictable bytes, as many as it is asked for.
    package var randomBytes: @Sendable (Int) -> [UInt8]
    /// Whether the relay can serve, and if not, why.
    package var readiness: @Sendable () async -> Readiness
    /// Where the calls' metrics go.
    package var metrics: any MetricsFactory
    /// The metrics as Prometheus reads them.
    package var renderMetrics: @Sendable () -> String
    /// Measures waits.
    let clock: any Clock<Duration>
    /// The log of the room.
    package var logger: Logger
    /// What requests may ask for.
    package var limits: RequestLimits
    /// What the relay is among those of its store; `nil` where it is alone.
    package var role: NodeRole?
    /// The shards of the service; `nil` where the store is the only one.
    var shards: ShardAccess?
    /// The token of the administrative surface; `nil` closes it.
    package var adminToken: String?
    /// The ID of the key that encrypts the store's secrets; `nil` if they lie there as they are.
    package var secretsKeyID: String?
    /// How clients reach the relay, without a slash at the end.
    package var publicURL: PublicURL
    /// Where users sign in; `nil` means the relay's own page that says so.
    package var signInURL: String?
    /// The indexes of the containers: what predicates cost, and statistics.
    package var indexes = IndexDirectory()
    /// What lets requests in as often as they may come.
    package var turnstile: Turnstile
    /// What became of webhooks.
    package let sourceLedger: SourceLedger
    /// Follow the databases of sources; `nil` where no relay runs.
    package var followers: SourceFollowers?
    /// What the last changes looked like.
    package let seen: SeenChanges
    /// Where polls of web couriers wait.
    package var courier: CourierPolls
    /// Where connected clients come in; `nil` where nothing is followed.
    var live: LiveAccess?
    /// Is told whose right to be connected has ended.
    var revoked: @Sendable (Revocation) async -> Void = { _ in }
    /// Lets queries of records in.
    package var queries: QueryAdmission
    /// Bounds how many long lists are put together at the same time; one may take seconds, so that
    /// a container leaves two of the turns to others.
    let lists = ReaderLine(turns: 8, left: 2)
    /// Has the settings of a container changed by one at a time, beside those of others.
    let settingsLine = ReaderLine(turns: 64, left: 63)
    /// Has parked changes of a container replayed one at a time, beside those of others.
    let replayLine = ReaderLine(turns: 64, left: 63)
    /// Has calls with tokens of one container answered two at a time, beside those of others.
    let administrationLine = ReaderLine(turns: 8, left: 6)
    /// Has long webhooks decoded one at a time, by turns of their containers: the writer takes no
    /// more than one decodes.
    let longWebhooks = ReaderLine(turns: 1)
    /// Decodes them, when nobody else wants the processor.
    let longWebhookThread = LongWorkThread(name: "belfry.webhooks")
    /// Parses long bodies of clients, in the same way and beside these.
    let longBodies = LongBodies(
        line: ReaderLine(turns: 1), thread: LongWorkThread(name: "belfry.bodies"))
    /// Answers calls with tokens of one container that have long bodies, one of each container at a
    /// time: they may wait for others' writes in between.
    let administrationBodies = LongBodies(
        line: ReaderLine(turns: 64, left: 63), thread: LongWorkThread(name: "belfry.admin"))
    /// Opens certificates that are saved, which may take seconds, beside these.
    let certificates = LongBodies(
        line: ReaderLine(turns: 1), thread: LongWorkThread(name: "belfry.certs"))
    /// What courier URLs begin with; `nil` means the host that the client asked for.
    package var courierURL: String?
    /// The schema of the store, which courier URLs name also where it is the only one: others may
    /// come beside it, and a poll names no container; `nil` of a file.
    package var courierShard: String?
    /// The proxies whose word about their clients is believed.
    package var proxies = TrustedProxies()
    /// The scheme of URLs that begin with the host that the client asked for.
    package var scheme = "http"
    /// Is told of a container's settings once they are saved.
    package var containerSaved: @Sendable (ContainerSettings) -> Void = { _ in }
    /// Is told that dead letters were turned into retries that are due.
    package var deadLettersRedriven: @Sendable () -> Void = {}

    /// Holds containers that append faster than they are followed; `nil` where nobody follows.
    package var turns: IntakeTurns?
    /// What is owed besides the log.
    package var backlog: @Sendable () async throws -> Backlog = {
        Backlog(retries: 0, ranges: 0, rangeSubscriptions: 0, quarantined: 0)
    }
    /// What waits, and why.
    package var halts: @Sendable () -> [HaltInForce] = { [] }
    /// What the push gateway said to each container since the start.
    package var answers: @Sendable () -> [ContainerKey: GatewayAnswers] = { [:] }
    /// What the relay is short of.
    package var health: @Sendable () async -> RelayHealth = { RelayHealth() }
    /// When these were collected, which is when the relay was started.
    let startedAt: Timestamp
    /// How long things are kept, for those who ask for what is gone.
    package var retention = Retention()
    /// Ends the halts of a container, and says how many there were.
    package var resume: @Sendable (ContainerKey) -> Int = { _ in 0 }
    /// Which requests are logged.
    var accessLog = AccessLog.Settings()
    /// What is logged at the least, for whoever changes it; `nil` where nothing runs.
    package var logLevels: LogLevels?
    /// Reads the files of the listeners' certificate again; `nil` where there are none.
    var renewCertificates: (@Sendable () throws -> Bool)?
    /// What happens to changes, for listeners; `nil` where nobody follows.
    package var events: WalkEvents?
    /// Who is signed in at the console.
    package var console: ConsoleSessions
    /// What the phones of a sandbox got; `nil` where pushes go to real ones.
    package var phones: SandboxPushes?
    /// How the last hour went; `nil` where nobody follows.
    var series: RecentSeries?
    /// The bounds that are reached, each with what people should know.
    package var boundsReached: @Sendable () -> [IntakeBound: String] = { [:] }

    /// Collects what the routes need; limits and URLs have defaults.
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
