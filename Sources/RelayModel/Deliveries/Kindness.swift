/// What a delivery's subscription and device ask for, so that nobody is disturbed more than they
/// want.
package struct Kindness: Sendable, Hashable {
    /// What the subscription asks for.
    package var subscription: SubscriptionKindness
    /// What the device asks for.
    package var device: DeviceKindness
    /// The version of the subscription that says so; `nil` where no later one can come.
    ///
    /// If it has ended by the time that a delivery is kept, another may say otherwise, and it is
    /// judged again.
    package var subscriptionSerial: UInt64?
    /// The same of the device.
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

    /// Whether a device that is connected, and told there, gets no push.
    package var isUnlessConnected: Bool {
        subscription.isUnlessConnected || device.isUnlessConnected
    }
}

/// Why a delivery is held back for its recipient's sake.
package enum HoldReason: String, Sendable, Hashable, CaseIterable {
    /// Its subscription is paused.
    case paused
    /// It is one of the hours in which its device is not to be disturbed.
    case quietHours
    /// Its device has had as many of the subscription's pushes as it is to have in the span.
    case throttle
    /// It is told together with what fires for some time after it.
    case digest
    /// Its device is connected, and may have been told there.
    case connected

    /// Whether all that is held for it is told together; otherwise each for itself, up to
    /// ``Limits/maximumHeldDeliveries``.
    package var isTogether: Bool {
        switch self {
        case .paused, .quietHours, .connected: false
        case .throttle, .digest: true
        }
    }

    /// The reason in words, after "held: ".
    ///
    /// They stand in rows: they stay as they are forever.
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

/// A value that most have not: those that have it keep it apart.
indirect enum Apart<Value: Sendable & Hashable>: Sendable, Hashable {
    case apart(Value)

    var value: Value {
        switch self {
        case .apart(let value): value
        }
    }
}
