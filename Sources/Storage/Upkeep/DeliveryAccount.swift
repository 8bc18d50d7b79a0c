package import RelayModel

/// The account of one container's deliveries: the two sides of the conservation law.
package struct DeliveryAccount: Sendable, Hashable {
    /// The container and environment.
    package var container: ContainerKey
    /// The number of deliveries that the progress or a range has passed.
    ///
    /// Each was sent or has become a row.
    package var owed: Int
    /// The number of deliveries that the gateway accepted.
    package var delivered: Int
    /// The number of pending deliveries: retries, and those counted by open digests.
    package var pending: Int
    /// The number of deliveries that were told together with others, by the delivery of one of
    /// them.
    package var folded = 0
    /// The number of deliveries not pushed because their devices were told over their connections.
    package var seen = 0
    /// The number of subscriptions in open ranges.
    ///
    /// What they owe is not computed yet, so it would stand on both sides, as owed and as pending.
    package var waitingInRanges = 0
    /// The number of kept dead letters.
    package var deadLetters: Int
    /// The number of dead letters that an operator dropped or that exceeded their retention.
    package var dropped: Int

    package init(
        container: ContainerKey, owed: Int, delivered: Int, pending: Int, folded: Int = 0,
        seen: Int = 0, waitingInRanges: Int = 0, deadLetters: Int, dropped: Int
    ) {
        self.folded = folded
        self.seen = seen
        self.container = container
        self.owed = owed
        self.delivered = delivered
        self.pending = pending
        self.waitingInRanges = waitingInRanges
        self.deadLetters = deadLetters
        self.dropped = dropped
    }

    /// The difference `owed` − (`delivered` + `pending` + `folded` + `seen` + `deadLetters` +
    /// `dropped`), which is always 0.
    ///
    /// Above 0, deliveries have been lost. Below 0, some are counted twice.
    package var difference: Int {
        owed - delivered - pending - folded - seen - deadLetters - dropped
    }
}
