package import RelayModel

/// One version of a subscription.
package struct SubscriptionVersion: Sendable, Hashable {
    /// The registry's number, ascending, never used twice: the stable order of fan-out.
    package var serial: UInt64
    /// The subscription.
    package var subscription: Subscription
    /// The log position at which it was saved; later changes are judged.
    package var activation: LogPosition

    package init(serial: UInt64, subscription: Subscription, activation: LogPosition) {
        self.serial = serial
        self.subscription = subscription
        self.activation = activation
    }
}

/// One version of a device.
package struct DeviceVersion: Sendable, Hashable {
    /// The registry's number, ascending, never used twice: the stable order of fan-out.
    package var serial: UInt64
    /// The device.
    package var device: Device
    /// When the token was registered, by the relay's clock.
    package var registeredAt: Timestamp
    /// The log position at which it was registered.
    package var activation: LogPosition
    /// What the registration set the number on its icon to, if it did: the log's entry knows it,
    /// and no row.
    package var badge: Int64?

    package init(
        serial: UInt64, device: Device, registeredAt: Timestamp, activation: LogPosition
    ) {
        self.serial = serial
        self.device = device
        self.registeredAt = registeredAt
        self.activation = activation
    }
}
