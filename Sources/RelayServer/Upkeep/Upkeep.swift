import CoreMetrics
import FoundationEssentials
import Logging
import Metrics
import RelayModel
import Storage

/// What is done beside the walk: pruning, watching the bounds, and auditing the accounts.
///
/// Loops that share nothing but the store. A failure of the store is only noted: the walk
/// ends by itself where it must.
struct Upkeep: Sendable {
    /// What can be set.
    struct Settings: Sendable, Hashable {
        /// How long things are kept.
        var retention = Retention()
        /// How long a courier may go without a poll before it is forgotten.
        var courierIdle = Duration.seconds(30 * 86_400)
        /// How long notifications stay in inboxes.
        var inboxAge = Duration.seconds(30 * 86_400)
        /// How long administrative calls stay in the audit log.
        var auditAge = Duration.seconds(8760 * 3600)
        /// The most administrative calls in the audit log, about.
        var auditEntries = 100_000
        /// Entries of the log that may be unsettled before changes are refused; 0 is no bound.
        var logLag = 5_000_000
        /// Retries that may wait before changes are refused; 0 is no bound.
        var retries = 5_000_000
        /// Subscriptions that may wait in ranges before changes are refused; 0 is no bound.
        var rangeSubscriptions = 50_000_000
        /// Bytes of the write-ahead log before changes are refused; 0 is no bound.
        var walBytes = 4096 * 1_048_576
        /// Bytes of memory that the process may use before changes are refused; 0 is no bound.
        var memoryBytes = 0
    }

    /// What it asks of the store: its own calls, and what must be pruned of what others fetch.
    typealias Store =
        StoreUpkeep & ShardLog & CourierQueue & InboxRegistry & SessionRegistry
        & AdministrationRegistry & DeliveryRegistry

    let store: any Store
    let settings: Settings
    let world: World
    let logger: Logger
    /// How far deliveries are settled.
    let progress: @Sendable () -> LogPosition

    private let meter: UpkeepMeter
    private let standing: AccountsStanding
    private let disagreements: DisagreementLog

    init(
        _ store: any Store, settings: Settings, world: World,
        logger: Logger, standing: AccountsStanding = AccountsStanding(),
        metrics: any MetricsFactory = MetricsSystem.factory,
        progress: @escaping @Sendable () -> LogPosition
    ) {
        self.store = store
        meter = UpkeepMeter(metrics)
        self.standing = standing
        self.settings = settings
        self.world = world
        self.logger = logger
        disagreements = DisagreementLog(logger)
        self.progress = progress
    }

