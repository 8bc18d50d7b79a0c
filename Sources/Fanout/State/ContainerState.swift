import Matching
import PredicateLanguage
import RelayModel
import Storage

/// The state of a container in one environment at a position of the log: its active subscriptions,
/// in the index, and the devices of its users.
struct ContainerState: Sendable {
    /// The index over the conditions of the active subscriptions.
    let index: SubscriptionIndex
    /// The beginning of the stored text of an update.
    private static let updateBeginning = RecordChange.storedBeginning(of: .update)
    /// The costs of the conditions of the active subscriptions.
    let costs = ConditionLedger()
    private var updateRules: UpdateRules
    private var subscriptions: PackedSubscriptions
    private var devices: PackedDevices
    private var badges: BadgeCounts
    private let key: ContainerKey

    /// Creates an empty state of a container.
    ///
    /// The seed keeps the index's hashes secret.
    init(container: ContainerKey, indexSeed: UInt64, badges: BadgeCounts) {
        key = container
        self.badges = badges
        index = SubscriptionIndex(seed: indexSeed)
        updateRules = UpdateRules(indexSeed: indexSeed)
        subscriptions = PackedSubscriptions(container: container)
        devices = PackedDevices(container: container)
    }

    /// Returns the same state with other badges.
    func sharing(_ badges: BadgeCounts) -> ContainerState {
        var state = self
        state.badges = badges
        return state
    }

    /// The number of active subscriptions.
    var subscriptionCount: Int { subscriptions.count }

    /// The number of active subscriptions that fire once.
    var onceCount: Int { subscriptions.onceCount }

    /// The number of active subscriptions with silent pushes.
    var silentCount: Int { subscriptions.silentCount }

    /// The number of active devices.
    var deviceCount: Int { devices.count }

    /// Whether there is an active subscription with this serial.
    func contains(_ serial: UInt64) -> Bool { subscriptions.contains(serial) }

    /// Returns the active subscription with this serial, without its condition.
    mutating func subscription(_ serial: UInt64) -> Subscription? {
        subscriptions.subscription(serial)
    }

    /// Returns the devices of a user, by ascending serial.
    mutating func devices(of user: UserID) -> [DeviceVersion] { devices.devices(of: user) }

    // MARK: Edits

    /// Makes a subscription active.
    ///
    /// - Throws: ``PredicateLanguage/PredicateError`` if its condition cannot be read. Then it is
    ///   not active. Saving has already ruled this out.
    mutating func insert(_ version: SubscriptionVersion) throws {
        let indexed = try IndexedSubscription(version.subscription, serial: version.serial)
        if subscriptions.contains(version.serial) { removeSubscription(version.serial) }
        let cost = index.insert(indexed)
        updateRules.insert(version.subscription, indexed: indexed)
        let weight = ConditionWeight(cost, of: indexed, in: version.subscription)
        subscriptions.insert(version.subscription, serial: version.serial, weight: weight)
        costs.add(weight, of: version.subscription)
    }

    /// Ends a subscription.
    mutating func removeSubscription(_ serial: UInt64) {
        guard let weight = subscriptions.weight(serial) else { return }
        if weight.isNoticeable, let subscription = subscriptions.subscription(serial) {
            costs.remove(weight, of: subscription)
        }
        subscriptions.remove(serial)
        index.remove(serial: serial)
        updateRules.remove(serial: serial)
    }

    // MARK: Changes

    /// Adds the serials of the subscriptions that a change fires, ascending, regardless of who may
    /// read it.
    ///
    /// Adds the serials of those whose conditions had an error on it to `erring`. Once that takes
    /// long, conditions of users who may not read the record are not evaluated: they must neither
    /// cost anybody the change, nor show by their cost what the record holds.
    ///
    /// - Throws: `DearChange` if that takes more than `mostSteps`.
    func matches(
        for change: RecordChange, now: Timestamp, mostSteps: Int, into serials: inout [UInt64],
        erring: inout [UInt64]
    ) throws(DearChange) {
        let mayJudge = audience(of: change)
        let dear = index.matches(
            for: change, now: now, mostSteps: mostSteps, into: &serials, erring: &erring,
            among: mayJudge)
        if let dear { throw dear }
        try updateRules.apply(
            to: change, now: now, mostSteps: mostSteps, among: mayJudge, matches: &serials)
    }

