package import RelayModel

/// The pushes of one subscription to one device, which a throttle counts together.
package struct ThrottledLine: Sendable, Hashable {
    /// The container and environment.
    package let container: ContainerKey
    /// The user who owns the subscription and the device.
    package let owner: UserID
    /// The subscription.
    package let subscriptionID: SubscriptionID
    /// The subscription's database; `nil` in rows that an earlier version wrote.
    package let database: DatabaseScope?
    /// The device.
    package let deviceID: DeviceID

    /// Creates the line that `delivery` belongs to.
    package init(_ delivery: Delivery) {
        container = delivery.container
        owner = delivery.owner
        subscriptionID = delivery.subscriptionID
        database = delivery.database
        deviceID = delivery.deviceID
    }
}

/// A push that a throttle let through and that takes one of its places.
package struct ThrottlePlace: Sendable, Hashable {
    /// The subscription and the device.
    package let line: ThrottledLine
    /// The delivery that was pushed.
    package let deliveryID: DeliveryID
    /// When the push was let through.
    package var takenAt: Timestamp
    /// When the place stops counting, by the throttle's period at the time of the push.
    package var endsAt: Timestamp

    /// Creates the place that `deliveryID` took.
    package init(
        _ line: ThrottledLine, _ deliveryID: DeliveryID, takenAt: Timestamp, endsAt: Timestamp
    ) {
        self.line = line
        self.deliveryID = deliveryID
        self.takenAt = takenAt
        self.endsAt = endsAt
    }
}

/// What the store knows of one line.
package struct ThrottlePast: Sendable, Hashable {
    /// The subscription and the device.
    package let line: ThrottledLine
    /// The places that still count, earliest first.
    ///
    /// If there are more than a throttle may have, the newest of them.
    package let places: [ThrottlePlace]
    /// Whether an open digest waits for the next free place.
    package let isWaitedFor: Bool

    /// Creates the known state of `line`.
    package init(_ line: ThrottledLine, places: [ThrottlePlace], isWaitedFor: Bool) {
        self.line = line
        self.places = places
        self.isWaitedFor = isWaitedFor
    }
}
