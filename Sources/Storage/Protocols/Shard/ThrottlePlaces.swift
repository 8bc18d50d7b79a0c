package import RelayModel

/// What one subscription pushes to one device, as its throttle counts it.
package struct ThrottledLine: Sendable, Hashable {
    /// The container and environment.
    package let container: ContainerKey
    /// Whose subscription and device they are.
    package let owner: UserID
    /// The subscription.
    package let subscriptionID: SubscriptionID
    /// The subscription's database; `nil` in what an earlier version kept.
    package let database: DatabaseScope?
    /// The device.
    package let deviceID: DeviceID

    /// The line of `delivery`.
    package init(_ delivery: Delivery) {
        container = delivery.container
        owner = delivery.owner
        subscriptionID = delivery.subscriptionID
        database = delivery.database
        deviceID = delivery.deviceID
    }
}

/// A push that was let go, and takes one of the places that its subscription's throttle has.
package struct ThrottlePlace: Sendable, Hashable {
    /// The subscription and the device.
    package let line: ThrottledLine
    /// The delivery that was pushed.
    package let deliveryID: DeliveryID
    /// When it went.
    package var takenAt: Timestamp
    /// When it stops counting, by the span that was asked for then.
    package var endsAt: Timestamp

    /// The place that `deliveryID` took.
    package init(
        _ line: ThrottledLine, _ deliveryID: DeliveryID, takenAt: Timestamp, endsAt: Timestamp
    ) {
        self.line = line
        self.deliveryID = deliveryID
        self.takenAt = takenAt
        self.endsAt = endsAt
    }
}

/// What is durable of one line.
package struct ThrottlePast: Sendable, Hashable {
    /// The subscription and the device.
    package let line: ThrottledLine
    /// The places that count still, the earliest first; the newest, if there are more than a
    /// throttle may have.
    package let places: [ThrottlePlace]
    /// Whether a digest is open, which takes the first place that is free.
    package let isWaitedFor: Bool

    /// What is known of `line`.
    package init(_ line: ThrottledLine, places: [ThrottlePlace], isWaitedFor: Bool) {
        self.line = line
        self.places = places
        self.isWaitedFor = isWaitedFor
    }
}
