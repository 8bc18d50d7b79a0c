package import RelayModel

/// One version of a subscription.
package struct SubscriptionVersion: Sendable, Hashable {
    /// The registry's number, which ascends and is never reused.
    ///
    /// It defines the stable order of the fan-out.
    package var serial: UInt64
    /// The subscription.
    package var subscription: Subscription
    /// The log position at which the version was saved.
    ///
    /// It judges later changes.
    package var activation: LogPosition

    package init(serial: UInt64, subscription: Subscription, activation: LogPosition) {
        self.serial = serial
        self.subscription = subscription
        self.activation = activation
    }
}

/// One version of a device.
package struct DeviceVersion: Sendable, Hashable {
    /// The registry's number, which ascends and is never reused.
    ///
    /// It defines the stable order of the fan-out.
    package var serial: UInt64
    /// The device.
    package var device: Device
    /// When the token was registered, by the relay's clock.
    package var registeredAt: Timestamp
    /// The log position at which it was registered.
    package var activation: LogPosition
    /// The number that the registration set the icon's badge to, if it did.
    ///
    /// Only the log entry holds it, not the device's row.
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
