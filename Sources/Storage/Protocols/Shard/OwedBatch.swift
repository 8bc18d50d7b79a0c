package import RelayModel

/// What the follower hands over: deliveries in the order of the log, and how far it has got.
///
/// It is the only thing that Fanout and Delivery share; they meet in the composition root.
package struct OwedBatch: Sendable, Hashable {
    /// The deliveries, by ascending ordinal.
    package var deliveries: [OwedDelivery]
    /// Every delivery of every entry up to here has been handed over, with this batch at the
    /// latest; `nil` if the batch ends within the fan-out of an entry.
    package var finished: LogPosition?
    /// What the same changes owe to inboxes, by ascending position.
    package var inbox: [InboxEntry]
    /// What the entry `finished` owes by more subscriptions than are worked at once: to be written
    /// when the progress passes it.
    package var ranges: [NewRange]
    /// What the entries up to `finished` did to subscriptions, by ascending position: all of it,
    /// except what ranges do.
    package var firings: [FiringNote]

    package init(
        deliveries: [OwedDelivery], finished: LogPosition?, inbox: [InboxEntry] = [],
        ranges: [NewRange] = [], firings: [FiringNote] = []
    ) {
        self.firings = firings
        self.ranges = ranges
        self.deliveries = deliveries
        self.finished = finished
        self.inbox = inbox
    }
}