    /// Returns which subscriptions a change may be told to, by their serials; `nil` if to all.
    private func audience(of change: RecordChange) -> ((UInt64) -> Bool)? {
        let (readers, before) = (ReaderNames(change.readers), ReaderNames(change.readersBefore))
        if readers.areEverybody, before.areEverybody { return nil }
        let (subscriptions, updateRules) = (self.subscriptions, self.updateRules)
        return { serial in
            guard let name = subscriptions.owner(of: serial), let owner = UserID(rawValue: name)
            else { return false }
            return readers.contains(owner)
                && (!updateRules.narrows(serial) || before.contains(owner))
        }
    }

    /// Adds the serials of the subscriptions that the stored text of a change fires.
    ///
    /// Returns whether the text could be judged without decoding the change.
    func matches(
        forStored text: String, appendedAt: Timestamp, mostSteps: Int,
        into serials: inout [UInt64], erring: inout [UInt64]
    ) throws(DearChange) -> Bool {
        if !updateRules.isEmpty, text.utf8.starts(with: Self.updateBeginning) { return false }
        var dear: DearChange?
        let isJudged = index.matches(
            forStored: text, appendedAt: appendedAt, mostSteps: mostSteps, into: &serials,
            erring: &erring, dear: &dear)
        if let dear { throw dear }
        return isJudged
    }

    /// Makes a device active, and ends the versions that it replaces.
    ///
    /// The device keeps its badge if the same user had it before, unless the registration sets the
    /// badge.
    mutating func insert(_ version: DeviceVersion, replacing serials: [UInt64]) {
        removeDevices(serials, keepingBadgeOf: version.device.holder)
        devices.insert(version)
        if let badge = version.badge { badges.set(badge, of: version.device.holder, in: key) }
    }

    /// Ends devices, and forgets their badges.
    mutating func removeDevices(_ serials: [UInt64]) {
        removeDevices(serials, keepingBadgeOf: nil)
    }

    private mutating func removeDevices(_ serials: [UInt64], keepingBadgeOf keeper: DeviceHolder?) {
        for serial in serials {
            guard let holder = devices.holder(serial) else { continue }
            devices.remove(serial)
            if holder != keeper { badges.forget(holder, in: key) }
        }
    }
}

extension RecordChange {
    /// Returns whether the owner of a subscription may know of this change through it.
    ///
    /// A condition about the record before the change requires the right to read that as well.
    func mayTell(_ subscription: Subscription) -> Bool {
        mayRead(subscription.owner)
            && (!subscription.narrowsUpdates || mightRead(subscription.owner))
    }
}

extension ContainerState {
    /// Removes those of `serials` whose owners may not read what `change` did.
    mutating func keepReaders(of change: RecordChange, among serials: inout [UInt64]) {
        // Without a rule, the owner of every subscription that the index found may read it.
        guard change.readers != nil || change.readersBefore != nil else { return }
        guard serials.count > Self.fewSerials else {
            serials.removeAll { serial in
                guard let subscription = subscription(serial) else { return true }
                return !change.mayTell(subscription)
            }
            return
        }
        let (readers, before) = (ReaderNames(change.readers), ReaderNames(change.readersBefore))
        serials.removeAll { serial in
            guard let subscription = subscription(serial) else { return true }
            let owner = subscription.owner
            return !readers.contains(owner)
                || subscription.narrowsUpdates && !before.contains(owner)
        }
    }

    /// The number of serials up to which searching the lists of readers takes no longer than making
    /// sets of them.
    private static let fewSerials = 16

    /// Removes those that had expired when the change was appended.
    mutating func dropExpired(at appendedAt: Timestamp, among serials: inout [UInt64]) {
        guard subscriptions.expiringCount > 0, !serials.isEmpty else { return }
        serials.removeAll { subscription($0)?.kindness.isOver(at: appendedAt) == true }
    }

    /// Returns those of the subscriptions with these serials that fire once.
    mutating func onceSerials(among serials: [UInt64]) -> [UInt64] {
        guard onceCount > 0 else { return [] }
        return serials.filter { subscription($0)?.firesOnce == true }
    }

