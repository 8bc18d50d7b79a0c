/// A delivery that is to be tried again.
package struct Retry: Sendable, Hashable {
    /// The delivery; its identity stays.
    package var delivery: OwedDelivery
    /// The attempts made so far.
    package var attempts: UInt16
    /// When it falls due.
    package var dueAt: Timestamp
    /// The moment at which that was decided: if the clock is before it, the clock was set back
    /// since; `nil` if that is not known.
    package var decidedAt: Timestamp?
    /// The versions whose settings hold it back, if any do.
    package var judgedBy: JudgedVersions?
    /// Why it waits.
    package var reason: WaitReason

    package init(
        delivery: OwedDelivery, attempts: UInt16, dueAt: Timestamp, reason: WaitReason
    ) {
        self.delivery = delivery
        self.attempts = attempts
        self.dueAt = dueAt
        self.reason = reason
    }
}

/// The versions whose settings decided that a delivery is held back; `nil` where no later version
/// can come.
package struct JudgedVersions: Sendable, Hashable {
    /// The subscription's.
    package var subscription: UInt64?
    /// The device's.
    package var device: UInt64?

    package init(subscription: UInt64?, device: UInt64?) {
        self.subscription = subscription
        self.device = device
    }

    /// Those of `kindness`.
    package init(_ kindness: Kindness) {
        self.init(
            subscription: kindness.subscriptionSerial, device: kindness.deviceSerial)
    }
}
