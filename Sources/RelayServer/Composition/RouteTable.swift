import RelayModel
import Storage

/// Creates every group of routes with the part of the dependencies that it needs.
struct RouteTable: Sendable {
    private let relay: RelayDependencies
    private let identifiers: RandomIdentifiers
    private let sessions: SessionService
    let clients: ClientAdmission
    private let intake: ChangeIntake

    init(_ relay: RelayDependencies) {
        self.relay = relay
        identifiers = RandomIdentifiers(relay.randomBytes)
        sessions = SessionService(
            registry: relay.registry, randomBytes: relay.randomBytes, logger: relay.logger)
        clients = ClientAdmission(
            registry: relay.registry, sessions: sessions, turnstile: relay.turnstile,
            signIn: SignInAddress(configured: relay.signInURL, publicURL: relay.publicURL),
            bodies: relay.longBodies)
        intake = ChangeIntake(
            log: relay.log, shadow: relay.shadow, registry: relay.registry,
            turns: ContainerTurns(turns: relay.turns))
    }

    /// All calls, in the order of the documentation.
    var routes: [RelayRoute] {
        subscriptions + devices + records + live + users + changes + console + operation
            + administration
    }

    private var subscriptions: [RelayRoute] {
        SubscriptionRoutes(
            clients: clients, registry: relay.registry, health: health, shadow: relay.shadow,
            knowledge: knowledge,
            indexes: relay.indexes, lists: relay.lists, answers: relay.longAnswers,
            limits: relay.limits, identifiers: identifiers
        ).routes
            + ExplainRoutes(clients: clients, service: explaining, queries: relay.queries).routes
            + RehearseRoutes(clients: clients, service: rehearsing, queries: relay.queries).routes
    }

    private var explaining: ExplainService {
        ExplainService(registry: relay.registry, retention: relay.retention, halts: relay.halts)
    }

    private var health: HealthReading {
        HealthReading(registry: relay.registry, retention: relay.retention)
    }

    private var rehearsing: RehearseService {
        RehearseService(
            registry: relay.registry, knowledge: knowledge, indexes: relay.indexes,
            limits: relay.limits, retention: relay.retention, bodies: relay.longBodies)
    }

    private var knowledge: SubscriptionKnowledge {
        SubscriptionKnowledge(
            shadow: relay.shadow, sources: relay.registry, decoded: relay.decodedSources,
            seen: relay.seen, logger: relay.logger)
    }

    private var devices: [RelayRoute] {
        let base = CourierBase(
            configured: relay.courierURL, own: relay.publicURL, scheme: relay.scheme)
        return TokenRoutes(
            clients: clients, registry: relay.registry, courierBase: base,
            shard: relay.courierShard, identifiers: identifiers
        ).routes
            + CourierRoutes(queue: relay.registry, polls: relay.courier, logger: relay.logger)
            .routes
            + NotificationRoutes(
                clients: clients, inboxes: relay.registry, store: relay.registry.storeIdentity,
                lists: relay.lists, answers: relay.longAnswers, limits: relay.limits
            ).routes
            + ClientReceiptRoutes(
                clients: clients, service: ClientReceiptService(registry: relay.registry),
                queries: relay.queries, limits: relay.limits
            ).routes
    }

    private var records: [RelayRoute] {
        let calls = RecordCalls(
            clients: clients, shadow: relay.shadow, store: relay.registry.storeIdentity,
            lists: relay.lists, answers: relay.longAnswers, limits: relay.limits)
        return RecordRoutes(
            calls: calls, log: relay.log, turns: ContainerTurns(turns: relay.turns),
            identifiers: identifiers
        ).routes
            + RecordFeedRoutes(
                calls: calls, queries: relay.queries, sessions: relay.registry,
                randomBytes: relay.randomBytes
            ).routes
            + ZoneRoutes(
                calls: calls, log: relay.log, turns: ContainerTurns(turns: relay.turns)
            ).routes
    }

    private var live: [RelayRoute] {
        LiveRoutes(present: relay.live, clock: relay.clock).routes
    }

    private var users: [RelayRoute] {
        UserRoutes(clients: clients, registry: relay.registry, limits: relay.limits).routes
            + SignOutRoutes(
                clients: clients, registry: relay.registry, sessions: sessions,
                revoked: relay.revoked
            ).routes
    }

    private var changes: [RelayRoute] {
        ChangeRoutes(
            registry: relay.registry, intake: intake, decoding: decoding,
            publicURL: relay.publicURL, ledger: relay.sourceLedger, turnstile: relay.turnstile,
            sources: relay.decodedSources, logger: relay.logger
        ).routes
    }

    private var decoding: WebhookDecoding {
        WebhookDecoding(
            intake: intake, line: relay.longWebhooks, thread: relay.longWebhookThread)
    }

