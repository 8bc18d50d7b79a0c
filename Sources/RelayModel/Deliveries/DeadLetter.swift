/// A delivery that ended without success, kept with its reason.
package struct DeadLetter: Sendable, Hashable {
    /// The delivery.
    package var delivery: OwedDelivery
    /// The number of attempts made.
    package var attempts: UInt16
    /// The gateway's status code; 0 if there was no answer.
    package var status: UInt16
    /// Why the delivery ended.
    package var reason: String
    /// When the delivery ended.
    package var at: Timestamp

    package init(
        delivery: OwedDelivery, attempts: UInt16, status: UInt16, reason: String, at: Timestamp
    ) {
        self.delivery = delivery
        self.attempts = attempts
        self.status = status
        self.reason = reason
        self.at = at
    }
}

/// A token that the gateway reported as dead.
package struct DeadToken: Sendable, Hashable {
    /// The container and environment of the device.
    package var container: ContainerKey
    /// The token.
    package var token: DeviceToken
    /// The moment from which the token is dead, by the gateway's clock; a device registered after
    /// it stays.
    package var since: Timestamp

    package init(container: ContainerKey, token: DeviceToken, since: Timestamp) {
        self.container = container
        self.token = token
        self.since = since
    }
}
