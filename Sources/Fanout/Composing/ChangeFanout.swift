package import RelayModel
import Storage

/// The deliveries of one change, numbered in the order in which they are appended.
struct ChangeFanout {
    private let position: LogPosition
    private let appendedAt: Timestamp
    private let change: RecordChange
    private let identity: DeliveryIdentity
    private let settings: ContainerSettings
    private let composer: NotificationComposer
    private let firstOffset: UInt32
    private var offset: UInt32 = 0
    /// The collapse IDs made from fields of the record, by the name of the field.
    private var collapseIDs: [String: String?] = [:]
    /// The serials of the devices that already get a silent push because of this change.
    ///
    /// One silent push is enough.
    private var silentlyNotified: Set<UInt64> = []

    /// The inbox entries that the change owes and that have not been taken yet.
    private(set) var inbox: [InboxEntry] = []

    /// The devices that were left out because they made the change, not taken yet.
    private var suppressed: [SuppressedDevice] = []

    /// The subscriptions appended so far that owe no device anything.
    private(set) var unreached: [UnreachedFiring] = []

    /// The deliveries from `firstOffset` on that have not been taken yet.
    private(set) var deliveries: [OwedDelivery] = []

    /// Begins the fan-out of the change at `position` of the log.
    ///
    /// Deliveries before `firstOffset` were settled before a crash. They keep their numbers, but
    /// are left out, and the badges already count them.
    init(
        of change: RecordChange, at position: LogPosition, appendedAt: Timestamp,
        identity: DeliveryIdentity, settings: ContainerSettings, firstOffset: UInt32
    ) {
        self.position = position
        self.appendedAt = appendedAt
        self.change = change
        self.identity = identity
        self.settings = settings
        self.firstOffset = firstOffset
        composer = NotificationComposer(
            settings: settings, change: change, position: position, appendedAt: appendedAt)
    }

    /// Takes the devices that have been left out so far because they made the change.
    mutating func takeSuppressed() -> [SuppressedDevice] {
        defer { suppressed.removeAll(keepingCapacity: true) }
        return suppressed
    }

    /// Takes the deliveries appended so far.
    mutating func takeDeliveries() -> [OwedDelivery] {
        defer { deliveries.removeAll(keepingCapacity: true) }
        return deliveries
    }

    /// Takes the inbox entries appended so far.
    mutating func takeInbox() -> [InboxEntry] {
        defer { inbox.removeAll(keepingCapacity: true) }
        return inbox
    }

    /// Appends what the change owes because of one subscription, whose owner has the devices `all`.
    mutating func append(
        _ subscription: Subscription, serial: UInt64, to all: [DeviceVersion], _ badges: BadgeCounts
    ) {
        let devices = DeviceExpansion.devices(among: all, for: subscription, of: change)
        let origin = DeviceExpansion.origin(of: change, for: subscription.owner)
        if devices.count < all.count, let origin {
            // A client may have registered several devices, and the origin need not be one of them.
            for version in all where version.device.id.isOfSameClient(as: origin) {
                suppressed.append(
                    SuppressedDevice(
                        position: position, subscriptionID: subscription.id,
                        deviceID: version.device.id))
            }
        }
        let notificationID = identity.notificationID(
            position: position, owner: subscription.owner)
        appendToInbox(subscription, serial: serial, notificationID)
        var isUnreached = true
        defer {
            if isUnreached {
                unreached.append(UnreachedFiring(serial, all: all, left: devices))
            }
        }
        guard !devices.isEmpty else { return }
        var composed: [String?: PushNotification] = [:]
        for version in devices {
            if subscription.isMerged, !silentlyNotified.insert(version.serial).inserted {
                continue
            }
            isUnreached = false
            defer { offset += 1 }
            guard offset >= firstOffset else { continue }
            let topic = version.device.topic
            let badge =
                subscription.notificationInfo.shouldBadge
                ? badges.raise(version.device.holder, in: settings.key) : nil
            // The pushes to the devices of one user differ only in topic and badge.
            let push: PushNotification
            if badge == nil, let known = composed[topic] {
                push = known
            } else {
                push = composer.notification(
                    by: subscription, notificationID: notificationID, topic: topic, badge: badge,
                    gateway: version.device.gateway, knowing: &collapseIDs)
            }
            composed[topic] = push
            append(push, badge: badge, to: version, of: subscription, serial: serial)
            guard subscription.kindness.digest != nil else { continue }
            deliveries[deliveries.count - 1].delivery.together = composer.togetherPayload(
                by: subscription, notificationID: notificationID, badge: badge,
                gateway: version.device.gateway)
        }
    }

    /// Appends the notification to the inbox, even if the user has no device that can be pushed to.
    private mutating func appendToInbox(
        _ subscription: Subscription, serial: UInt64, _ notificationID: UUIDBytes
    ) {
        guard settings.keepsInbox else { return }
        let isOwn = subscription.suppress == .user && subscription.owner == change.origin.userID
        guard !isOwn else { return }
        inbox.append(
            InboxEntry(
                owner: InboxOwner(container: settings.key, user: subscription.owner),
                position: position, subscriptionSerial: serial, subscriptionID: subscription.id,
                database: subscription.database, notificationID: notificationID,
                originDevice: subscription.suppress == .device
                    ? DeviceExpansion.origin(of: change, for: subscription.owner) : nil,
                payload: composer.inboxPayload(by: subscription, notificationID: notificationID),
                at: appendedAt))
    }

    private mutating func append(
        _ notification: PushNotification, badge: Int64?, to version: DeviceVersion,
        of subscription: Subscription, serial: UInt64
    ) {
        var delivery = Delivery(
            id: identity.deliveryID(
                position: position, subscriptionSerial: serial, deviceSerial: version.serial),
            ordinal: DeliveryOrdinal(position: position, offset: offset),
            container: settings.key, subscriptionID: subscription.id, owner: subscription.owner,
            device: version.device, registeredAt: version.registeredAt,
            appendedAt: appendedAt, notification: notification, badge: badge)
        delivery.isOnce = subscription.firesOnce
        delivery.database = subscription.database
        if notification.collapseID != nil { delivery.collapsingRecord = change.recordID }
        var owed = OwedDelivery(
            delivery, subscriptionSerial: serial, deviceSerial: version.serial)
        if subscription.kindness.isHolding || !version.device.kindness.isEmpty {
            owed.kindness = Kindness(
                subscription: subscription.kindness, device: version.device.kindness,
                subscriptionSerial: subscription.firesOnce ? nil : serial,
                deviceSerial: version.serial)
        }
        deliveries.append(owed)
    }
}

extension Subscription {
    /// Whether its pushes are silent, so that one silent push to a device stands for those of other
    /// subscriptions fired by the same change.
    ///
    /// This does not apply if its pushes may be held back, because the others would then be held
    /// back with it.
    var isMerged: Bool { !notificationInfo.isVisible && !kindness.isHolding }
}

/// A device that a change does not notify because the device made the change.
package struct SuppressedDevice: Sendable, Hashable {
    /// The position of the change.
    package let position: LogPosition
    /// The subscription that would have notified the device.
    package let subscriptionID: SubscriptionID
    /// The device.
    package let deviceID: DeviceID
}