    private var operations: OperationRoutes {
        OperationRoutes(
            readiness: relay.readiness, renderMetrics: relay.renderMetrics,
            role: { [role = relay.role] in role })
    }

    /// The console's routes; they come before the others because they also answer at the root path.
    private var console: [RelayRoute] {
        guard relay.console.settings.isEnabled else { return [] }
        return ConsoleFiles().routes { [operations] _ in operations.root }
    }

    private var operation: [RelayRoute] {
        operations.routes
            + OpenAPIRoutes(publicURL: relay.publicURL).routes + LivePages.routes
    }

    private var administration: [RelayRoute] {
        let access = AdministrationAccess(
            expected: relay.adminToken, registry: relay.registry, sessions: relay.console,
            cookie: cookie, turnstile: relay.turnstile, logger: relay.logger,
            shard: ShardParameter(shards: relay.shards), line: relay.administrationLine,
            bodies: relay.administrationBodies)
        return (consoleTables + tables).flatMap(\.routes).map { $0.admitted(by: access) }
    }

    private var cookie: ConsoleCookie {
        ConsoleCookie(scheme: relay.scheme, shard: relay.shards?.own)
    }

    private var containers: ContainerAdministration {
        ContainerAdministration(
            registry: relay.registry, halts: relay.halts, saved: relay.containerSaved,
            revoked: relay.revoked, shards: relay.shards, line: relay.settingsLine,
            certificates: relay.certificates)
    }

    private var sources: SourceAdministration {
        SourceAdministration(
            registry: relay.registry, store: relay.registry.storeIdentity,
            ledger: relay.sourceLedger, knowledge: knowledge, followers: relay.followers,
            publicURL: relay.publicURL, randomBytes: relay.randomBytes, line: relay.settingsLine,
            bodies: relay.longBodies)
    }

    /// The calls that only the console's pages make.
    private var consoleTables: [any AdministrationTable] {
        let registry = relay.registry
        return [
            SessionAdministration(sessions: relay.console, cookie: cookie),
            ConsoleAdministration(
                settings: relay.console.settings, series: relay.series,
                hasPhones: relay.phones != nil, publicURL: relay.publicURL,
                retention: relay.retention, now: relay.now, startedAt: relay.startedAt),
            PhoneAdministration(registry: registry, phones: relay.phones),
            SummaryAdministration(
                registry: registry, shadow: relay.shadow, containers: containers, sources: sources,
                answers: relay.answers, retention: relay.retention),
            UserAdministration(registry: registry),
            SendAdministration(registry: registry, intake: intake, decoding: decoding),
        ]
    }

    private var tables: [any AdministrationTable] {
        let registry = relay.registry
        return [
            OverviewAdministration(
                registry: registry, log: relay.log, progress: relay.progress,
                backlog: relay.backlog, halts: relay.halts, boundsReached: relay.boundsReached,
                ledger: relay.sourceLedger, decoded: relay.decodedSources,
                followers: relay.followers, answers: relay.answers,
                health: relay.health, shards: relay.shards,
                now: relay.now, startedAt: relay.startedAt),
            ProcessAdministration(
                levels: relay.logLevels, renewCertificates: relay.renewCertificates),
            ShardAdministration(shards: relay.shards),
            containers,
            KeyAdministration(
                registry: registry, identifiers: identifiers, revoked: relay.revoked,
                line: relay.settingsLine),
            sources,
            SchemaAdministration(
                registry: registry, shadow: relay.shadow, turnstile: relay.turnstile,
                revoked: relay.revoked),
            SubscriptionAdministration(registry: registry, health: health),
            ConditionAdministration(
                registry: registry, knowledge: knowledge, indexes: relay.indexes,
                limits: relay.limits, bodies: relay.longBodies),
            IndexAdministration(registry: registry, indexes: relay.indexes),
            ExplainAdministration(
                registry: registry, service: explaining, queries: relay.queries),
            RehearseAdministration(
                registry: registry, service: rehearsing, queries: relay.queries),
            EventAdministration(registry: registry, events: relay.events),
            ChangeAdministration(
                registry: registry, log: relay.log, intake: intake, decoding: decoding,
                line: relay.replayLine),
            DeliveryAdministration(
                registry: registry, halts: relay.halts, resume: relay.resume,
                redriven: relay.deadLettersRedriven),
            OneDeliveryAdministration(
                registry: registry, halts: relay.halts, shard: relay.shards?.own),
            NotificationAdministration(registry: registry, revoked: relay.revoked),
            LiveAdministration(registry: registry, present: relay.live),
            TokenAdministration(
                registry: registry, identifiers: identifiers, secretsKeyID: relay.secretsKeyID,
                shards: relay.shards),
        ]
    }
}
