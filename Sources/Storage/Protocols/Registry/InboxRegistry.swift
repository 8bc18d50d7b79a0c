package import RelayModel

/// Users' stored notifications: a missed push is never a lost fact.
///
/// They are written by ``ShardProgress/settle(_:)``, in the step that moves the progress over the
/// change. A user's inbox is a feed: each notification has a number, and marking one read gives it
/// the next, so that whoever reads on from a number sees what is new and what was read elsewhere.
package protocol InboxRegistry: Sendable {
    /// The notifications of one user with numbers beyond the request's, in order.
    func notifications(_ request: InboxRequest) async throws -> InboxReading
    /// Marks notifications of one user as read; those that are read already stay as they are.
    ///
    /// - Returns: Those of `ids` that the inbox has.
    func markNotificationsRead(
        _ ids: [UUIDBytes], of owner: InboxOwner, at now: Timestamp
    ) async throws -> Set<UUIDBytes>
    /// Yields after something was written into a user's inbox, or its container was saved as one
    /// that keeps none, until it is read no more.
    ///
    /// What is written while nobody reads is said once. Whoever reads the inbox after asking for
    /// this misses nothing.
    func inboxNews(of owner: InboxOwner) -> AsyncStream<Void>
    /// Drops notifications of which nothing became since `limit`, in the inboxes of about `count`
    /// of them; returns how many.
    func pruneInboxes(unchangedSince limit: Timestamp, count: Int) async throws -> Int
}

/// Whose inbox.
package struct InboxOwner: Sendable, Hashable {
    /// The container and environment.
    package var container: ContainerKey
    /// The user.
    package var user: UserID

    package init(container: ContainerKey, user: UserID) {
        self.container = container
        self.user = user
    }
}

/// One notification on its way into an inbox.
package struct InboxEntry: Sendable, Hashable {
    /// Whose it is.
    package var owner: InboxOwner
    /// The change.
    package var position: LogPosition
    /// The serial of the subscription's version.
    package var subscriptionSerial: UInt64
    /// The subscription that the change fired.
    package var subscriptionID: SubscriptionID
    /// The subscription's database.
    package var database: DatabaseScope
    /// The `nid`.
    package var notificationID: UUIDBytes
    /// The device that made the change and is not notified of it.
    package var originDevice: DeviceID?
    /// The payload as JSON text, with nothing left out.
    package var payload: [UInt8]
    /// When the change was appended.
    package var at: Timestamp

    package init(
        owner: InboxOwner, position: LogPosition, subscriptionSerial: UInt64,
        subscriptionID: SubscriptionID, database: DatabaseScope, notificationID: UUIDBytes,
        originDevice: DeviceID?, payload: [UInt8], at: Timestamp
    ) {
        self.owner = owner
        self.position = position
        self.subscriptionSerial = subscriptionSerial
        self.subscriptionID = subscriptionID
        self.database = database
        self.notificationID = notificationID
        self.originDevice = originDevice
        self.payload = payload
        self.at = at
    }
}

/// What somebody wants to see of an inbox.
package struct InboxRequest: Sendable, Hashable {
    /// Whose.
    package var owner: InboxOwner
    /// Only notifications of subscriptions in this database; `nil` means all.
    package var database: DatabaseScope?
    /// The number after which it begins; 0 begins with the oldest that is kept.
    package var after: UInt64
    /// The most that are returned.
    package var limit: Int
    /// The device that asks: it is not told of its own changes.
    package var device: DeviceID?

    /// Creates a request for everything that is kept.
    package init(
        owner: InboxOwner, database: DatabaseScope? = nil, after: UInt64 = 0, limit: Int,
        device: DeviceID? = nil
    ) {
        self.owner = owner
        self.database = database
        self.after = after
        self.limit = limit
        self.device = device
    }
}

/// What an inbox answers.
package enum InboxReading: Sendable, Hashable {
    /// Notifications; `next` is the number to go on from, and `isComplete` says that there are no
    /// more now.
    case page([StoredNotification], next: UInt64, isComplete: Bool)
    /// What came after that number was dropped since, or it is none of this inbox.
    case expired
}

/// A notification as the inbox keeps it.
package struct StoredNotification: Sendable, Hashable {
    /// Its number in the feed.
    package var sequence: UInt64
    /// The change.
    package var position: LogPosition
    /// The `nid`.
    package var notificationID: UUIDBytes
    /// The subscription.
    package var subscriptionID: SubscriptionID
    /// The subscription's database.
    package var database: DatabaseScope
    /// The payload as JSON text.
    package var payload: [UInt8]
    /// When the change was appended.
    package var createdAt: Timestamp
    /// When it was marked read, if it was.
    package var readAt: Timestamp?

    /// Creates a notification as it is kept.
    package init(
        sequence: UInt64, position: LogPosition, notificationID: UUIDBytes,
        subscriptionID: SubscriptionID, database: DatabaseScope, payload: [UInt8],
        createdAt: Timestamp, readAt: Timestamp?
    ) {
        self.sequence = sequence
        self.position = position
        self.notificationID = notificationID
        self.subscriptionID = subscriptionID
        self.database = database
        self.payload = payload
        self.createdAt = createdAt
        self.readAt = readAt
    }
}
