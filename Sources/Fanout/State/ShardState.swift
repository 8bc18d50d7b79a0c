package import Matching
package import RelayModel
package import Storage

/// The versions that are active at a position of the log.
///
/// It decides what a change owes there.
///
/// It is a function of the log: entries are applied strictly in order, so every start reaches the
/// same state at the same position. It never suspends. The caller passes in everything that comes
/// from the store.
package struct ShardState: Sendable {
    private var containers: [ContainerKey: ContainerState] = [:]
    private var matches: [UInt64] = []
    /// The subscriptions whose conditions had an error on the last judged change, in no order.
    ///
    /// Only those whose owners may know of the change.
    private(set) var erring: [UInt64] = []
    private let indexSeed: UInt64
    /// The number of steps that the conditions of one change may take.
    private var mostSteps: Int
    /// The numbers of subscriptions and devices in the state that is lent.
    private var lent = (subscriptions: 0, devices: 0)
    /// The badges, which a snapshot does not contain.
    let badges: BadgeCounts
    private let directory: IndexDirectory?
    /// The highest serials seen.
    ///
    /// The registry gives out higher ones later.
    private(set) var lastSubscription: UInt64 = 0
    private(set) var lastDevice: UInt64 = 0

    /// Creates the state before the first entry.
    ///
    /// - Parameters:
    ///   - indexSeed: A random seed that keeps the hashes of the indexes secret.
    ///   - badges: The badges, which ranges may share.
    ///   - directory: The directory in which the indexes are entered, for costs and statistics.
    ///   - mostSteps: The number of steps that the conditions of one change may take.
    package init(
        indexSeed: UInt64, badges: BadgeCounts = BadgeCounts(), directory: IndexDirectory? = nil,
        mostSteps: Int = Limits.maximumStepsPerChange
    ) {
        self.mostSteps = mostSteps
        self.badges = badges
        self.indexSeed = indexSeed
        self.directory = directory
    }

    // MARK: Edits

    /// Makes a subscription active.
    ///
    /// - Throws: ``PredicateLanguage/PredicateError`` if its condition cannot be read. Then it is
    ///   not active.
    package mutating func insert(_ version: SubscriptionVersion) throws {
        lastSubscription = max(lastSubscription, version.serial)
        try update(version.subscription.container) { try $0.insert(version) }
    }

    /// Edits the state of a container, which is created empty if needed.
    private mutating func update(
        _ container: ContainerKey, _ body: (inout ContainerState) throws -> Void
    ) rethrows {
        let beginning = beginning(container)
        try body(&containers[container, default: beginning()])
    }

    /// Returns a function that creates the empty state of a container and enters it in the
    /// directory.
    private func beginning(_ container: ContainerKey) -> () -> ContainerState {
        { [indexSeed, badges, directory] in
            let state = ContainerState(
                container: container, indexSeed: indexSeed, badges: badges)
            directory?.put(state, of: container)
            return state
        }
    }

    /// Forgets everything but the badges, so that the state can be loaded again.
    mutating func clear() {
        for container in Array(containers.keys) {
            containers[container] = beginning(container)()
        }
        lastSubscription = 0
        lastDevice = 0
    }

    /// Notes that what was saved in a container at `position` is in the accounts.
    ///
    /// From now on saves are weighed against the accounts there, and not against the conditions
    /// that are being saved.
    func noteEntered(_ position: LogPosition, of container: ContainerKey) {
        directory?.underWay.enter(position, of: container)
    }

    /// Notes that everything that was loaded up to `position`, of all containers, is in the
    /// accounts.
    func noteLoaded(_ position: LogPosition) {
        directory?.underWay.enterAll(upTo: position)
    }

    /// Ends a subscription.
    package mutating func removeSubscription(_ serial: UInt64, of container: ContainerKey) {
        containers[container]?.removeSubscription(serial)
    }

    /// Makes a device active, and ends the versions that it replaces.
    ///
    /// A device that the same user registers again keeps its badge. No other user inherits it.
    package mutating func insert(_ version: DeviceVersion, replacing serials: [UInt64] = []) {
        lastDevice = max(lastDevice, version.serial)
        update(version.device.container) { $0.insert(version, replacing: serials) }
    }

    /// Ends devices, and forgets their badges.
    package mutating func removeDevices(_ serials: [UInt64], of container: ContainerKey) {
        containers[container]?.removeDevices(serials)
    }

    /// Sets the badge of a device as it was at the progress, unless the device belongs to another
    /// user by now.
    package mutating func set(_ badge: Int64, of holder: BadgeHolder) {
        guard
            containers[holder.container]?.hasDevice(holder.deviceID, of: holder.owner) == true
        else { return }
        badges.set(
            badge, of: DeviceHolder(owner: holder.owner, device: holder.deviceID),
            in: holder.container)
    }

    // MARK: Changes

    /// Returns the serials of the subscriptions that a change fires.
    ///
    /// They ascend, which is the stable order of its fan-out.
    ///
    /// Snapshot rows and stale changes fire nothing, and nothing fires for a user who may not read
    /// the record (docs/firing-rules.md).
    package mutating func firedSerials(
        by change: RecordChange, appendedAt: Timestamp, isStale: Bool,
        in container: ContainerKey
    ) throws(DearChange) -> [UInt64] {
        forgetErrors()
        guard !change.isSnapshot, !isStale else { return [] }
        matches.removeAll(keepingCapacity: true)
        // Both times are in the log, so the answer is the same after a restart.
        try containers[container]?.matches(
            for: change, now: change.occurredAt ?? appendedAt, mostSteps: mostSteps,
            into: &matches, erring: &erring)
        keepReaders(of: change, in: container)
        dropExpired(at: appendedAt, in: container)
        return matches
    }

    private mutating func forgetErrors() {
        if !erring.isEmpty { erring.removeAll(keepingCapacity: true) }
    }

    private mutating func keepReaders(of change: RecordChange, in container: ContainerKey) {
        containers[container]?.keepReaders(of: change, among: &matches)
        if !erring.isEmpty { containers[container]?.keepReaders(of: change, among: &erring) }
    }

    private mutating func dropExpired(at appendedAt: Timestamp, in container: ContainerKey) {
        containers[container]?.dropExpired(at: appendedAt, among: &matches)
        if !erring.isEmpty { containers[container]?.dropExpired(at: appendedAt, among: &erring) }
    }

    /// Returns what a change of the log fires, judging its stored text if possible.
    ///
    /// The text is only decoded if the change fires something, or a condition had an error on it.
    ///
    /// - Returns: The change with its subscriptions, or `nil` if it fires nothing.
    /// - Throws: What reading the change throws, or `DearChange` if its conditions take too many
    ///   steps.
    package mutating func firedSerials(
        by change: LoggedChange, appendedAt: Timestamp, isStale: Bool, in container: ContainerKey
    ) throws -> FiredChange? {
        guard
            let found = try serials(
                firedBy: change, appendedAt: appendedAt, isStale: isStale, in: container),
            let read = found.read
        else { return nil }
        return FiredChange(change: read, serials: found.serials)
    }

    /// Returns the serials that a stored change fires, ascending, with the change if it had to be
    /// decoded.
    ///
    /// Returns `nil` if nothing is active or the change is stale.
    ///
    /// A change that cannot name readers (`mayNameReaders`) is only decoded if its text cannot be
    /// judged as it is.
    ///
    /// - Throws: As ``firedSerials(by:appendedAt:isStale:in:)-(LoggedChange,_,_,_)``.
    package mutating func serials(
        firedBy change: LoggedChange, appendedAt: Timestamp, isStale: Bool,
        in container: ContainerKey, mayNameReaders: Bool = true
    ) throws -> (serials: [UInt64], read: RecordChange?)? {
        forgetErrors()
        guard !isStale, containers[container] != nil else { return nil }
        if case .stored(let text) = change {
            matches.removeAll(keepingCapacity: true)
            let isJudged =
                try containers[container]?.matches(
                    forStored: text, appendedAt: appendedAt, mostSteps: mostSteps,
                    into: &matches, erring: &erring) ?? false
            if isJudged {
                dropExpired(at: appendedAt, in: container)
                let isIdle = matches.isEmpty && erring.isEmpty
                if isIdle || !mayNameReaders { return (matches, nil) }
                let read = try change.change()
                keepReaders(of: read, in: container)
                return (matches, read)
            }
            forgetErrors()
        }
        let read = try change.change()
        let serials = try firedSerials(
            by: read, appendedAt: appendedAt, isStale: isStale, in: container)
        return (serials, read)
    }

    /// Returns the active subscription with this serial, without its condition.
    package mutating func subscription(
        _ serial: UInt64, of container: ContainerKey
    ) -> Subscription? {
        containers[container]?.subscription(serial)
    }

    /// Returns the devices of a user, by ascending serial.
    package mutating func devices(of user: UserID, in container: ContainerKey) -> [DeviceVersion] {
        containers[container]?.devices(of: user) ?? []
    }

    /// Returns those of the subscriptions with these serials that fire once.
    mutating func onceSerials(among serials: [UInt64], of container: ContainerKey) -> [UInt64] {
        containers[container]?.onceSerials(among: serials) ?? []
    }

    /// Adds to `fanout` what a change owes because of the subscriptions with these serials.
    mutating func expand(
        _ serials: ArraySlice<UInt64>, in container: ContainerKey, into fanout: inout ChangeFanout
    ) {
        containers[container]?.expand(serials, into: &fanout)
    }

    /// Returns how many pushes a change may owe because of a subscription: as many as its owner has
    /// devices.
    func reach(of serial: UInt64, in container: ContainerKey) -> Int {
        containers[container]?.reach(of: serial) ?? 0
    }

    /// Returns the largest number of devices that one user of a container has had since the start.
    func mostDevicesOfOne(in container: ContainerKey) -> Int {
        containers[container]?.mostDevicesOfOne ?? 0
    }

    /// Returns those of the subscriptions with these serials because of which a change owes
    /// something that the subscriptions before them do not owe already.
    ///
    /// Also returns why the others owe nothing.
    ///
    /// One silent push is enough for a device. Ranges are expanded one by one, and could not know
    /// of each other.
    mutating func withoutRepeatedSilence(
        _ serials: [UInt64], of change: RecordChange, in container: ContainerKey
    ) -> (owing: [UInt64], unreached: [UnreachedFiring]) {
        containers[container]?.withoutRepeatedSilence(serials, of: change) ?? (serials, [])
    }

    /// The number of active subscriptions in all containers.
    package var subscriptionCount: Int {
        containers.values.reduce(lent.subscriptions) { $0 + $1.subscriptionCount }
    }

    /// The number of active devices in all containers.
    package var deviceCount: Int {
        containers.values.reduce(lent.devices) { $0 + $1.deviceCount }
    }

    /// Takes the serials of subscriptions for which changes have shown better keys, at most `most`
    /// in all.
    func takeMisfiled(most: Int) -> [UInt64] {
        var serials: [UInt64] = []
        for state in containers.values where serials.count < most {
            serials += state.index.takeMisfiled(most: most - serials.count)
        }
        return serials
    }

    /// Returns whether a container has an active subscription with this serial.
    func contains(_ serial: UInt64, of container: ContainerKey) -> Bool {
        containers[container]?.contains(serial) ?? false
    }

    /// Returns the index of a container, for statistics.
    package func index(of container: ContainerKey) -> SubscriptionIndex? {
        containers[container]?.index
    }

    // MARK: Judging elsewhere

    /// Judges a change as ``firedSerials(by:appendedAt:isStale:in:)-(LoggedChange,_,_,_)`` does,
    /// but gives up after `steps` steps if that is less than a change may take.
    ///
    /// - Throws: The same errors, and `DearChange` after `steps` steps.
    mutating func firedSerials(
        by change: LoggedChange, appendedAt: Timestamp, isStale: Bool,
        in container: ContainerKey, within steps: Int
    ) throws -> FiredChange? {
        let most = mostSteps
        mostSteps = min(most, steps)
        defer { mostSteps = most }
        return try firedSerials(
            by: change, appendedAt: appendedAt, isStale: isStale, in: container)
    }

    /// Returns whether a change may take more than `steps` steps.
    func allows(moreThan steps: Int) -> Bool { mostSteps > steps }

    /// Lends the state of a container, so that a change can be judged elsewhere.
    ///
    /// Until ``takeBack(_:)`` is called, this state knows nothing of the container.
    mutating func lend(_ container: ContainerKey) -> ShardState {
        var other = ShardState(indexSeed: indexSeed, badges: badges, mostSteps: mostSteps)
        guard let state = containers.removeValue(forKey: container) else { return other }
        lent.subscriptions += state.subscriptionCount
        lent.devices += state.deviceCount
        other.containers[container] = consume state
        return other
    }

    /// The turns that keep edits of the indexes apart from judgements elsewhere.
    var judgingTurns: JudgingTurns? { directory?.turns }

    /// Takes back the state that was lent.
    mutating func takeBack(_ other: consuming ShardState) {
        lent.subscriptions -= other.subscriptionCount
        lent.devices -= other.deviceCount
        for (container, state) in other.containers { containers[container] = state }
    }

    // MARK: Snapshots

    /// Returns the state as the parts of a snapshot.
    ///
    /// - Throws: What the encoder of an index throws, which would be a programming error.
    func parts() throws -> StateParts {
        StateParts(
            lastSubscription: lastSubscription, lastDevice: lastDevice,
            containers: try containers.map { ($0.key, try $0.value.image()) })
    }

    /// Replaces this state by that of `other`, which knows no badges.
    mutating func take(over other: consuming ShardState) {
        load(
            other.containers.mapValues { $0.sharing(badges) },
            lastSubscription: other.lastSubscription, lastDevice: other.lastDevice)
    }

    /// Replaces this state by one from a snapshot.
    mutating func load(
        _ loaded: [ContainerKey: ContainerState], lastSubscription: UInt64, lastDevice: UInt64
    ) {
        for (container, state) in loaded { directory?.put(state, of: container) }
        containers = loaded
        self.lastSubscription = lastSubscription
        self.lastDevice = lastDevice
    }
}

/// The state of a shard as the parts of a snapshot.
struct StateParts {
    var lastSubscription: UInt64
    var lastDevice: UInt64
    var containers: [(container: ContainerKey, image: ContainerImage)]
}

/// A change with the subscriptions that it fires.
package struct FiredChange: Sendable {
    /// The change, decoded.
    package let change: RecordChange
    /// The serials of the subscriptions, ascending.
    package let serials: [UInt64]
}
