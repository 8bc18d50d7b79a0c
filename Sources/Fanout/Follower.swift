package import Logging
import Metrics
package import RelayModel
package import Storage

/// Reads the log in order: an edit goes into the state, a change is matched, expanded, composed and
/// handed over.
///
/// Concurrency: one task runs ``follow(from:)``; everything it changes is its own. It suspends
/// while whoever takes the deliveries has no room. Life: recover once, follow until cancelled.
package struct Follower: ~Copyable {
    /// Where the settings of containers are found, from memory.
    package typealias SettingsSource = @Sendable (ContainerKey) -> ContainerSettings?
    /// Who is told of devices that are left out because they made the change.
    package typealias SuppressionWatcher = @Sendable (SuppressedDevice) -> Void
    /// Who takes the deliveries; it suspends while it has no room.
    package typealias Taker = @Sendable (OwedBatch) async throws -> Void

    /// Entries that are read at a time.
    private static let entriesPerRead = 256
    /// Deliveries that are handed over at a time.
    private static let deliveriesPerBatch = 512
    /// Fired subscriptions that are expanded at a time.
    private static let subscriptionsPerPortion = 1024

    var state: ShardState
    /// The last entry that has been worked: the state is that of this position.
    var worked = LogPosition.start
    /// Edits since the last snapshot.
    var edits = 0
    private var pending: [OwedDelivery] = []
    private var handedOver = LogPosition.start
    private let identity: DeliveryIdentity
    let log: any ShardLog
    private let progress: any ShardProgress
    private let settings: SettingsSource
    private let onSuppression: SuppressionWatcher?
    private let take: Taker
    let keeper: SnapshotKeeper?
    let logger: Logger
    let meter = FanoutMeter()

    /// Creates a follower that has not recovered yet.
    package init(
        log: any ShardLog, progress: any ShardProgress, identity: DeliveryIdentity,
        indexSeed: UInt64, settings: @escaping SettingsSource, logger: Logger,
        board: IndexBoard? = nil, keeper: SnapshotKeeper? = nil,
        onSuppression: SuppressionWatcher? = nil, take: @escaping Taker
    ) {
        state = ShardState(indexSeed: indexSeed, board: board)
        self.keeper = keeper
        self.identity = identity
        self.log = log
        self.progress = progress
        self.settings = settings
        self.logger = logger
        self.onSuppression = onSuppression
        self.take = take
    }

    // MARK: Recovery

    /// Makes a subscription active; one that cannot be read is told and left out.
    mutating func activate(_ version: SubscriptionVersion) {
        do {
            try state.insert(version)
        } catch {
            logger.error(
                "left out a subscription whose condition cannot be read",
                metadata: ["serial": "\(version.serial)", "reason": "\(error)"])
            meter.countUnreadable()
        }
    }

    // MARK: Following

    /// Follows the log from `mark` until the task is cancelled.
    package mutating func follow(from mark: ProgressMark) async throws {
        var position = mark.position
        var offset = mark.offset
        handedOver = mark.position
        while true {
            try Task.checkCancellation()
            let entries = try await log.followedEntries(
                after: position, limit: Self.entriesPerRead)
            for entry in entries {
                try await work(entry, from: offset)
                offset = 0
                position = entry.position
                worked = position
            }
            if entries.isEmpty {
                try await waitForGrowth(beyond: position)
                offerSnapshot()
            } else {
                try await handOver(finished: position)
                offerSnapshot()
            }
        }
    }

    /// Hands over what is pending, once every entry up to `position` has been worked.
    private mutating func handOver(finished position: LogPosition) async throws {
        let isProgress = handedOver < position
        guard isProgress || !pending.isEmpty else { return }
        let batch = OwedBatch(deliveries: pending, finished: isProgress ? position : nil)
        pending.removeAll(keepingCapacity: true)
        handedOver = max(handedOver, position)
        try await take(batch)
    }

    /// Applies an edit, or fans a change out.
    private mutating func work(_ entry: FollowedEntry, from offset: UInt32) async throws {
        switch entry.body {
        case .change(let change, let isStale):
            try await work(change, isStale: isStale, entry, from: offset)
        case .edit(let edit):
            apply(edit, of: entry.container)
            edits += 1
        }
    }

    private mutating func apply(_ edit: LogEntryBody, of container: ContainerKey) {
        switch edit {
        case .subscriptionSaved(let version, let replaced):
            if let replaced { state.removeSubscription(replaced, of: container) }
            activate(version)
            meter.show(subscriptions: state.subscriptionCount)
        case .subscriptionDeleted(let serial):
            state.removeSubscription(serial, of: container)
            meter.show(subscriptions: state.subscriptionCount)
        case .deviceSaved(let version, let replaced):
            state.insert(version, replacing: replaced)
        case .devicesEnded(let serials):
            state.removeDevices(serials, of: container)
        case .change:
            // A change is no edit, and comes as a change.
            break
        }
    }

    private mutating func work(
        _ change: LoggedChange, isStale: Bool, _ entry: FollowedEntry, from offset: UInt32
    ) async throws {
        let found = try state.firedSubscriptions(
            by: change, appendedAt: entry.appendedAt, isStale: isStale, in: entry.container)
        meter.countChange(matches: found?.subscriptions.count ?? 0)
        guard let found, !found.subscriptions.isEmpty else { return }
        var fired = found.subscriptions
        guard let settings = settings(entry.container) else {
            // A container is saved before anything of it is appended, so nobody is owed this.
            logger.error(
                "followed a change of a container without settings",
                metadata: ["container": "\(entry.container)", "position": "\(entry.position)"])
            return
        }
        let claimed = try await claimOnce(&fired, at: entry.position)
        var fanout = ChangeFanout(
            of: found.change, at: entry.position, appendedAt: entry.appendedAt,
            identity: identity, settings: settings, firstOffset: offset)
        // In portions, so that a change that fires a million subscriptions fits the memory.
        for start in stride(from: 0, to: fired.count, by: Self.subscriptionsPerPortion) {
            let end = min(start + Self.subscriptionsPerPortion, fired.count)
            state.expand(fired[start..<end], in: entry.container, into: &fanout)
            meter.countDeliveries(fanout.deliveries.count)
            pending.append(contentsOf: fanout.takeDeliveries())
            if let onSuppression { fanout.takeSuppressed().forEach(onSuppression) }
            if pending.count >= Self.deliveriesPerBatch {
                try await handOver(finished: LogPosition(entry.position.rawValue - 1))
            }
        }
        // Last, so that until the change is worked the state is that of the entry before it.
        for serial in claimed { state.removeSubscription(serial, of: entry.container) }
        edits += claimed.count
    }

    /// Keeps of the once subscriptions those that this change may fire: the claim is durable
    /// before anything is sent.
    ///
    /// Returns all that are over with this change.
    private func claimOnce(
        _ fired: inout [(serial: UInt64, subscription: Subscription)], at position: LogPosition
    ) async throws -> [UInt64] {
        let serials = fired.filter { $0.subscription.firesOnce }.map(\.serial)
        guard !serials.isEmpty else { return [] }
        let won = try await progress.claimOnce(serials, at: position)
        fired.removeAll { $0.subscription.firesOnce && !won.contains($0.serial) }
        return serials
    }
}
