/// The kind of push that the gateway is asked to send; APNs requires that it agrees with the
/// payload.
public enum PushType: String, Sendable, Hashable, CaseIterable {
    /// A push that shows something, plays a sound or sets the badge.
    case alert
    /// A push that only wakes the application.
    case background
}

/// What one device gets: everything that the gateway needs except the address.
public struct PushNotification: Sendable, Hashable {
    /// The kind of push.
    public var pushType: PushType
    /// The priority: 10 sends at once, 5 considers the device's battery, 1 never wakes the device.
    ///
    /// A background push must have 5 (APNs).
    public var priority: Int
    /// The application (APNs: its bundle ID).
    public var topic: String
    /// A key of at most 64 bytes.
    ///
    /// A later push with the same key replaces an earlier one that the device has not shown yet.
    public var collapseID: String?
    /// The moment until which the push is useful.
    ///
    /// `nil` leaves it to the gateway; a moment in the past means a single attempt.
    public var expiration: Timestamp?
    /// The JSON text in UTF-8, at most 4096 bytes.
    public var payload: [UInt8]

    /// Creates a push notification; without `expiration`, the gateway decides how long it tries.
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

/// The ID of one delivery, which is the `apns-id` of every attempt.
///
/// It is computed from the log position, the subscription and the device, so that a repetition
/// after a crash has the same ID.
public struct DeliveryID: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The 16 bytes.
    public let uuid: UUIDBytes

    /// Creates an ID from its 16 bytes.
    public init(_ uuid: UUIDBytes) {
        self.uuid = uuid
    }

    /// The canonical form in lower case.
    public var description: String { uuid.description }

    /// Compares by bytes.
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

    /// Creates the place of the delivery with number `offset` of the change at `position`.
    public init(position: LogPosition, offset: UInt32) {
        self.position = position
        self.offset = offset
    }

    /// Compares by position, then by number.
    public static func < (left: DeliveryOrdinal, right: DeliveryOrdinal) -> Bool {
        (left.position, left.offset) < (right.position, right.offset)
    }
}

/// One push notification owed to one device by one change.
public struct Delivery: Sendable, Hashable {
    /// The ID, the same for every attempt.
    public var id: DeliveryID
    /// The delivery's place in the log and in the fan-out of its change.
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
    /// The gateway's environment that issued ``token``.
    public var gatewayEnvironment: GatewayEnvironment
    /// The gateway's address of the device.
    public var token: DeviceToken
    /// When the device registered ``token``; an older verdict of the gateway about the token does
    /// not count.
    public var registeredAt: Timestamp
    /// When the change was appended; the delay until the gateway's answer is measured from here.
    public var appendedAt: Timestamp
    /// What the device gets.
    public var notification: PushNotification
    /// The device's badge after this delivery, if the push sets it.
    public var badge: Int64?
    /// The record that changed, if the subscription asks to collapse its pushes.
    ///
    /// A newer delivery for the same record replaces this one as long as it has not been sent.
    public var collapsingRecord: RecordID?
    /// Whether the subscription fires once and has ended with this delivery, so that its end does
    /// not withdraw the delivery.
    ///
    /// `nil` in deliveries that an earlier version stored.
    public var isOnce: Bool?

    /// The database of the subscription.
    ///
    /// `nil` in deliveries that an earlier version stored.
    public var database: DatabaseScope?
    /// The payload to use if this delivery stands for several, with ``countMark`` in the place of
    /// their number; `nil` if it is the payload of ``notification``.
    public var together: [UInt8]?
    /// The placeholder for the number of deliveries in an alert.
    ///
    /// It is a private-use character, which an alert does not contain otherwise.
    public static let countMark: Unicode.Scalar = "\u{F0C07}"
    /// The number of deliveries that this one stands for, including itself, if several were held
    /// back together.
    public var standsFor: Int64?

    /// Creates a delivery; set `collapsingRecord`, `isOnce` and `database` afterwards.
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
