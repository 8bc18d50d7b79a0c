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
    private let badges: BadgeBoard

    /// Creates the state before the first entry.
    ///
    /// The seed keeps the hashes of the indexes secret and is drawn at random; the badges may be
    /// shared with ranges.
    package init(indexSeed: UInt64, badges: BadgeBoard = BadgeBoard()) {
        self.badges = badges
        self.indexSeed = indexSeed
    }

    // MARK: Edits

    /// Makes a subscription active.
    ///
    /// - Throws: ``PredicateLanguage/PredicateError`` if its condition cannot be read; then it is
    ///   not active.
    package mutating func insert(_ version: SubscriptionVersion) throws {
        let key = version.subscription.container
        let fresh = fresh(key)
        try containers[key, default: fresh()].insert(version)
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
        let key = version.device.container
        let fresh = fresh(key)
        containers[key, default: fresh()].insert(version, replacing: serials)
    }

    /// Ends devices, and forgets their badges.
    package mutating func removeDevices(_ serials: [UInt64], of container: ContainerKey) {
        containers[container]?.removeDevices(serials)
    }

    /// Sets a device's badge as it was at the progress, unless the device is another user's now.
    package func set(_ badge: BadgeMark) {
        let devices = containers[badge.container]?.devices(of: badge.owner) ?? []
        guard devices.contains(where: { $0.device.id == badge.deviceID }) else { return }
        badges.set(badge.badge, of: badge.deviceID, in: badge.container)
    }

    /// Makes the state of a container of which nothing is known.
    private func fresh(_ key: ContainerKey) -> () -> ContainerState {
        { [indexSeed, badges] in ContainerState(indexSeed: indexSeed, of: key, badges: badges) }
    }

    // MARK: Changes

    /// The serials of the subscriptions that a change fires, ascending: the stable order of its
    /// fan-out.
    ///
    /// Snapshot rows and stale changes fire nothing (design §4.9, §4.11), and nothing fires for a
    /// user who may not read the record (design §4.7).
    package mutating func firedSerials(
        by change: RecordChange, appendedAt: Timestamp, isStale: Bool,
        in container: ContainerKey
    ) -> [UInt64] {
        guard !change.isSnapshot, !isStale, let state = containers[container] else { return [] }
        matches.removeAll(keepingCapacity: true)
        // Both moments are in the log, so that the answer is the same after a restart.
        state.matches(for: change, now: change.occurredAt ?? appendedAt, into: &matches)
        // Without a rule everybody whom the index names may read it.
        guard change.readers != nil else { return matches }
        return matches.filter { serial in
            state.subscription(serial).map { DeviceExpansion.mayRead($0.owner, change) } ?? false
        }
    }

    /// The active subscription with this serial.
    package func subscription(_ serial: UInt64, of container: ContainerKey) -> Subscription? {
        containers[container]?.subscription(serial)
    }

    /// Those of the subscriptions with these serials that fire once.
    func onceSerials(among serials: [UInt64], of container: ContainerKey) -> [UInt64] {
        guard let state = containers[container], state.onceCount > 0 else { return [] }
        return serials.filter { state.subscription($0)?.firesOnce == true }
    }

    /// Adds to `fanout` what a change owes by the subscriptions with these serials.
    func expand(
        _ serials: ArraySlice<UInt64>, in container: ContainerKey, into fanout: inout ChangeFanout
    ) {
        guard let state = containers[container] else { return }
        for serial in serials {
            guard let subscription = state.subscription(serial) else { continue }
            fanout.append(
                subscription, serial: serial, to: state.devices(of: subscription.owner), badges)
        }
    }

    /// Of the subscriptions with these serials, those by which a change owes anything that those
    /// before do not owe already.
    ///
    /// One push that shows nothing is enough for a device (design §4.10); ranges are expanded one
    /// by one, and could not know of each other.
    func withoutRepeatedSilence(
        _ serials: [UInt64], of change: RecordChange, in container: ContainerKey
    ) -> [UInt64] {
        guard let state = containers[container], state.silentCount > 0 else { return serials }
        var notified: Set<UInt64> = []
        return serials.filter { serial in
            guard let subscription = state.subscription(serial) else { return false }
            if subscription.notificationInfo.isVisible { return true }
            let devices = DeviceExpansion.devices(
                among: state.devices(of: subscription.owner), for: subscription, of: change)
            let new = devices.count { notified.insert($0.serial).inserted }
            return new > 0
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
