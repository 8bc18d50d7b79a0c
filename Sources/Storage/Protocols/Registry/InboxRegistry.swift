package import RelayModel

/// Users' stored notifications, so that a user whose push is lost still finds the notification.
///
/// ``ShardProgress/settle(_:)`` writes them in the step that moves the progress past the change. An
/// inbox is a feed: each notification has a number, and marking it as read gives it the next
/// number. A client that continues from a number sees new notifications and those read on other
/// devices.
package protocol InboxRegistry: Sendable {
    /// Returns the notifications of one user with numbers beyond the request's, in order.
    func notifications(_ request: InboxRequest) async throws -> InboxReading
    /// Marks notifications of one user as read.
    ///
    /// Those that are already read stay unchanged.
    ///
    /// - Returns: Those of `ids` that the inbox contains.
    func markNotificationsRead(
        _ ids: [UUIDBytes], of owner: InboxOwner, at now: Timestamp
    ) async throws -> Set<UUIDBytes>
    /// Returns a stream that yields after a write into a user's inbox, or after its container was
    /// saved as one that keeps no inboxes.
    ///
    /// It ends when its reader ends.
    ///
    /// Several writes between two reads yield one element. A reader that reads the inbox after it
    /// called this function misses nothing.
    func inboxNews(of owner: InboxOwner) -> AsyncStream<Void>
    /// Deletes notifications that have not changed since `limit` from about `count` inboxes, and
    /// returns their number.
    func pruneInboxes(unchangedSince limit: Timestamp, count: Int) async throws -> Int
}

/// The user whose inbox it is.
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

/// A notification that is to be written to an inbox.
package struct InboxEntry: Sendable, Hashable {
    /// The owner of the inbox.
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
    /// The unpruned payload as JSON text.
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

/// A request for a part of an inbox.
package struct InboxRequest: Sendable, Hashable {
    /// The owner of the inbox.
    package var owner: InboxOwner
    /// Only notifications of subscriptions in this database; `nil` means all.
    package var database: DatabaseScope?
    /// The number after which the answer begins; 0 begins with the oldest that is kept.
    package var after: UInt64
    /// The maximum number of notifications returned.
    package var limit: Int
    /// The requesting device, which does not see its own changes.
    package var device: DeviceID?

    /// Creates a request.
    ///
    /// The defaults ask for everything that is kept.
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

/// The answer of an inbox.
package enum InboxReading: Sendable, Hashable {
    /// A page of notifications.
    ///
    /// `next` is the number to continue from, and `isComplete` says that there are no more now.
    case page([StoredNotification], next: UInt64, isComplete: Bool)
    /// Notifications after the requested number were deleted, or the number does not belong to this
    /// inbox.
    case expired
}

/// A notification as the inbox stores it.
package struct StoredNotification: Sendable, Hashable {
    /// The number in the feed.
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
