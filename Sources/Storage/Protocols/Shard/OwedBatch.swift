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
    /// What entries up to `finished` set the numbers on icons to, before anything that comes after
    /// this batch.
    package var badges: [BadgeHolder: Int64]
    /// Whether the entry `finished` is judged beside the log still: the progress does not pass it
    /// before a later batch has it in ``madeUp``.
    package var putsOff: Bool
    /// A change of an earlier batch that was put off, now that it is judged, with all that it owes.
    package var madeUp: MadeUpChange?
    /// The containers of which entries up to `finished` are put off, each with the first of them.
    package var behind: [ContainerKey: LogPosition]

    package init(
        deliveries: [OwedDelivery], finished: LogPosition?, inbox: [InboxEntry] = [],
        ranges: [NewRange] = [], firings: [FiringNote] = [],
        badges: [BadgeHolder: Int64] = [:], putsOff: Bool = false,
        madeUp: MadeUpChange? = nil, behind: [ContainerKey: LogPosition] = [:]
    ) {
        self.badges = badges
        self.putsOff = putsOff
        self.madeUp = madeUp
        self.behind = behind
        self.firings = firings
        self.ranges = ranges
        self.deliveries = deliveries
        self.finished = finished
        self.inbox = inbox
    }
}

/// A change that was judged beside the log, after what follows it: all that it owes is ranges.
package struct MadeUpChange: Sendable, Hashable {
    /// Its place.
    package let position: LogPosition
    /// What it owes, to be written when the progress passes it.
    package let ranges: [NewRange]
    /// What edits that waited for it set the numbers on icons to: their places were handed over
    /// before they were worked.
    package var badges: [BadgeHolder: Int64]

    /// Says what a change owes.
    package init(
        position: LogPosition, ranges: [NewRange], badges: [BadgeHolder: Int64] = [:]
    ) {
        self.position = position
        self.ranges = ranges
        self.badges = badges
    }
}
