package import RelayModel

/// The notifications that the web courier keeps until a client fetches them.
///
/// A courier is identified by its device token, which is the SHA-256 of the secret in its URL. So a
/// reader of the store, who sees the token, cannot fetch notifications.
package protocol CourierQueue: Sendable {
    /// Creates the courier of `device`, whose token is new, and registers the device.
    ///
    /// A user has at most ``RelayModel/Limits/maximumCouriersPerUser`` couriers in one container.
    /// Beyond that, the courier that was polled least recently ends.
    func createCourier(
        for device: Device, named naming: DeviceNaming, at now: Timestamp
    ) async throws -> DeviceVersion
    /// Returns the state of the courier with this token, or `nil` if there is none.
    func courier(_ token: DeviceToken) async throws -> CourierStanding?
    /// Records that a client polled the courier.
    func notePoll(of courier: DeviceToken, at now: Timestamp) async throws

    /// Queues notifications durably, each for the courier that its device has now.
    ///
    /// A delivery that was queued before is not queued again, even if it was fetched.
    func queue(
        _ deliveries: [CourierDelivery], bounds: CourierBounds, at now: Timestamp
    ) async throws -> CourierQueueing
    /// Takes the oldest notification that waits for the courier, durably, or returns `nil` if there
    /// is none.
    ///
    /// No other poll gets a notification that was taken.
    func takeNotification(
        of courier: DeviceToken, at now: Timestamp
    ) async throws -> TakenNotification?
    /// Puts a taken notification that could not be handed over back into its old place.
    func putBack(_ notification: TakenNotification) async throws
    /// Returns the couriers of a container by device serial, with the number of waiting
    /// notifications.
    func couriers(of container: ContainerKey, limit: Int) async throws -> [CourierOverview]

    /// Deletes expired notifications, taken ones that can no longer be repeated, and couriers that
    /// were not polled since `idleSince`.
    ///
    /// Returns the number of deleted rows, at most about `limit` of each kind.
    func pruneCouriers(idleSince: Timestamp, at now: Timestamp, limit: Int) async throws -> Int
}

/// The state of a courier.
package struct CourierStanding: Sendable, Hashable {
    /// The owner of the device that is registered with the courier's token, the first one if there
    /// are several in several containers; `nil` if there is none.
    package var party: CourierParty?
    /// When a client last polled the courier.
    package var polledAt: Timestamp

    /// Creates the state of a courier.
    package init(party: CourierParty?, polledAt: Timestamp) {
        self.party = party
        self.polledAt = polledAt
    }

    /// Whether a device in any container is registered with the courier's token.
    package var isRegistered: Bool { party != nil }
}

/// The container and user that poll a courier, by the store's row numbers.
package struct CourierParty: Sendable, Hashable {
    /// The container's row number.
    package let container: Int64
    /// The row number of the user, who belongs to that container.
    package let user: Int64

    /// Creates a party from both numbers.
    package init(container: Int64, user: Int64) {
        self.container = container
        self.user = user
    }
}

/// One notification on its way to a courier.
package struct CourierDelivery: Sendable, Hashable {
    /// The delivery.
    package var deliveryID: DeliveryID
    /// The change that owes it.
    package var position: LogPosition
    /// The container and environment.
    package var container: ContainerKey
    /// The user who owns the subscription.
    package var owner: UserID
    /// The device.
    package var deviceID: DeviceID
    /// The collapse ID: a later notification with the same ID replaces this one.
    package var collapseID: String?
    /// When the notification becomes useless; `nil` means as late as the bounds allow.
    package var expiration: Timestamp?
    /// The payload as JSON text.
    package var payload: [UInt8]

    package init(
        deliveryID: DeliveryID, position: LogPosition, container: ContainerKey, owner: UserID,
        deviceID: DeviceID, collapseID: String? = nil, expiration: Timestamp? = nil,
        payload: [UInt8]
    ) {
        self.deliveryID = deliveryID
        self.position = position
        self.container = container
        self.owner = owner
        self.deviceID = deviceID
        self.collapseID = collapseID
        self.expiration = expiration
        self.payload = payload
    }
}

/// The bounds of what a courier keeps.
package struct CourierBounds: Sendable, Hashable {
    /// The maximum number of notifications that wait for one courier.
    ///
    /// Beyond it, the oldest are dropped.
    package var count: Int
    /// The maximum time that a notification waits.
    package var age: Duration
    /// The minimum time that a notification waits, whatever its expiration, because there is a gap
    /// between two polls.
    package var gap: Duration

    package init(
        count: Int = 500, age: Duration = .seconds(72 * 3600), gap: Duration = .seconds(30)
    ) {
        self.count = count
        self.age = age
        self.gap = gap
    }
}

/// The result of queueing notifications.
package struct CourierQueueing: Sendable, Hashable {
    /// The result for one notification.
    package enum Outcome: Sendable, Hashable {
        /// The notification waits for this courier now.
        case queued(DeviceToken)
        /// The notification was queued before.
        case known
        /// The user no longer has this device, or the device has no courier.
        case unregistered
    }

    /// The result for each notification, in order.
    package var outcomes: [Outcome]
    /// The number of older notifications dropped to make room.
    package var dropped: Int

    package init(outcomes: [Outcome], dropped: Int) {
        self.outcomes = outcomes
        self.dropped = dropped
    }
}

/// A notification that was taken from a courier's queue.
package struct TakenNotification: Sendable, Hashable {
    /// The number of the notification's row.
    package let number: Int64
    /// The payload as JSON text.
    package let payload: [UInt8]

    package init(number: Int64, payload: [UInt8]) {
        self.number = number
        self.payload = payload
    }
}

/// A courier as operators see it.
package struct CourierOverview: Sendable, Hashable {
    /// The courier's device.
    package var device: DeviceVersion
    /// The number of waiting notifications of this container.
    package var waiting: Int
    /// When a client last polled the courier.
    package var polledAt: Timestamp

    /// Creates an overview of a courier.
    package init(device: DeviceVersion, waiting: Int, polledAt: Timestamp) {
        self.device = device
        self.waiting = waiting
        self.polledAt = polledAt
    }
}

extension CourierQueue {
    /// Creates the courier of a device under the device's own ID.
    package func createCourier(
        for device: Device, at now: Timestamp
    ) async throws -> DeviceVersion {
        try await createCourier(for: device, named: .device, at: now)
    }
}