    /// Works until the task is cancelled.
    func run() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await every(.seconds(60)) { try await prune() } }
            group.addTask { try await every(.seconds(3600)) { try await store.optimize() } }
            group.addTask { try await addUpFirings() }
            group.addTask { try await every(.seconds(1)) { try await forgetUnkept() } }
            group.addTask { try await every(.seconds(30)) { try await audit() } }
            group.addTask { try await every(.seconds(1)) { try await watch() } }
            try await group.waitForAll()
        }
    }

    /// For how long a failure that is told is not told again: a database may be away for hours.
    private static let longestSilence = Duration.seconds(60)

    /// Does something again and again, until the task is cancelled.
    ///
    /// What a server refuses has its own words, and is no error of the store's kind.
    func every(_ pause: Duration, _ body: () async throws -> Void) async throws {
        var told: String?
        var silence = Duration.zero
        while true {
            try await world.clock.sleep(for: pause)
            silence += pause
            let began = world.clock.measureStart()
            do {
                try await body()
                told = nil
            } catch let error as CancellationError {
                throw error
            } catch {
                // It may fail at once, or wait long for a server that does not answer.
                silence += began.elapsed()
                let reason = "\(error)"
                guard reason != told || silence >= Self.longestSilence else { continue }
                (told, silence) = (reason, .zero)
                logger.warning("upkeep failed", metadata: ["reason": "\(reason)"])
            }
        }
    }

    // MARK: How subscriptions fare

    /// From so many firings on they are added up before their time, so that whoever asks how a
    /// subscription fared does not read more of them by itself: about a millisecond.
    private static let manyFirings = 65_536
    /// Otherwise they are added up once a minute: what fired often meanwhile is written once.
    private static let lookedForFirings = 60

    /// Adds up how subscriptions fare, until the task is cancelled.
    ///
    /// It is the one task that does.
    private func addUpFirings() async throws {
        var looks = 0
        try await every(.seconds(1)) {
            looks += 1
            let isTime = looks.isMultiple(of: Self.lookedForFirings)
            guard isTime || store.firingsNotAddedUp >= Self.manyFirings else { return }
            while try await store.addUpFirings() { try Task.checkCancellation() }
        }
    }

    /// Forgets what is kept no more, as whoever saved the schema, or a relay that ended, has left
    /// it.
    private func forgetUnkept() async throws {
        while try await store.forgetUnkept(parts: 64) > 0 { try Task.checkCancellation() }
    }

    private func prune() async throws {
        let now = world.now()
        let idle = now.advanced(by: .zero - settings.courierIdle)
        let old = now.advanced(by: .zero - settings.inboxAge)
        let cutoff = now.advanced(by: .zero - settings.auditAge)
        try await Self.each(
            { meter.count(try await store.prune(settings.retention, at: now)) },
            {
                try await Self.all {
                    meter.count(
                        try await store.pruneCouriers(idleSince: idle, at: now, limit: 1000),
                        of: "courier")
                }
            },
            {
                try await Self.all {
                    meter.count(
                        try await store.pruneInboxes(unchangedSince: old, count: 1000),
                        of: "notification")
                }
            },
            {
                try await Self.all {
                    meter.count(
                        try await store.pruneSessions(at: now, limit: 1000), of: "userSession")
                }
            },
            {
                try await Self.all {
                    meter.count(
                        try await store.pruneAudit(before: cutoff, most: settings.auditEntries),
                        of: "auditEntry")
                }
            })
    }

    /// Does each of several things, also after one that failed, so that nothing grows for want of
    /// another; then the first failure is thrown.
    static func each(_ steps: (() async throws -> Void)...) async throws {
        var failure: (any Error)?
        for step in steps {
            do {
                try await step()
            } catch let error as CancellationError {
                throw error
            } catch {
                failure = failure ?? error
            }
        }
        if let failure { throw failure }
    }

    /// Deletes a portion after the other until there is none.
    ///
    /// Of much that is deleted at once, as where an age was shortened, an end does not wait for
    /// all: nobody else has the store meanwhile.
    static func all(_ delete: () async throws -> Int) async throws {
        while try await delete() > 0 { try Task.checkCancellation() }
    }

    // MARK: The accounts

    /// Compares the two sides of every account.
    func audit() async throws {
        let accounts = try await store.accounts()
        for account in accounts where account.difference != 0 {
            logger.critical(
                "deliveries are not accounted for",
                metadata: [
                    "container": "\(account.container)", "owed": .stringConvertible(account.owed),
                    "difference": .stringConvertible(account.difference),
                ])
        }
        meter.show(accounts)
        standing.note(accounts)
        meter.show(held: try await store.heldCounts())
    }

    // MARK: The bounds

    /// Looks at the bounds, and opens or closes the gate for changes.
    func watch() async throws {
        tellOfRows(store.unreadable.takeNews())
        try await store.feelForRoom()
        let backlog = try await store.backlog()
        let head = try await store.head()
        let settled = progress()
        let lag = head.rawValue - min(head.rawValue, settled.rawValue)
        let footprint = store.footprint
        let memory = ProcessMemory.residentBytes
        let amounts: [(IntakeBound, amount: Int, most: Int, what: String)] = [
            (.logLag, Int(clamping: lag), settings.logLag, "entries of the log are not settled"),
            (.retries, backlog.retries, settings.retries, "deliveries wait to be tried again"),
            (
                .ranges, backlog.rangeSubscriptions, settings.rangeSubscriptions,
                "subscriptions wait in ranges of huge fan-outs"
            ),
            (.memory, memory, settings.memoryBytes, "bytes of memory are used"),
            (
                .wal, footprint.walBytes, settings.walBytes,
                "bytes of write-ahead log are kept for somebody who reads for long"
            ),
        ]
        var reached: [IntakeBound: String] = [:]
        for (bound, amount, most, what) in amounts where most > 0 && amount > most {
            reached[bound] = "\(amount) \(what)"
        }
        tell(reached)
        disagreements.tell(footprint.disagreements)
        store.gate.set(reached, shares: try await shares(beside: backlog))
        meter.show(
            UpkeepMeter.Watch(
                lag: lag, backlog: backlog, footprint: footprint, memory: memory,
                reached: Set(reached.keys)))
        meter.countRefusals(store.gate.refusals)
        meter.countQuotas(store.quotaTally.reached)
        tellOfUnkept(meter.countUnkept(backlog.unkept))
    }

    private func tellOfUnkept(_ count: Int) {
        guard count > 0 else { return }
        logger.warning(
            "records of changes were not kept: their container has as many as its quota allows",
            metadata: ["changes": .stringConvertible(count)])
    }

    /// The containers that have used up what is left to them of the bounds that all share.
    private func shares(
        beside backlog: Backlog
    ) async throws -> [ContainerKey: [IntakeBound: String]] {
        let rules = [
            BoundShare(.retries, amount: backlog.retries, most: settings.retries),
            BoundShare(
                .ranges, amount: backlog.rangeSubscriptions, most: settings.rangeSubscriptions),
        ]
        guard rules.contains(where: \.isScarce) else { return [:] }
        let containers = try await store.backlogOfContainers()
        guard containers.count > 1 else { return [:] }
        var shares: [ContainerKey: [IntakeBound: String]] = [:]
        for container in containers {
            let amounts = [container.retries, container.rangeSubscriptions]
            for (rule, amount) in zip(rules, amounts) where rule.isUsedUp(by: amount) {
                shares[container.container, default: [:]][rule.bound] =
                    "\(amount) of \(rule.amount) that wait are the container's"
            }
        }
        tell(shares)
        return shares
    }

    private func tell(_ shares: [ContainerKey: [IntakeBound: String]]) {
        let before = store.gate.shares
        for (container, bounds) in shares where before[container] == nil {
            logger.warning(
                "changes of a container are refused, so that others have room",
                metadata: [
                    "container": "\(container)",
                    "bounds": "\(bounds.keys.map(\.rawValue).sorted().joined(separator: ", "))",
                ])
        }
    }

    /// Tells of rows that were set aside; nothing of what they hold.
    private func tellOfRows(_ rows: [UnreadableRow]) {
        for row in rows {
            logger.critical(
                "a row cannot be read, and is set aside",
                metadata: [
                    "table": "\(row.table)", "key": "\(row.key)", "reason": "\(row.reason)",
                ])
        }
        meter.count(rows)
    }

    private func tell(_ reached: [IntakeBound: String]) {
        let before = store.gate.reached
        for (bound, reason) in reached where before[bound] == nil {
            logger.warning(
                "changes are refused until a bound is kept again",
                metadata: ["bound": "\(bound.rawValue)", "reason": "\(reason)"])
        }
        for bound in before.keys where reached[bound] == nil {
            logger.info(
                "changes are taken again", metadata: ["bound": "\(bound.rawValue)"])
        }
    }
}
