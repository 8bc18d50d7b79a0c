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
