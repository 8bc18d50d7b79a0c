package import RelayModel

/// The space that the store takes, and the space that is left.
package struct StoreFootprint: Sendable, Hashable {
    /// The size of the database file, or of the tables and indexes on a server, in bytes.
    package var fileBytes: Int
    /// The size of the write-ahead log in bytes.
    package var walBytes: Int
    /// The free space on the disk in bytes, if it is known.
    package var freeBytes: UInt64?
    /// The number of further files that the disk can hold, if that is known and limited.
    package var freeFiles: UInt64?
    /// The number of relays of the store, the owner and those that stand by; `nil` if there can be
    /// only one.
    package var nodes: Int?
    /// The settings in which other relays of the store differ from this one, one sentence each.
    package var disagreements: [String] = []
    /// The size of the tables and indexes in bytes when they were last measured; `nil` if the store
    /// is a file.
    ///
    /// Only a store on a server can have several relays.
    package var databaseBytes: Int? { nodes == nil ? nil : fileBytes }

    package init(fileBytes: Int, walBytes: Int, freeBytes: UInt64?) {
        self.fileBytes = fileBytes
        self.walBytes = walBytes
        self.freeBytes = freeBytes
    }
}

/// The owed work besides the log.
package struct Backlog: Sendable, Hashable {
    /// The number of retries.
    package var retries: Int
    /// The number of unsettled ranges of very large fan-outs.
    package var ranges: Int
    /// The subscriptions in those ranges.
    package var rangeSubscriptions: Int
    /// The number of changes of the log that could not be read, and of ranges that could not be
    /// worked.
    package var quarantined: Int
    /// The latest change that was set aside.
    package var newestSetAside: SetAsideChange?
    /// The number of changes whose record was not kept because a quota was reached, since the store
    /// was created.
    package var unkept = 0

    package init(retries: Int, ranges: Int, rangeSubscriptions: Int, quarantined: Int) {
        self.retries = retries
        self.ranges = ranges
        self.rangeSubscriptions = rangeSubscriptions
        self.quarantined = quarantined
    }
}

/// A change that was set aside and fires nothing, or of which a range was set aside, so that it
/// fires only in part.
package struct SetAsideChange: Sendable, Hashable {
    /// The container of the change.
    package let container: ContainerKey
    /// The position of the change.
    package let position: LogPosition
    /// The reason, without any of the change's content.
    package let reason: String

    /// Creates a description of the change.
    package init(container: ContainerKey, position: LogPosition, reason: String) {
        self.container = container
        self.position = position
        self.reason = reason
    }
}

/// The owed work of one container besides the log.
package struct ContainerBacklog: Sendable, Hashable {
    /// The container.
    package var container: ContainerKey
    /// The number of retries.
    package var retries: Int
    /// The number of subscriptions in unsettled ranges.
    package var rangeSubscriptions: Int

    package init(container: ContainerKey, retries: Int, rangeSubscriptions: Int) {
        self.container = container
        self.retries = retries
        self.rangeSubscriptions = rangeSubscriptions
    }
}
