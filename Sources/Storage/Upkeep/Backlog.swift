package import RelayModel

/// How much room the store takes, and how much there is.
package struct StoreFootprint: Sendable, Hashable {
    /// The size of the database file in bytes.
    package var fileBytes: Int
    /// The size of the write-ahead log in bytes.
    package var walBytes: Int
    /// The room on the disk in bytes, as far as it is known.
    package var freeBytes: UInt64?
    /// How many more files the disk holds, as far as that is known and bounded.
    package var freeFiles: UInt64?
    /// How many relays there are, the owner and who stands by; `nil` where there can be one only.
    package var nodes: Int?
    /// What other relays of the store have set otherwise than this one, a sentence for each.
    package var disagreements: [String] = []

    /// Collects sizes.
    package init(fileBytes: Int, walBytes: Int, freeBytes: UInt64?) {
        self.fileBytes = fileBytes
        self.walBytes = walBytes
        self.freeBytes = freeBytes
    }
}

/// What is owed besides the log.
package struct Backlog: Sendable, Hashable {
    /// Deliveries that wait to be tried again.
    package var retries: Int
    /// Ranges of huge fan-outs that are not settled, and the subscriptions in them.
    package var ranges: Int
    /// The subscriptions in those ranges.
    package var rangeSubscriptions: Int
    /// Changes of the log that could not be read, and ranges that could not be worked.
    package var quarantined: Int
    /// The one of these that came last.
    package var newestSetAside: SetAsideChange?
    /// Changes whose record was not kept, because a quota was reached; since the store was made.
    package var unkept = 0

    /// Collects counts.
    package init(retries: Int, ranges: Int, rangeSubscriptions: Int, quarantined: Int) {
        self.retries = retries
        self.ranges = ranges
        self.rangeSubscriptions = rangeSubscriptions
        self.quarantined = quarantined
    }
}

/// A change of the log that was set aside, or whose range was: it fires nothing, or not all.
package struct SetAsideChange: Sendable, Hashable {
    /// Whose change it is.
    package let container: ContainerKey
    /// Its place in the log.
    package let position: LogPosition
    /// Why; nothing of what it holds.
    package let reason: String

    /// Collects what is known of it.
    package init(container: ContainerKey, position: LogPosition, reason: String) {
        self.container = container
        self.position = position
        self.reason = reason
    }
}

/// What one container owes besides the log.
package struct ContainerBacklog: Sendable, Hashable {
    /// The container.
    package var container: ContainerKey
    /// Deliveries that wait to be tried again.
    package var retries: Int
    /// The subscriptions in ranges of huge fan-outs that are not settled.
    package var rangeSubscriptions: Int

    /// Collects counts.
    package init(container: ContainerKey, retries: Int, rangeSubscriptions: Int) {
        self.container = container
        self.retries = retries
        self.rangeSubscriptions = rangeSubscriptions
    }
}