    /// Adds to `fanout` what a change owes because of the subscriptions with these serials.
    mutating func expand(_ serials: ArraySlice<UInt64>, into fanout: inout ChangeFanout) {
        for serial in serials {
            guard let subscription = subscription(serial) else { continue }
            fanout.append(
                subscription, serial: serial, to: devices(of: subscription.owner), badges)
        }
    }

    /// Returns how many pushes a change may owe because of a subscription: as many as its owner has
    /// devices.
    func reach(of serial: UInt64) -> Int {
        subscriptions.owner(of: serial).map { devices.count(of: $0) } ?? 0
    }

    /// The largest number of devices that one user has had since the start.
    var mostDevicesOfOne: Int { devices.mostOfOne }

    /// Returns whether a user has a device with this ID.
    func hasDevice(_ id: DeviceID, of user: UserID) -> Bool { devices.hasDevice(id, of: user) }

    /// Returns those of the subscriptions with these serials because of which a change owes
    /// something that the subscriptions before them do not owe already.
    ///
    /// Also returns why the others owe nothing.
    ///
    /// Silent subscriptions of one user that leave out the same devices reach the same devices.
    /// Only the first of them is looked at, because a user may have very many subscriptions and
    /// devices.
    mutating func withoutRepeatedSilence(
        _ serials: [UInt64], of change: RecordChange
    ) -> (owing: [UInt64], unreached: [UnreachedFiring]) {
        guard silentCount > 0 else { return (serials, []) }
        var notified: Set<UInt64> = []
        var unreached: [UnreachedFiring] = []
        var seen: [SilentReach: UnreachedFiring.Reason] = [:]
        let owing = serials.filter { serial in
            guard let subscription = subscription(serial) else { return false }
            if !subscription.isMerged { return true }
            let reach = SilentReach(owner: subscription.owner, suppress: subscription.suppress)
            if let reason = seen[reach] {
                unreached.append(UnreachedFiring(serial: serial, reason: reason))
                return false
            }
            let all = self.devices(of: subscription.owner)
            let devices = DeviceExpansion.devices(among: all, for: subscription, of: change)
            let new = devices.count { notified.insert($0.serial).inserted }
            let none = UnreachedFiring(serial, all: all, left: devices)
            seen[reach] = none.reason
            if new == 0 { unreached.append(none) }
            return new > 0
        }
        return (owing, unreached)
    }
}

/// Subscriptions with equal values reach the same devices with silent pushes.
private struct SilentReach: Hashable {
    let owner: UserID
    let suppress: OriginSuppression
}

extension UnreachedFiring {
    /// Explains why a firing owes nothing to any of its owner's devices.
    ///
    /// `left` are the devices that did not make the change.
    init(_ serial: UInt64, all: [DeviceVersion], left: [DeviceVersion]) {
        self.init(
            serial: serial,
            reason: all.isEmpty ? .noDevice : left.isEmpty ? .origin : .merged)
    }
}

extension ContainerState {
    /// Returns the state for a snapshot.
    ///
    /// Badges are recorded with the progress, and are not part of it.
    ///
    /// - Throws: What the encoder of the index throws, which would be a programming error.
    func image() throws -> ContainerImage {
        ContainerImage(
            index: try index.image(), updateRules: try updateRules.image(),
            subscriptions: subscriptions.image, devices: devices.image)
    }

    /// Loads the state from the parts of a snapshot, which `next` reads one by one.
    ///
    /// - Throws: `ImageDamage` if a part is damaged, or the parts do not belong together.
    init(container: ContainerKey, badges: BadgeCounts, next: () throws -> [UInt8]) throws {
        key = container
        self.badges = badges
        index = try SubscriptionIndex(image: try next())
        updateRules = try UpdateRules(image: try next())
        subscriptions = try PackedSubscriptions(container: container, image: try next())
        devices = try PackedDevices(container: container, image: try next())
        guard index.statistics.subscriptions == subscriptions.count else {
            throw ImageDamage("the index and the subscriptions have different counts")
        }
        for serial in subscriptions.weighty {
            guard let weight = subscriptions.weight(serial),
                let subscription = subscriptions.subscription(serial)
            else { continue }
            costs.add(weight, of: subscription)
        }
    }
}

/// The parts of a container's state in a snapshot.
struct ContainerImage: Sendable {
    var index: [UInt8]
    var updateRules: [UInt8]
    var subscriptions: [UInt8]
    var devices: [UInt8]
}
