/// The wishes of a delivery's subscription and device about when a push may disturb.
package struct Kindness: Sendable, Hashable {
    /// What the subscription asks for.
    package var subscription: SubscriptionKindness
    /// What the device asks for.
    package var device: DeviceKindness
    /// The serial of the subscription's version that these wishes come from; `nil` if no later
    /// version can follow.
    ///
    /// If that version has ended by the time that the delivery is stored, a newer one may differ,
    /// and the delivery is judged again.
    package var subscriptionSerial: UInt64?
    /// The serial of the device's version, in the same way.
    package var deviceSerial: UInt64?

    package init(
        subscription: SubscriptionKindness, device: DeviceKindness, subscriptionSerial: UInt64?,
        deviceSerial: UInt64?
    ) {
        self.subscription = subscription
        self.device = device
        self.subscriptionSerial = subscriptionSerial
        self.deviceSerial = deviceSerial
    }

    /// Whether a device that is connected and told over its connection gets no push.
    package var isUnlessConnected: Bool {
        subscription.isUnlessConnected || device.isUnlessConnected
    }
}

/// Why a delivery is held back for its recipient's sake.
package enum HoldReason: String, Sendable, Hashable, CaseIterable {
    /// Its subscription is paused.
    case paused
    /// The device has quiet hours.
    case quietHours
    /// The device has already had the number of pushes that the subscription's throttle allows.
    case throttle
    /// The delivery is collected with what fires soon after it, and one push tells them together.
    case digest
    /// The device is connected, and may have been told over its connection.
    case connected

    /// Whether one push tells all deliveries that are held for this reason.
    ///
    /// Otherwise each is sent by itself, up to ``Limits/maximumHeldDeliveries``.
    package var isTogether: Bool {
        switch self {
        case .paused, .quietHours, .connected: false
        case .throttle, .digest: true
        }
    }

    /// The reason in words, which follow "held: ".
    ///
    /// Rows store these words, so they must never change.
    package var words: String {
        switch self {
        case .paused: "the subscription is paused"
        case .quietHours: "quiet hours"
        case .throttle: "enough pushes for this device in the span"
        case .digest: "it is told together with what follows"
        case .connected: "its device is connected"
        }
    }
}

/// A value in storage of its own, which saves space in a type whose instances rarely have one.
indirect enum Apart<Value: Sendable & Hashable>: Sendable, Hashable {
    case apart(Value)

    var value: Value {
        switch self {
        case .apart(let value): value
        }
    }
}
