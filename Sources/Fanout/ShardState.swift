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

    /// Creates the state before the first entry.
    ///
    /// - Parameter indexSeed: Keeps the hashes of the indexes secret; drawn at random.
    package init(indexSeed: UInt64) {
        self.indexSeed = indexSeed
    }

    // MARK: Edits

    /// Makes a subscription active.
    ///
    /// - Throws: ``PredicateLanguage/PredicateError`` if its condition cannot be read; then it is
    ///   not active.
    package mutating func insert(_ version: SubscriptionVersion) throws {
        let seed = indexSeed
        try containers[version.subscription.container, default: ContainerState(indexSeed: seed)]
            .insert(version)
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
        let seed = indexSeed
        containers[version.device.container, default: ContainerState(indexSeed: seed)]
            .insert(version, replacing: serials)
    }

    /// Ends devices, and forgets their badges.
    package mutating func removeDevices(_ serials: [UInt64], of container: ContainerKey) {
        containers[container]?.removeDevices(serials)
    }

    /// Sets a device's badge as it was at the progress.
    package mutating func set(_ badge: BadgeMark) {
        let seed = indexSeed
        containers[badge.container, default: ContainerState(indexSeed: seed)]
            .setBadge(badge)
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
        return matches.compactMap { serial in
            state.subscription(serial).flatMap { subscription in
                DeviceExpansion.mayRead(subscription.owner, change) ? (serial, subscription) : nil
            }
        }
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

    /// The index of a container, for statistics.
    package func index(of container: ContainerKey) -> SubscriptionIndex? {
        containers[container]?.index
    }
}
