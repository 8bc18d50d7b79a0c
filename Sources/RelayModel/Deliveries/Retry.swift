/// A delivery that is to be tried again.
package struct Retry: Sendable, Hashable {
    /// The delivery, which keeps its ID.
    package var delivery: OwedDelivery
    /// The attempts made so far.
    package var attempts: UInt16
    /// When the retry falls due.
    package var dueAt: Timestamp
    /// When `dueAt` was decided; `nil` if unknown.
    ///
    /// If the clock is before this moment, it has been set back since.
    package var decidedAt: Timestamp?
    /// The versions whose settings hold the delivery back, if any do.
    package var judgedBy: JudgedVersions?
    /// Why the delivery waits.
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

/// The serials of the versions whose settings decided that a delivery is held back; `nil` if no
/// later version can follow.
package struct JudgedVersions: Sendable, Hashable {
    /// The serial of the subscription's version.
    package var subscription: UInt64?
    /// The serial of the device's version.
    package var device: UInt64?

    package init(subscription: UInt64?, device: UInt64?) {
        self.subscription = subscription
        self.device = device
    }

    /// Creates the versions that `kindness` was read from.
    package init(_ kindness: Kindness) {
        self.init(
            subscription: kindness.subscriptionSerial, device: kindness.deviceSerial)
    }
}
