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

    private var state: ShardState
    private var pending: [OwedDelivery] = []
    private var pendingInbox: [InboxEntry] = []
    private var handedOver = LogPosition.start
    private let identity: DeliveryIdentity
    private let log: any ShardLog
    private let progress: any ShardProgress
    private let settings: SettingsSource
    private let onSuppression: SuppressionWatcher?
    private let take: Taker
    private let logger: Logger
    private let meter = FanoutMeter()

    /// Creates a follower that has not recovered yet.
    package init(
        log: any ShardLog, progress: any ShardProgress, identity: DeliveryIdentity,
        indexSeed: UInt64, settings: @escaping SettingsSource, logger: Logger,
        onSuppression: SuppressionWatcher? = nil, take: @escaping Taker
    ) {
        state = ShardState(indexSeed: indexSeed)
        self.identity = identity
        self.log = log
        self.progress = progress
        self.settings = settings
        self.logger = logger
        self.onSuppression = onSuppression
        self.take = take
    }

    // MARK: Recovery

    /// Loads what was active at `mark`, in bounded portions.
    package mutating func recover(
        at mark: ProgressMark, from registry: any Registry, portion: Int = 5000
    ) async throws {
        var serial: UInt64 = 0
        while true {
            let versions = try await registry.devices(
                activeAt: mark.position, after: serial, limit: portion)
            for version in versions { state.insert(version) }
            guard let last = versions.last else { break }
            serial = last.serial
        }
        serial = 0
        while true {
            let versions = try await registry.subscriptions(
                activeAt: mark.position, after: serial, limit: portion)
            for version in versions { activate(version) }
            guard let last = versions.last else { break }
            serial = last.serial
        }
        for badge in try await registry.badges() { state.set(badge) }
        meter.show(subscriptions: state.subscriptionCount)
    }

    private mutating func activate(_ version: SubscriptionVersion) {
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
            let entries = try await log.entries(after: position, limit: Self.entriesPerRead)
            for entry in entries {
                try await work(entry, from: offset)
                offset = 0
                position = entry.position
            }
            if entries.isEmpty {
                try await log.waitForGrowth(beyond: position)
            } else {
                try await handOver(finished: position)
            }
        }
    }

    /// Hands over what is pending, once every entry up to `position` has been worked.
    private mutating func handOver(finished position: LogPosition) async throws {
        let isProgress = handedOver < position
        guard isProgress || !pending.isEmpty || !pendingInbox.isEmpty else { return }
        let batch = OwedBatch(
            deliveries: pending, finished: isProgress ? position : nil, inbox: pendingInbox)
        pending.removeAll(keepingCapacity: true)
        pendingInbox.removeAll(keepingCapacity: true)
        handedOver = max(handedOver, position)
        try await take(batch)
    }

    /// Applies an edit, or fans a change out.
    private mutating func work(_ entry: LogEntry, from offset: UInt32) async throws {
        switch entry.body {
        case .subscriptionSaved(let version, let replaced):
            if let replaced { state.removeSubscription(replaced, of: entry.container) }
            activate(version)
            meter.show(subscriptions: state.subscriptionCount)
        case .subscriptionDeleted(let serial):
            state.removeSubscription(serial, of: entry.container)
            meter.show(subscriptions: state.subscriptionCount)
        case .deviceSaved(let version, let replaced):
            state.insert(version, replacing: replaced)
        case .devicesEnded(let serials):
            state.removeDevices(serials, of: entry.container)
        case .change(let change, _, let isStale):
            try await work(change, isStale: isStale, entry, from: offset)
        }
    }

    private mutating func work(
        _ change: RecordChange, isStale: Bool, _ entry: LogEntry, from offset: UInt32
    ) async throws {
        var fired = state.firedSubscriptions(
            by: change, appendedAt: entry.appendedAt, isStale: isStale, in: entry.container)
        meter.countChange(matches: fired.count)
        guard !fired.isEmpty else { return }
        guard let settings = settings(entry.container) else {
            // A container is saved before anything of it is appended, so nobody is owed this.
            logger.error(
                "followed a change of a container without settings",
                metadata: ["container": "\(entry.container)", "position": "\(entry.position)"])
            return
        }
        try await claimOnce(&fired, at: entry.position, of: entry.container)
        var fanout = ChangeFanout(
            entry: entry, change: change, identity: identity, settings: settings,
            firstOffset: offset)
        // In portions, so that a change that fires a million subscriptions fits the memory.
        for start in stride(from: 0, to: fired.count, by: Self.subscriptionsPerPortion) {
            let end = min(start + Self.subscriptionsPerPortion, fired.count)
            state.expand(fired[start..<end], in: entry.container, into: &fanout)
            meter.countDeliveries(fanout.deliveries.count)
            pending.append(contentsOf: fanout.takeDeliveries())
            pendingInbox.append(contentsOf: fanout.takeInbox())
            if let onSuppression { fanout.takeSuppressed().forEach(onSuppression) }
            if max(pending.count, pendingInbox.count) >= Self.deliveriesPerBatch {
                try await handOver(finished: LogPosition(entry.position.rawValue - 1))
            }
        }
    }

    /// Keeps of the once subscriptions those that this change may fire, and ends them: the claim is
    /// durable before anything is sent.
    private mutating func claimOnce(
        _ fired: inout [(serial: UInt64, subscription: Subscription)], at position: LogPosition,
        of container: ContainerKey
    ) async throws {
        let serials = fired.filter { $0.subscription.firesOnce }.map(\.serial)
        guard !serials.isEmpty else { return }
        let won = try await progress.claimOnce(serials, at: position)
        fired.removeAll { $0.subscription.firesOnce && !won.contains($0.serial) }
        for serial in serials { state.removeSubscription(serial, of: container) }
    }
}
