package import RelayModel

/// What has become of the deliveries of one container: the two sides of the conservation law.
package struct DeliveryAccount: Sendable, Hashable {
    /// The container and environment.
    package var container: ContainerKey
    /// Deliveries that the progress or a range has passed: each was sent, or has become a row.
    package var owed: Int
    /// Deliveries that the gateway accepted.
    package var delivered: Int
    /// What waits to be tried again: rows, and what digests count.
    package var pending: Int
    /// Deliveries that were told together with others, by the delivery of one of them.
    package var folded = 0
    /// Deliveries that were not pushed, because their devices were told over their connections.
    package var seen = 0
    /// Subscriptions in open ranges: what these owe is not computed yet, so that it stands on both
    /// sides, owed and pending.
    package var waitingInRanges = 0
    /// Dead letters that are kept.
    package var deadLetters: Int
    /// Dead letters that an operator dropped or that outlived their retention.
    package var dropped: Int

    /// Collects the two sides.
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

    /// `owed` − (`delivered` + `pending` + `folded` + `seen` + `deadLetters` + `dropped`): it is
    /// always 0.
    ///
    /// Above 0, deliveries have vanished; below, some are counted twice.
    package var difference: Int {
        owed - delivered - pending - folded - seen - deadLetters - dropped
    }
}
