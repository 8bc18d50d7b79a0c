import CoreMetrics
import FoundationEssentials
import Logging
import Metrics
import RelayModel
import Storage

/// The periodic work beside the walk: pruning, watching the bounds, and auditing the accounts.
///
/// Its loops share nothing but the store. A failure of the store is only logged here; the walk ends
/// by itself where it must.
struct Upkeep: Sendable {
    /// The settings of upkeep.
    struct Settings: Sendable, Hashable {
        /// How long data is kept.
        var retention = Retention()
        /// How long a courier may go without a poll before it is forgotten.
        var courierIdle = Duration.seconds(30 * 86_400)
        /// How long notifications stay in inboxes.
        var inboxAge = Duration.seconds(30 * 86_400)
        /// How long administrative calls stay in the audit log.
        var auditAge = Duration.seconds(8760 * 3600)
        /// The approximate maximum number of administrative calls in the audit log.
        var auditEntries = 100_000
        /// The number of unsettled log entries above which changes are refused; 0 means no limit.
        var logLag = 5_000_000
        /// The number of retries above which changes are refused; 0 means no limit.
        var retries = 5_000_000
        /// The number of subscriptions in ranges above which changes are refused; 0 means no limit.
        var rangeSubscriptions = 50_000_000
        /// The size of the write-ahead log in bytes above which changes are refused; 0 means no
        /// limit.
        var walBytes = 4096 * 1_048_576
        /// The size of the tables and indexes on a server in bytes above which changes are refused;
        /// 0 means no limit.
        var databaseBytes = 0
        /// The memory of the process in bytes above which changes are refused; 0 means no limit.
        var memoryBytes = 0
    }

    /// The parts of the store that upkeep needs: its own calls, and the pruning of what clients
    /// fetch.
    typealias Store =
        StoreUpkeep & ShardLog & CourierQueue & InboxRegistry & SessionRegistry
        & AdministrationRegistry & DeliveryRegistry

    let store: any Store
    let settings: Settings
    let world: World
    let logger: Logger
    /// Returns the position up to which deliveries are settled.
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

    /// Runs until the task is cancelled.
    func run() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await every(.seconds(60)) { try await prune() } }
            group.addTask { try await every(.seconds(3600)) { try await store.optimize() } }
            group.addTask { try await addUpFirings() }
            group.addTask { try await every(.seconds(1)) { try await forgetUnkept() } }
            group.addTask { try await pruneUsers() }
            group.addTask { try await every(.seconds(30)) { try await audit() } }
            group.addTask { try await every(.seconds(1)) { try await watch() } }
            try await group.waitForAll()
        }
    }

    /// How long a repeated failure is not logged again; a database may be unavailable for hours.
    private static let longestSilence = Duration.seconds(60)

    /// Repeats `body` after each pause until the task is cancelled, and logs its failures.
    ///
    /// It catches every error, because what a database server refuses is not always a
    /// `StorageError`.
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
                // The failed call counts too: it may fail at once, or wait long for a server that
                // does not answer.
                silence += began.elapsed()
                let reason = "\(error)"
                guard reason != told || silence >= Self.longestSilence else { continue }
                (told, silence) = (reason, .zero)
                logger.warning("upkeep failed", metadata: ["reason": "\(reason)"])
            }
        }
    }

    // MARK: How subscriptions fare

    /// The number of firings above which they are added up early.
    ///
    /// A reader of a subscription's health must add up the rest itself, which takes about a
    /// millisecond for this many.
    private static let manyFirings = 65_536
    /// Otherwise firings are added up every 60 seconds, so that a subscription that fired often is
    /// written once.
    private static let lookedForFirings = 60

    /// Adds up the subscriptions' firings until the task is cancelled.
    ///
    /// No other task does.
    private func addUpFirings() async throws {
        var looks = 0
        try await every(.seconds(1)) {
            looks += 1
            let isTime = looks.isMultiple(of: Self.lookedForFirings)
            guard isTime || store.firingsNotAddedUp >= Self.manyFirings else { return }
            while try await store.addUpFirings() { try Task.checkCancellation() }
        }
    }

    /// Deletes records of types that are no longer kept; a schema change, or a former relay, may
    /// have left some.
    private func forgetUnkept() async throws {
        while try await store.forgetUnkept(parts: 64) > 0 { try Task.checkCancellation() }
    }

    /// The number of users who are looked at in one transaction, and of such transactions a minute.
    ///
    /// A million users are looked at in three hours, and more are forgotten in a minute than one
    /// container's rates let come.
    private static let usersAtOnce = 500
    private static let userTurns = 10

    /// Deletes users whom nothing refers to, until the task is cancelled.
    private func pruneUsers() async throws {
        var place: Int64 = 0
        try await every(.seconds(60)) {
            for _ in 0..<Self.userTurns {
                let (next, deleted) = try await store.pruneUsers(
                    after: place, among: Self.usersAtOnce)
                _ = meter.count(deleted, of: "user")
                place = next ?? 0
                if next == nil { return }
            }
        }
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

    /// Runs all steps, even after one has failed, and then throws the first failure.
    ///
    /// One failing step must not let the data of another grow.
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

    /// Deletes portion after portion until nothing is left.
    ///
    /// A shutdown does not wait until everything is deleted, which may be much after a setting was
    /// lowered, because the next owner needs the store.
    static func all(_ delete: () async throws -> Int) async throws {
        while try await delete() > 0 { try Task.checkCancellation() }
    }

    // MARK: The accounts

    /// Compares the two sides of every account, and records the result.
    func audit() async throws {
        let accounts = try await store.accounts()
        for account in accounts where account.difference != 0 {
            logger.critical(
                "the delivery accounts do not balance",
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

    /// Checks the bounds, and opens or closes the gate for changes.
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
                "bytes of write-ahead log are kept, because something reads the store for a long "
                    + "time"
            ),
            (
                .database, footprint.databaseBytes ?? 0, settings.databaseBytes,
                "bytes are taken by the tables and indexes in the database"
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
            "did not keep records of changes: the container has reached its quota of records",
            metadata: ["changes": .stringConvertible(count)])
    }

    /// Returns the containers that have used up their share of the common bounds.
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
                    "\(amount) of \(rule.amount) that wait belong to this container"
            }
        }
        tell(shares)
        return shares
    }

    private func tell(_ shares: [ContainerKey: [IntakeBound: String]]) {
        let before = store.gate.shares
        for (container, bounds) in shares where before[container] == nil {
            logger.warning(
                "refusing changes of a container to leave room for others",
                metadata: [
                    "container": "\(container)",
                    "bounds": "\(bounds.keys.map(\.rawValue).sorted().joined(separator: ", "))",
                ])
        }
    }

    /// Logs rows that were set aside, without their contents.
    private func tellOfRows(_ rows: [UnreadableRow]) {
        for row in rows {
            logger.critical(
                "set aside a row that cannot be read",
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
                "refusing changes: a bound is exceeded",
                metadata: ["bound": "\(bound.rawValue)", "reason": "\(reason)"])
        }
        for bound in before.keys where reached[bound] == nil {
            logger.info(
                "accepting changes again", metadata: ["bound": "\(bound.rawValue)"])
        }
    }
}
