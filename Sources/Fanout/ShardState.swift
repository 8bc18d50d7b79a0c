package import Matching
package import RelayModel
package import Storage

/// What is active at a position of the log, and what a change owes there.
///
/// It is a function of the log: entries are applied strictly in order, so that every start comes to
/// the same state at the same position. It suspends nowhere; what needs the store comes in.
package struct ShardState {
    private var containers: [ContainerKey: ContainerState] = [:]
    private var matches: [UInt64] = []
    private let indexSeed: UInt64
    private let board: IndexBoard?
    /// The highest serials seen: what the registry gave out later has higher ones.
    private(set) var lastSubscription: UInt64 = 0
    private(set) var lastDevice: UInt64 = 0

    /// Creates the state before the first entry.
    ///
    /// - Parameters:
    ///   - indexSeed: Keeps the hashes of the indexes secret; drawn at random.
    ///   - board: Shows the indexes to whoever wants to know costs and statistics.
    package init(indexSeed: UInt64, board: IndexBoard? = nil) {
        self.indexSeed = indexSeed
        self.board = board
    }

    // MARK: Edits

    /// Makes a subscription active.
    ///
    /// - Throws: ``PredicateLanguage/PredicateError`` if its condition cannot be read; then it is
    ///   not active.
    package mutating func insert(_ version: SubscriptionVersion) throws {
        lastSubscription = max(lastSubscription, version.serial)
        try update(version.subscription.container) { try $0.insert(version) }
    }

    /// Edits the state of a container, which begins with nothing.
    private mutating func update(
        _ container: ContainerKey, _ body: (inout ContainerState) throws -> Void
    ) rethrows {
        let (seed, board) = (indexSeed, board)
        try body(&containers[container, default: Self.beginning(container, seed, board)])
    }

    private static func beginning(
        _ container: ContainerKey, _ seed: UInt64, _ board: IndexBoard?
    ) -> ContainerState {
        let state = ContainerState(container: container, indexSeed: seed)
        board?.put(state, of: container)
        return state
    }

    /// Ends a subscription.
    package mutating func removeSubscription(_ serial: UInt64, of container: ContainerKey) {
        containers[container]?.removeSubscription(serial)
    }

    /// Makes a device active, and ends the versions that it replaces.
    ///
    /// A device that the same user registers again keeps its badge; otherwise nobody inherits what
    /// an icon showed.
    package mutating func insert(_ version: DeviceVersion, replacing serials: [UInt64] = []) {
        lastDevice = max(lastDevice, version.serial)
        update(version.device.container) { $0.insert(version, replacing: serials) }
    }

    /// Ends devices, and forgets their badges.
    package mutating func removeDevices(_ serials: [UInt64], of container: ContainerKey) {
        containers[container]?.removeDevices(serials)
    }

    /// Sets a device's badge as it was at the progress.
    package mutating func set(_ badge: BadgeMark) {
        update(badge.container) { $0.setBadge(badge.badge, of: badge.deviceID) }
    }

    // MARK: Changes

    /// The subscriptions that a change fires, by ascending serial: the stable order of its fan-out.
    ///
    /// Snapshot rows and stale changes fire nothing (design §4.9, §4.11), and nothing fires for a
    /// user who may not read the record (design §4.7).
    package mutating func firedSubscriptions(
        by change: RecordChange, appendedAt: Timestamp, isStale: Bool,
        in container: ContainerKey
    ) -> [(serial: UInt64, subscription: Subscription)] {
        guard !change.isSnapshot, !isStale, let state = containers[container] else { return [] }
        matches.removeAll(keepingCapacity: true)
        // Both moments are in the log, so that the answer is the same after a restart.
        state.matches(for: change, now: change.occurredAt ?? appendedAt, into: &matches)
        return subscriptions(in: container, of: change)
    }

    /// The subscriptions whose serials were found, without those whose owners may not read.
    private mutating func subscriptions(
        in container: ContainerKey, of change: RecordChange
    ) -> [(serial: UInt64, subscription: Subscription)] {
        matches.compactMap { serial in
            containers[container]?.subscription(serial).flatMap { subscription in
                DeviceExpansion.mayRead(subscription.owner, change) ? (serial, subscription) : nil
            }
        }
    }

    /// The same for a change as the log holds it, which is read only if it fires something.
    ///
    /// - Returns: The change with its subscriptions; `nil` if it fires nothing.
    /// - Throws: What reading the change throws.
    package mutating func firedSubscriptions(
        by change: LoggedChange, appendedAt: Timestamp, isStale: Bool, in container: ContainerKey
    ) throws -> FiredChange? {
        guard !isStale, let state = containers[container] else { return nil }
        let read: RecordChange
        switch change {
        case .read(let change): read = change
        case .stored(let text):
            matches.removeAll(keepingCapacity: true)
            if state.matches(forStored: text, appendedAt: appendedAt, into: &matches) {
                if matches.isEmpty { return nil }
                let read = try change.change()
                return FiredChange(read, subscriptions(in: container, of: read))
            }
            read = try change.change()
        }
        return FiredChange(
            read,
            firedSubscriptions(by: read, appendedAt: appendedAt, isStale: isStale, in: container))
    }

    /// The devices of a user, by ascending serial.
    package mutating func devices(of user: UserID, in container: ContainerKey) -> [DeviceVersion] {
        containers[container]?.devices(of: user) ?? []
    }

    /// Adds to `fanout` what a change owes by the subscriptions that it fires.
    mutating func expand(
        _ fired: ArraySlice<(serial: UInt64, subscription: Subscription)>,
        in container: ContainerKey, into fanout: inout ChangeFanout
    ) {
        // Taken out and put back, so that raising a badge does not copy the container.
        guard var state = containers.removeValue(forKey: container) else { return }
        defer { containers[container] = state }
        for (serial, subscription) in fired {
            fanout.append(subscription, serial: serial, in: &state)
        }
    }

    /// How many subscriptions are active in all containers.
    package var subscriptionCount: Int {
        containers.values.reduce(0) { $0 + $1.subscriptionCount }
    }

    /// How many devices are active in all containers.
    package var deviceCount: Int {
        containers.values.reduce(0) { $0 + $1.deviceCount }
    }

    /// The index of a container, for statistics.
    package func index(of container: ContainerKey) -> SubscriptionIndex? {
        containers[container]?.index
    }

    // MARK: Snapshots

    /// The state as parts of a snapshot.
    ///
    /// - Throws: What the encoder of an index throws, which is a mistake of the program.
    func parts() throws -> StateParts {
        StateParts(
            lastSubscription: lastSubscription, lastDevice: lastDevice,
            containers: try containers.map { ($0.key, try $0.value.image()) })
    }

    /// Takes the state over from a snapshot, in place of what is here.
    mutating func load(
        _ loaded: [ContainerKey: ContainerState], lastSubscription: UInt64, lastDevice: UInt64
    ) {
        for (container, state) in loaded { board?.put(state, of: container) }
        containers = loaded
        self.lastSubscription = lastSubscription
        self.lastDevice = lastDevice
    }
}

/// A shard's state, taken apart for a snapshot.
struct StateParts {
    var lastSubscription: UInt64
    var lastDevice: UInt64
    var containers: [(container: ContainerKey, image: ContainerImage)]
}

/// A change with the subscriptions that it fires.
package struct FiredChange {
    /// The change, which has been read.
    package let change: RecordChange
    /// The subscriptions by ascending serial.
    package var subscriptions: [(serial: UInt64, subscription: Subscription)]

    init(_ change: RecordChange, _ subscriptions: [(serial: UInt64, subscription: Subscription)]) {
        self.change = change
        self.subscriptions = subscriptions
    }
}
