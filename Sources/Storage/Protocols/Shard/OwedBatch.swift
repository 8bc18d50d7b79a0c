package import RelayModel

/// What the follower hands over: deliveries in the order of the log, and the position that it has
/// reached.
///
/// It is the only type that Fanout and Delivery share. They meet in the composition root.
package struct OwedBatch: Sendable, Hashable {
    /// The deliveries, by ascending ordinal.
    package var deliveries: [OwedDelivery]
    /// The position up to which all deliveries are handed over, including this batch; `nil` if the
    /// batch ends within the fan-out of an entry.
    package var finished: LogPosition?
    /// The notifications that the same changes owe to inboxes, by ascending position.
    package var inbox: [InboxEntry]
    /// The ranges of the entry `finished`, for subscriptions beyond the number worked at once.
    ///
    /// They are written when the progress passes the entry.
    package var ranges: [NewRange]
    /// What the entries up to `finished` did to subscriptions, by ascending position, except for
    /// what ranges do.
    package var firings: [FiringNote]
    /// The badges that entries up to `finished` set.
    ///
    /// They apply before anything after this batch.
    package var badges: [BadgeHolder: Int64]
    /// Whether the entry `finished` is still judged beside the log.
    ///
    /// The progress does not pass it before a later batch has it in ``madeUp``.
    package var putsOff: Bool
    /// A change that an earlier batch put off and that is judged now, with all that it owes.
    package var madeUp: MadeUpChange?
    /// The containers with entries up to `finished` that are put off, each with the first such
    /// entry.
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

/// A change that was judged beside the log, after later entries.
///
/// Everything that it owes is in ranges.
package struct MadeUpChange: Sendable, Hashable {
    /// The position of the change.
    package let position: LogPosition
    /// The ranges that it owes, written when the progress passes it.
    package let ranges: [NewRange]
    /// The badges set by edits that waited for the change.
    ///
    /// Their positions were handed over before they were worked.
    package var badges: [BadgeHolder: Int64]

    /// Creates a change with what it owes.
    package init(
        position: LogPosition, ranges: [NewRange], badges: [BadgeHolder: Int64] = [:]
    ) {
        self.position = position
        self.ranges = ranges
        self.badges = badges
    }
}
