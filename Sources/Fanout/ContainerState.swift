import Matching
import PredicateLanguage
import RelayModel
import Storage

/// What a container in one environment knows at a position of the log: its active subscriptions, in
/// the index, and the devices of its users.
struct ContainerState {
    /// The index over the conditions of the active subscriptions.
    let index: SubscriptionIndex
    private var subscriptions: [UInt64: Subscription] = [:]
    private var devices: [UserID: [DeviceVersion]] = [:]
    private var badges: [DeviceID: Int64] = [:]

    /// Creates the state of a container of which nothing is known; the seed keeps the index's
    /// hashes secret.
    init(indexSeed: UInt64) {
        index = SubscriptionIndex(seed: indexSeed)
    }

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
        var predicate: RecordPredicate?
        if case .query(let query, _) = subscription.scope {
            predicate = try query.recordPredicate()
        }
        index.insert(
            IndexedSubscription(
                serial: version.serial, database: subscription.database, owner: subscription.owner,
                zoneID: subscription.zoneID, recordType: subscription.recordType,
                firesOn: subscription.firesOn, predicate: predicate))
        subscriptions[version.serial] = subscription
    }

    /// Ends a subscription.
    mutating func removeSubscription(_ serial: UInt64) {
        guard subscriptions.removeValue(forKey: serial) != nil else { return }
        _ = index.remove(serial: serial)
    }

    /// Makes a device active.
    mutating func insert(_ version: DeviceVersion) {
        var versions = devices[version.device.owner] ?? []
        let place = versions.firstIndex { $0.serial >= version.serial } ?? versions.endIndex
        if place < versions.endIndex, versions[place].serial == version.serial {
            versions[place] = version
        } else {
            versions.insert(version, at: place)
        }
        devices[version.device.owner] = versions
    }

    /// Ends devices.
    ///
    /// The owner is not said, because a token that changed hands ends under another.
    mutating func removeDevices(_ serials: Set<UInt64>, serialOwners: [UInt64: UserID]) {
        for owner in Set(serials.compactMap { serialOwners[$0] }) {
            devices[owner]?.removeAll { serials.contains($0.serial) }
            if devices[owner]?.isEmpty == true { devices[owner] = nil }
        }
    }

    // MARK: Badges

    /// Sets a device's badge as it was at the progress.
    mutating func setBadge(_ badge: Int64, of device: DeviceID) {
        badges[device] = badge
    }

    /// Raises a device's badge by one, and returns it.
    mutating func raiseBadge(of device: DeviceID) -> Int64 {
        badges[device, default: 0] += 1
        return badges[device, default: 0]
    }
}
