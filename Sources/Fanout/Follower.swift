package import CoreMetrics
package import Logging
import Matching
package import RelayModel
package import Storage

/// Reads the log in order: applies each edit to the state, and matches, expands, composes and hands
/// over each change.
///
/// Concurrency: one task runs ``follow(from:)``, and only that task touches the follower's state.
/// It suspends while the receiver of deliveries has no room. Life: recover once, follow until
/// cancelled.
package struct Follower: ~Copyable {
    /// Returns the settings of a container, from memory.
    package typealias SettingsSource = @Sendable (ContainerKey) -> ContainerSettings?
    /// Takes the deliveries, and suspends while there is no room.
    package typealias Taker = @Sendable (OwedBatch) async throws -> Void

    /// The number of entries that are read at a time.
    static let entriesPerRead = 256
    /// The number of deliveries that are handed over at a time.
    private static let deliveriesPerBatch = 512
    /// The number of deliveries handed over at a time while several containers write.
    private static let deliveriesBesideOthers = 32
    /// The number of fired subscriptions that are expanded at a time.
    private static let subscriptionsPerPortion = 1024
    /// The number of subscriptions of one range.
    static let subscriptionsPerRange = 1000

    var state: ShardState
    /// The position of the last worked entry, which `state` reflects.
    var worked = LogPosition.start
    /// The number of edits since the last snapshot.
    var edits = 0
    private var pending: [OwedDelivery] = []
    private var pendingInbox: [InboxEntry] = []
    /// The badges that were set by registrations that were worked.
    var pendingBadges: [BadgeHolder: Int64] = [:]
    /// The effects of worked entries on subscriptions.
    var pendingFirings = PendingFirings()
    var handedOver = LogPosition.start
    private var turns = LogTurns()
    /// The changes that are judged beside the log, and the entries that wait for them.
    var putOff: PutOffEntries
    private let identity: DeliveryIdentity
    let log: any ShardLog
    private let progress: any ShardProgress
    let settings: SettingsSource
    /// The observer of what happened to each change.
    let watch: ChangeWatch?
    let take: Taker
    /// The judge of dear changes, or `nil` if all changes are judged in the log's turn.
    let beside: BesideLog?
    let snapshots: SnapshotStore?
    let logger: Logger
    let meter: FanoutMeter
    private let rangeThreshold: Int
    let now: @Sendable () -> Timestamp
    let patience: StorePatience
    /// The registry that the state was loaded from, once it was.
    var registry: (any ActiveVersions)?
    /// The positions that were set aside before the start and are not judged again.
    private var setAsideBefore: Set<LogPosition> = []
    let pulse: FollowerPulse?

    /// Creates a follower that has not recovered yet.
    ///
    /// A ``RangeWorker`` shares `badges`. A change that fires over `rangeThreshold` subscriptions
    /// is left to ranges. A change whose conditions take more than `mostSteps` steps is set aside.
    /// A dear change is judged by `beside`, if given, while other containers write too. `now` tells
    /// when an entry was set aside. `clock` measures the waits for a full disk or a locked file.
    /// `pulse` is told what is worked, and `metrics` what is counted.
    package init(
        log: any ShardLog, progress: any ShardProgress, identity: DeliveryIdentity,
        indexSeed: UInt64, badges: BadgeCounts = BadgeCounts(),
        rangeThreshold: Int = Limits.maximumMatchesAtOnce,
        now: @escaping @Sendable () -> Timestamp = { Timestamp(seconds: 0) },
        clock: any Clock<Duration>,
        settings: @escaping SettingsSource, logger: Logger,
        directory: IndexDirectory? = nil, snapshots: SnapshotStore? = nil,
        mostSteps: Int = Limits.maximumStepsPerChange, pulse: FollowerPulse? = nil,
        watch: ChangeWatch? = nil, beside: BesideLog? = nil,
        metrics: any MetricsFactory = MetricsSystem.factory, take: @escaping Taker
    ) {
        self.beside = beside
        meter = FanoutMeter(metrics)
        putOff = PutOffEntries(most: beside?.mostChanges ?? 1)
        state = ShardState(
            indexSeed: indexSeed, badges: badges, directory: directory, mostSteps: mostSteps)
        self.pulse = pulse
        self.snapshots = snapshots
        self.rangeThreshold = rangeThreshold
        self.now = now
        patience = StorePatience(clock: clock) { error in
            logger.error("cannot read the log; trying again", metadata: ["reason": "\(error)"])
        }
        self.identity = identity
        self.log = log
        self.progress = progress
        self.settings = settings
        self.logger = logger
        self.watch = watch
        self.take = take
    }

    // MARK: Recovery

    /// Makes a subscription active, or logs and leaves out one that cannot be read.
    mutating func activate(_ version: SubscriptionVersion) {
        state.activate(version, logger) { meter.countUnreadable() }
    }

    // MARK: Following

    /// Follows the log from `mark` until the task is cancelled.
    ///
    /// After a cancellation it first works the changes that are judged beside the log.
    package mutating func follow(from mark: ProgressMark) async throws {
        do {
            try await work(from: mark)
        } catch let error as CancellationError {
            // Otherwise the next start would owe everything after those changes again.
            try await makeUpAll()
            throw error
        }
    }

    private mutating func work(from mark: ProgressMark) async throws {
        var position = mark.position
        var offset = mark.offset
        handedOver = mark.position
        setAsideBefore = try await patience.attempt { [log] in
            try await log.positionsSetAside(after: mark.position)
        }
        defer { pulse?.rest() }
        while true {
            try Task.checkCancellation()
            guard let entries = try await readableEntries(after: &position) else {
                offset = 0
                continue
            }
            turns.look(ahead: entries)
            for entry in entries {
                pulse?.work(
                    on: FollowerPulse.Entry(position: entry.position, container: entry.container))
                try await work(entry, from: offset)
                pulse?.finish()
                offset = 0
                position = entry.position
                worked = position
                try await makeUpJudged()
                // No container's push may wait long for the entries behind it.
                let isAwaited =
                    turns.isContended && pending.count >= Self.deliveriesBesideOthers
                // A badge that a registration sets must be handed over before deliveries that raise
                // it.
                if isAwaited || pendingFirings.isMany || !pendingBadges.isEmpty {
                    try await handOver(finished: position)
                }
            }
            if entries.isEmpty {
                try await waitForNews(beyond: position)
                try await makeUpJudged()
            } else {
                try await handOver(finished: position)
                try await refile(after: entries.count)
            }
            offerSnapshot()
        }
    }

    /// Hands over what is pending, once every entry up to `position` was worked or put off.
    mutating func handOver(
        finished position: LogPosition, ranges: [NewRange] = []
    ) async throws {
        let isProgress = handedOver < position
        guard isProgress || !pending.isEmpty || !pendingInbox.isEmpty else { return }
        let batch = OwedBatch(
            deliveries: pending, finished: isProgress ? position : nil, inbox: pendingInbox,
            ranges: ranges, firings: pendingFirings.take(),
            badges: isProgress ? pendingBadges : [:], behind: putOff.first)
        pending.removeAll(keepingCapacity: true)
        pendingInbox.removeAll(keepingCapacity: true)
        if isProgress { pendingBadges = [:] }
        handedOver = max(handedOver, position)
        CrashPoint.handOver.reach()
        // A follower that waits for room does not stand still.
        let entry = pulse?.rest()
        try await makeRoom(for: batch)
        try await take(batch)
        if let entry { pulse?.work(on: entry) }
    }

    /// Applies an edit, or fans out a change.
    private mutating func work(_ entry: FollowedEntry, from offset: UInt32) async throws {
        if try await waits(entry) { return }
        switch entry.body {
        case .change(let change, let isStale):
            try await work(change, isStale: isStale, entry, from: offset)
        case .edit(let edit):
            apply(edit, of: entry.container)
            edits += 1
        }
    }

    mutating func apply(_ edit: LogEntryBody, of container: ContainerKey) {
        switch edit {
        case .subscriptionSaved(let version, let replaced):
            if let replaced { state.removeSubscription(replaced, of: container) }
            activate(version)
            state.noteEntered(version.activation, of: container)
            meter.show(subscriptions: state.subscriptionCount)
        case .subscriptionDeleted(let serial):
            state.removeSubscription(serial, of: container)
            meter.show(subscriptions: state.subscriptionCount)
        case .deviceSaved(let version, let replaced):
            state.insert(version, replacing: replaced)
            guard let badge = version.badge else { break }
            let holder = BadgeHolder(
                container: container, deviceID: version.device.id, owner: version.device.owner)
            pendingBadges[holder] = badge
        case .devicesEnded(let serials):
            state.removeDevices(serials, of: container)
        case .change:
            // A change is not an edit. It is worked as a change.
            break
        }
    }

    private mutating func work(
        _ change: LoggedChange, isStale: Bool, _ entry: FollowedEntry, from offset: UInt32
    ) async throws {
        CrashPoint.match.reach()
        if setAsideBefore.remove(entry.position) != nil { return }
        let found: FiredChange
        switch try await judged(change, isStale: isStale, entry, from: offset) {
        case .fires(let fired): found = fired
        case .firesNothing: return noteFirings([], [], entry)
        case .isPutOff: return
        }
        guard let settings = settings(entry.container) else {
            // A container is saved before anything of it is appended, so no user is owed this.
            logger.error(
                "skipped a change of a container without settings",
                metadata: ["container": "\(entry.container)", "position": "\(entry.position)"])
            return
        }
        var fired = found.serials
        let once = try await claimOnce(&fired, at: entry.position, of: entry.container)
        // With an offset, a crash interrupted this change in the log's turn, where it resumes.
        if fired.isEmpty {
            watch(fired, by: found.change, entry)
            noteFirings([], [], entry)
        } else if offset == 0, leaves(fired, entry) {
            try await leaveToRanges(fired, by: found.change, entry)
        } else {
            try await expand(fired, by: found.change, entry, settings, from: offset)
        }
        // Last, so that the state stays that of the entry before until the change is worked.
        end(once, of: entry.container)
    }

    /// Ends the once subscriptions that have fired.
    mutating func end(_ once: [UInt64], of container: ContainerKey) {
        for serial in once { state.removeSubscription(serial, of: container) }
        edits += once.count
        if !once.isEmpty { meter.show(subscriptions: state.subscriptionCount) }
    }

    /// Whether a fan-out goes to ranges, because it is huge or would keep others waiting.
    private mutating func leaves(_ fired: [UInt64], _ entry: FollowedEntry) -> Bool {
        if fired.count > rangeThreshold { return true }
        let size = size(of: fired, entry)
        return size > rangeThreshold
            || turns.yields(size, of: entry.container, at: entry.appendedAt)
    }

    /// The result of judging a change.
    private enum Judgement {
        case fires(FiredChange)
        case firesNothing
        /// The change is judged beside the log.
        case isPutOff
    }

    /// Matches a change, or puts off a dear one so that it is judged beside the log.
    private mutating func judged(
        _ change: LoggedChange, isStale: Bool, _ entry: FollowedEntry, from offset: UInt32
    ) async throws -> Judgement {
        // With an offset, a crash interrupted this change in the log's turn, where it resumes.
        let mayBePutOff =
            turns.isContended && offset == 0
            && beside.map { state.allows(moreThan: $0.stepsInTurn) } ?? false
        let steps = mayBePutOff ? beside?.stepsInTurn : nil
        let found = Result {
            try state.firedSerials(
                by: change, appendedAt: entry.appendedAt, isStale: isStale, in: entry.container,
                within: steps ?? .max)
        }
        if mayBePutOff, case .failure(let error) = found, error is DearChange {
            try await putOff(change, isStale: isStale, entry)
            return .isPutOff
        }
        guard let fired = try await settled(found, of: change, isStale: isStale, entry) else {
            return .firesNothing
        }
        return .fires(fired)
    }

    /// Returns what a judged change fires, or `nil` if it fires nothing.
    ///
    /// A change that cannot be read or takes too many steps is set aside, and fires nothing.
    mutating func settled(
        _ found: Result<FiredChange?, any Error>, of change: LoggedChange, isStale: Bool,
        _ entry: FollowedEntry
    ) async throws -> FiredChange? {
        do {
            let fired = try found.get()
            meter.countChange(matches: fired?.serials.count ?? 0)
            pulse?.judged(matches: fired?.serials.count ?? 0)
            if let fired, !fired.serials.isEmpty { return fired }
            watch(change, isStale ? .stale : .judged, entry)
        } catch StorageError.damaged(_, let reason) {
            try await setAside(
                UnreadableEntry(position: entry.position, isChange: true, reason: reason))
            watch(change, .setAside(reason), entry)
        } catch let dear as DearChange {
            try await setAside(dear, entry)
            watch(change, .setAside("evaluating its conditions takes too many steps"), entry)
        }
        return nil
    }

    /// Hands over what a change owes because of the subscriptions with these serials.
    private mutating func expand(
        _ fired: [UInt64], by change: RecordChange, _ entry: FollowedEntry,
        _ settings: ContainerSettings, from offset: UInt32
    ) async throws {
        var fanout = ChangeFanout(
            of: change, at: entry.position, appendedAt: entry.appendedAt,
            identity: identity, settings: settings, firstOffset: offset)
        // In portions, so that a change that fires many subscriptions fits into memory.
        for part in parts(of: fired, by: Self.subscriptionsPerPortion, entry.container) {
            state.expand(part, in: entry.container, into: &fanout)
            meter.countDeliveries(fanout.deliveries.count)
            pending.append(contentsOf: fanout.takeDeliveries())
            pendingInbox.append(contentsOf: fanout.takeInbox())
            let suppressed = fanout.takeSuppressed()
            // Before any delivery is handed over, so that observers hear of the change first.
            if part.startIndex == 0 { watch(fired, by: change, entry, leftOut: suppressed) }
            if max(pending.count, pendingInbox.count) >= Self.deliveriesPerBatch {
                try await handOver(finished: LogPosition(entry.position.rawValue - 1))
            }
        }
        noteFirings(fired, fanout.unreached, entry)
    }

    /// Hands a huge fan-out over as ranges, which are written when the progress passes the change.
    private mutating func leaveToRanges(
        _ fired: [UInt64], by change: RecordChange, _ entry: FollowedEntry
    ) async throws {
        watch(fired, by: change, entry)
        let (serials, unreached) = state.withoutRepeatedSilence(
            fired, of: change, in: entry.container)
        // The worker of the ranges reports the firings of the other subscriptions.
        noteFirings(unreached.map(\.serial), unreached, entry)
        let ranges = ranges(of: serials, entry)
        logger.info(
            "split a huge fan-out into ranges",
            metadata: [
                "position": "\(entry.position)", "subscriptions": .stringConvertible(serials.count),
            ])
        try await handOver(finished: entry.position, ranges: ranges)
    }

    /// Claims the fired once subscriptions, and removes those from `fired` that this change may not
    /// fire.
    ///
    /// A claim is durable before anything is sent.
    ///
    /// - Returns: All fired once subscriptions, which end after this change in any case.
    mutating func claimOnce(
        _ fired: inout [UInt64], at position: LogPosition, of container: ContainerKey
    ) async throws -> [UInt64] {
        let once = state.onceSerials(among: fired, of: container)
        guard !once.isEmpty else { return [] }
        var lost = Set(once)
        // In portions, so that others can write between them.
        for start in stride(from: 0, to: once.count, by: Self.subscriptionsPerRange) {
            let portion = once[start..<min(start + Self.subscriptionsPerRange, once.count)]
            defer { CrashPoint.claimed.reach() }
            let claimed = try await patience.attempt { [progress] in
                try await progress.claimOnce(Array(portion), at: position)
            }
            lost.subtract(claimed)
        }
        if !lost.isEmpty { fired.removeAll { lost.contains($0) } }
        return once
    }
}
