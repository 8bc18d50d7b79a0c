package import RelayModel

/// What the web courier keeps until it is fetched.
///
/// A courier is named by its device token, which is SHA-256 of the secret in its URL: who knows the
/// token, as whoever reads the store does, cannot fetch by it.
package protocol CourierQueue: Sendable {
    /// Creates the courier of `device`, whose token is new, and registers the device.
    ///
    /// A user has ``RelayModel/Limits/maximumCouriersPerUser`` in one container at most;
    /// beyond, the one that was polled least recently ends.
    func createCourier(
        for device: Device, named naming: DeviceNaming, at now: Timestamp
    ) async throws -> DeviceVersion
    /// Whether the token is that of a courier; `nil` if it is none.
    func courier(_ token: DeviceToken) async throws -> CourierStanding?
    /// Notes that somebody asked for the courier's notifications.
    func notePoll(of courier: DeviceToken, at now: Timestamp) async throws

    /// Queues notifications durably, each for the courier that its device has now.
    ///
    /// A delivery that was queued before is not queued again, taken or not.
    func queue(
        _ deliveries: [CourierDelivery], bounds: CourierBounds, at now: Timestamp
    ) async throws -> CourierQueueing
    /// Takes the oldest notification that waits for the courier, durably; `nil` if there is none.
    ///
    /// Nobody else gets it then.
    func takeNotification(
        of courier: DeviceToken, at now: Timestamp
    ) async throws -> TakenNotification?
    /// Puts back what was taken and could not be handed over, in its old place.
    func putBack(_ notification: TakenNotification) async throws
    /// How much waits for each courier of a container, by device serial.
    func couriers(of container: ContainerKey, limit: Int) async throws -> [CourierOverview]

    /// Deletes what has expired, what was taken and can no more be repeated, and couriers that
    /// nobody polled since `idleSince`; returns how many rows, at most about `limit` of each.
    func pruneCouriers(idleSince: Timestamp, at now: Timestamp, limit: Int) async throws -> Int
}

/// What is known of a courier.
package struct CourierStanding: Sendable, Hashable {
    /// Whose the device is that is registered with its token, of several in several containers the
    /// first; `nil` if there is none.
    package var party: CourierParty?
    /// When somebody asked for its notifications last.
    package var polledAt: Timestamp

    /// Says what is known.
    package init(party: CourierParty?, polledAt: Timestamp) {
        self.party = party
        self.polledAt = polledAt
    }

    /// Whether a device is registered with its token, in any container.
    package var isRegistered: Bool { party != nil }
}

/// Who polls, by the numbers that the store has for them.
package struct CourierParty: Sendable, Hashable {
    /// The container.
    package let container: Int64
    /// The user, who is one of that container.
    package let user: Int64

    /// Takes the numbers of both.
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
    /// The user whose subscription it is.
    package var owner: UserID
    /// The device.
    package var deviceID: DeviceID
    /// A later notification with the same one takes its place.
    package var collapseID: String?
    /// When it stops being of use; `nil` means as late as the bounds allow.
    package var expiration: Timestamp?
    /// The JSON text.
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

/// How much a courier keeps.
package struct CourierBounds: Sendable, Hashable {
    /// The notifications that wait for one courier; beyond, the oldest are dropped.
    package var count: Int
    /// How long a notification waits at most.
    package var age: Duration
    /// How long a notification waits at least, whatever its expiration: between two polls there
    /// is a gap.
    package var gap: Duration

    package init(
        count: Int = 500, age: Duration = .seconds(72 * 3600), gap: Duration = .seconds(30)
    ) {
        self.count = count
        self.age = age
        self.gap = gap
    }
}

/// What became of notifications that were to be queued.
package struct CourierQueueing: Sendable, Hashable {
    /// What became of one.
    package enum Outcome: Sendable, Hashable {
        /// It waits for this courier now.
        case queued(DeviceToken)
        /// It was queued before.
        case known
        /// The user has no such device any more, or it is no courier.
        case unregistered
    }

    /// What became of each, in order.
    package var outcomes: [Outcome]
    /// How many older ones were dropped to make room.
    package var dropped: Int

    /// Says what became of each.
    package init(outcomes: [Outcome], dropped: Int) {
        self.outcomes = outcomes
        self.dropped = dropped
    }
}

/// A notification that was taken from a courier's queue.
package struct TakenNotification: Sendable, Hashable {
    /// The number by which the engine keeps it.
    package let number: Int64
    /// The JSON text.
    package let payload: [UInt8]

    package init(number: Int64, payload: [UInt8]) {
        self.number = number
        self.payload = payload
    }
}

/// A courier, for whoever has to help a user.
package struct CourierOverview: Sendable, Hashable {
    /// Its device.
    package var device: DeviceVersion
    /// How many notifications of this container wait.
    package var waiting: Int
    /// When somebody asked for its notifications last.
    package var polledAt: Timestamp

    /// Describes a courier.
    package init(device: DeviceVersion, waiting: Int, polledAt: Timestamp) {
        self.device = device
        self.waiting = waiting
        self.polledAt = polledAt
    }
}

extension CourierQueue {
    /// Creates the courier of a device by its own ID.
    package func createCourier(
        for device: Device, at now: Timestamp
    ) async throws -> DeviceVersion {
        try await createCourier(for: device, named: .device, at: now)
    }
}
