import Matching
import PredicateLanguage
import RelayModel
import Storage

/// What a container in one environment knows at a position of the log: its active subscriptions, in
/// the index, and the devices of its users.
struct ContainerState {
    /// The index over the conditions of the active subscriptions.
    let index: SubscriptionIndex
    private var updateRules: UpdateRules
    private var subscriptions: [UInt64: Subscription] = [:]
    private var devices: [UserID: [DeviceVersion]] = [:]
    private var holders: [UInt64: Holder] = [:]
    private let badges: BadgeBoard
    private let key: ContainerKey

    /// Whose a version of a device is.
    private struct Holder: Hashable {
        let owner: UserID
        let device: DeviceID
    }

    /// Creates the state of a container of which nothing is known.
    ///
    /// The seed keeps the index's hashes secret.
    init(indexSeed: UInt64, of key: ContainerKey, badges: BadgeBoard) {
        self.key = key
        self.badges = badges
        index = SubscriptionIndex(seed: indexSeed)
        updateRules = UpdateRules(indexSeed: indexSeed)
    }

    /// How many of the active subscriptions fire once.
    private(set) var onceCount = 0
    /// How many of the active subscriptions show nothing.
    private(set) var silentCount = 0

    /// How many subscriptions are active.
    var subscriptionCount: Int { subscriptions.count }

    /// The active subscription with this serial.
    func subscription(_ serial: UInt64) -> Subscription? { subscriptions[serial] }

    /// The devices of a user, by ascending serial.
    func devices(of user: UserID) -> [DeviceVersion] { devices[user] ?? [] }

    // MARK: Edits

    /// Makes a subscription active.
    ///
    /// - Throws: ``PredicateLanguage/PredicateError`` if its condition cannot be read, which saving
    ///   has ruled out; then it is not active.
    mutating func insert(_ version: SubscriptionVersion) throws {
        let subscription = version.subscription
        removeSubscription(version.serial)
        var predicate: RecordPredicate?
        if case .query(let query, _) = subscription.scope {
            predicate = try query.recordPredicate()
        }
        let indexed = IndexedSubscription(
            serial: version.serial, database: subscription.database, owner: subscription.owner,
            zoneID: subscription.zoneID, recordType: subscription.recordType,
            firesOn: subscription.firesOn, predicate: predicate)
        index.insert(indexed)
        updateRules.insert(subscription, indexed: indexed)
        subscriptions[version.serial] = subscription
        count(subscription, by: 1)
    }

    /// Ends a subscription.
    mutating func removeSubscription(_ serial: UInt64) {
        guard let subscription = subscriptions.removeValue(forKey: serial) else { return }
        index.remove(serial: serial)
        updateRules.remove(serial: serial)
        count(subscription, by: -1)
    }

    private mutating func count(_ subscription: Subscription, by difference: Int) {
        if subscription.firesOnce { onceCount += difference }
        if !subscription.notificationInfo.isVisible { silentCount += difference }
    }

    // MARK: Changes

    /// Adds the serials of the subscriptions that a change fires, ascending, whoever may read it.
    func matches(for change: RecordChange, now: Timestamp, into serials: inout [UInt64]) {
        index.matches(for: change, now: now, into: &serials)
        updateRules.apply(to: change, now: now, matches: &serials)
    }

    /// Makes a device active, and ends the versions that it replaces.
    ///
    /// Its badge stays if the same user had it before.
    mutating func insert(_ version: DeviceVersion, replacing serials: [UInt64]) {
        let holder = Holder(owner: version.device.owner, device: version.device.id)
        removeDevices(serials, keepingBadgeOf: holder)
        holders[version.serial] = holder
        Self.insert(version, into: &devices[holder.owner, default: []])
    }

    private static func insert(_ version: DeviceVersion, into versions: inout [DeviceVersion]) {
        let place = versions.firstIndex { $0.serial >= version.serial } ?? versions.endIndex
        if place < versions.endIndex, versions[place].serial == version.serial {
            versions[place] = version
        } else {
            versions.insert(version, at: place)
        }
    }

    /// Ends devices, and forgets their badges.
    mutating func removeDevices(_ serials: [UInt64]) {
        removeDevices(serials, keepingBadgeOf: nil)
    }

    private mutating func removeDevices(_ serials: [UInt64], keepingBadgeOf keeper: Holder?) {
        for serial in serials {
            guard let holder = holders.removeValue(forKey: serial) else { continue }
            devices[holder.owner]?.removeAll { $0.serial == serial }
            if devices[holder.owner]?.isEmpty == true { devices[holder.owner] = nil }
            if holder != keeper { badges.forget(holder.device, in: key) }
        }
    }
}
