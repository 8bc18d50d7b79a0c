/// What kind of push a gateway is asked for; APNs wants it to agree with the payload.
public enum PushType: String, Sendable, Hashable, CaseIterable {
    /// It shows, sounds or badges.
    case alert
    /// It only wakes the application.
    case background
}

/// What one device gets: everything the gateway needs besides the address.
public struct PushNotification: Sendable, Hashable {
    /// The kind of push.
    public var pushType: PushType
    /// 10 at once, 5 when it suits the device's battery, 1 never wakes it.
    ///
    /// A background push must have 5 (APNs).
    public var priority: Int
    /// The application (APNs: its bundle ID).
    public var topic: String
    /// A later push with the same value replaces an earlier one that the device has not seen; at
    /// most 64 bytes.
    public var collapseID: String?
    /// Until when the push is of use; `nil` leaves it to the gateway, and a moment in the past
    /// means a single attempt.
    public var expiration: Timestamp?
    /// The JSON text, at most 4096 bytes.
    public var payload: [UInt8]

    /// Without `expiration` the gateway decides for how long it tries.
    public init(
        pushType: PushType, priority: Int, topic: String, collapseID: String? = nil,
        expiration: Timestamp? = nil, payload: [UInt8]
    ) {
        self.pushType = pushType
        self.priority = priority
        self.topic = topic
        self.collapseID = collapseID
        self.expiration = expiration
        self.payload = payload
    }
}

/// Names one delivery; it is the `apns-id` of every attempt.
///
/// It is computed from the log position, the subscription and the device, so that a repetition
/// after a crash carries the same one.
public struct DeliveryID: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The 16 bytes.
    public let uuid: UUIDBytes

    /// Wraps the 16 bytes.
    public init(_ uuid: UUIDBytes) {
        self.uuid = uuid
    }

    /// The canonical form in lower case.
    public var description: String { uuid.description }

    /// Orders by the bytes.
    public static func < (left: DeliveryID, right: DeliveryID) -> Bool {
        left.uuid < right.uuid
    }
}

/// The place of a delivery in a shard's log: the change that owes it, and its number among the
/// deliveries of that change.
public struct DeliveryOrdinal: Sendable, Hashable, Comparable {
    /// The change's position.
    public let position: LogPosition
    /// The number within the change's fan-out, from 0.
    public let offset: UInt32

    /// Names the delivery with number `offset` of the change at `position`.
    public init(position: LogPosition, offset: UInt32) {
        self.position = position
        self.offset = offset
    }

    /// Orders by position, then by number.
    public static func < (left: DeliveryOrdinal, right: DeliveryOrdinal) -> Bool {
        (left.position, left.offset) < (right.position, right.offset)
    }
}

/// One push notification owed to one device by one change.
public struct Delivery: Sendable, Hashable {
    /// The identity, the same for every attempt.
    public var id: DeliveryID
    /// Where in the log it is owed.
    public var ordinal: DeliveryOrdinal
    /// The container and environment of the change.
    public var container: ContainerKey
    /// The subscription that the change fired.
    public var subscriptionID: SubscriptionID
    /// The subscription's owner.
    public var owner: UserID
    /// The device.
    public var deviceID: DeviceID
    /// The kind of gateway that reaches the device.
    public var gateway: GatewayKind
    /// Which of the gateway's environments issued ``token``.
    public var gatewayEnvironment: GatewayEnvironment
    /// The gateway's address of the device.
    public var token: DeviceToken
    /// When the device registered ``token``: an older verdict of the gateway does not count.
    public var registeredAt: Timestamp
    /// When the change was appended; the delay to the gateway's answer is measured from here.
    public var appendedAt: Timestamp
    /// What the device gets.
    public var notification: PushNotification
    /// The device's badge once this delivery counts, where the push sets it.
    public var badge: Int64?
    /// The record that changed, where the subscription asks to collapse its pushes: a newer
    /// delivery of the same record takes the place of this one until it is sent.
    public var collapsingRecord: RecordID?
    /// Whether the subscription ended by firing this: then its end takes nothing back.
    ///
    /// `nil` in what an earlier version kept.
    public var isOnce: Bool?

    /// The database of the subscription.
    ///
    /// `nil` in what an earlier version kept.
    public var database: DatabaseScope?
    /// The payload where it stands for several, with ``countMark`` for their number; `nil` where
    /// that is ``notification``'s.
    public var together: [UInt8]?
    /// What stands for the number of deliveries in an alert, which has it nowhere else.
    public static let countMark: Unicode.Scalar = "\u{F0C07}"
    /// How many deliveries it stands for, if it was held back with others, itself included.
    public var standsFor: Int64?

    /// Set the rest on the value: what it collapses with, whether it fired once, and the database.
    public init(
        id: DeliveryID, ordinal: DeliveryOrdinal, container: ContainerKey,
        subscriptionID: SubscriptionID, owner: UserID, device: Device, registeredAt: Timestamp,
        appendedAt: Timestamp, notification: PushNotification, badge: Int64? = nil
    ) {
        self.id = id
        self.ordinal = ordinal
        self.container = container
        self.subscriptionID = subscriptionID
        self.owner = owner
        deviceID = device.id
        gateway = device.gateway
        gatewayEnvironment = device.gatewayEnvironment
        token = device.token
        self.registeredAt = registeredAt
        self.appendedAt = appendedAt
        self.notification = notification
        self.badge = badge
    }
}
