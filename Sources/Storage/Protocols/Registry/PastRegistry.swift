package import RelayModel

/// Past changes, the versions that judged them, and the fate of what they owed, for explanations.
///
/// The registry goes back as far as the log does. Every answer is found by key or bounded.
package protocol PastRegistry: Sendable {
    /// Bytes that no other shard has.
    ///
    /// They are part of the identity of the shard's deliveries.
    var shardIdentity: UUIDBytes { get }
    /// Returns how far back the store remembers, and how far the log is settled.
    func pastSpan() async throws -> PastSpan
    /// Returns the change at a position, or `nil` if there is none of that container.
    func pastChange(
        at position: LogPosition, of container: ContainerKey
    ) async throws -> PastChange?
    /// Returns the changes that `search` finds, newest first, as far as one turn goes.
    func pastChanges(
        _ search: PastSearch, turn: @escaping TurnStart
    ) async throws -> PastChangePage
    /// Returns undecoded changes that `search` may mean, newest first, without those that fire
    /// nothing because they are stale or were set aside.
    ///
    /// The stored texts are only searched, not parsed, so the page may contain a change of another
    /// record. A page also ends at ``RelayModel/Limits/maximumPageBytes`` and with the turn.
    func loggedChanges(
        _ search: PastSearch, turn: @escaping TurnStart
    ) async throws -> LoggedChangePage
    /// Returns the moments at which these log entries were appended, for those that the log still
    /// has.
    func moments(of positions: [LogPosition]) async throws -> [LogPosition: Timestamp]
    /// Returns the positions of the changes that were appended under the sender's ID of a delivery,
    /// as long as the ID is remembered at `now`, at most `limit`.
    func appendedChanges(
        ofDelivery id: String, from source: SourceName, in container: ContainerKey,
        at now: Timestamp, limit: Int
    ) async throws -> [RememberedChange]
    /// Returns the position of a record's last change, if the relay still remembers the record.
    func lastChange(
        of record: RecordID, _ type: RecordType, in owner: SubscriptionOwner
    ) async throws -> LogPosition?

    /// Returns the versions of the subscription with this ID, newest first, at most `limit` and
    /// about two pages of bytes.
    func pastSubscriptions(
        _ id: SubscriptionID, of owner: SubscriptionOwner, limit: Int
    ) async throws -> [PastSubscription]
    /// Returns the version with this serial.
    func pastSubscription(
        _ serial: UInt64, of container: ContainerKey
    ) async throws -> PastSubscription?
    /// Returns an owner's versions that judge a change at `position`, by ascending serial, at most
    /// `limit` and about two pages of bytes.
    func subscriptions(
        of owner: SubscriptionOwner, judging position: LogPosition, limit: Int
    ) async throws -> [PastSubscription]
    /// Returns versions of a user's devices, oldest first.
    func pastDevices(
        of user: UserID, in container: ContainerKey, _ choice: PastDeviceChoice
    ) async throws -> [PastDevice]
    /// Returns how the device version with this serial ended at `position`, or `nil` if that is not
    /// kept.
    func ending(
        ofDevice serial: UInt64, at position: LogPosition
    ) async throws -> DeviceEnding?

    /// Returns the state of a delivery in the queue of a web courier, or `nil` if the queue no
    /// longer has it.
    func courierFate(of id: DeliveryID) async throws -> CourierFate?
    /// Returns when a notification was put into an inbox and read, or `nil` if the inbox does not
    /// have it.
    func inboxFate(
        of position: LogPosition, _ subscriptionSerial: UInt64, _ owner: InboxOwner
    ) async throws -> InboxFate?
    /// Returns whether a part of what the change at `position` owes is still in a range.
    func isInRanges(_ position: LogPosition) async throws -> Bool
}

/// How far back a store remembers.
package struct PastSpan: Sendable, Hashable {
    /// The first entry that the log still has, or a position beyond ``head`` if it has none.
    package var first: LogPosition
    /// The last entry of the log.
    package var head: LogPosition
    /// How far the log is settled.
    package var settled: LogPosition
    /// The position up to which ended versions are deleted: none that had ended by it is kept.
    package var endedFrom: LogPosition
    /// The first change whose receipts are certainly kept.
    package var receiptsFrom: LogPosition

    package init(
        first: LogPosition, head: LogPosition, settled: LogPosition, endedFrom: LogPosition,
        receiptsFrom: LogPosition
    ) {
        self.first = first
        self.head = head
        self.settled = settled
        self.endedFrom = endedFrom
        self.receiptsFrom = receiptsFrom
    }
}

/// A change of the log with what is needed to judge it again.
package struct PastChange: Sendable, Hashable {
    /// The position of the change.
    package var position: LogPosition
    /// The container of the change.
    package var container: ContainerKey
    /// When it was appended.
    package var appendedAt: Timestamp
    /// The source that sent the change.
    package var source: SourceName
    /// Whether the change was stale: a newer version of its record had been applied before it.
    package var isStale: Bool
    /// The change; `nil` if it cannot be read.
    package var change: RecordChange?
    /// The reason why the change was set aside and fires nothing; `nil` if it was not.
    package var setAside: String?

    package init(
        position: LogPosition, container: ContainerKey, appendedAt: Timestamp,
        source: SourceName, isStale: Bool, change: RecordChange?, setAside: String? = nil
    ) {
        self.position = position
        self.container = container
        self.appendedAt = appendedAt
        self.source = source
        self.isStale = isStale
        self.change = change
        self.setAside = setAside
    }
}

/// Changes of the log, with the position down to which the log was searched.
package struct PastChangePage: Sendable, Hashable {
    /// The changes, the newest first.
    package var changes: [PastChange]
    /// The size of each change's stored text in bytes.
    package var sizes: [Int] = []
    /// The lowest position that was searched.
    ///
    /// The search continues before it.
    package var before: LogPosition

    package init(changes: [PastChange], before: LogPosition) {
        self.changes = changes
        self.before = before
    }
}

/// A change that the relay remembers by the sender's ID of its delivery, so that a repetition is
/// recognised as a duplicate.
package struct RememberedChange: Sendable, Hashable {
    /// The position of the change.
    package var position: LogPosition
    /// The moment up to which the relay remembers it.
    package var until: Timestamp

    package init(position: LogPosition, until: Timestamp) {
        self.position = position
        self.until = until
    }
}

/// A change as the log stores it.
package struct LoggedPastChange: Sendable, Hashable {
    /// The position of the change.
    package var position: LogPosition
    /// When it was appended.
    package var appendedAt: Timestamp
    /// The source that sent the change.
    package var source: SourceName
    /// The change.
    package var change: LoggedChange
    /// Whether the change may restrict its readers.
    ///
    /// A change without readers is for everybody.
    package var mayNameReaders: Bool
    /// Whether the change may name the device or user that made it.
    package var mayNameOrigin: Bool

    package init(
        position: LogPosition, appendedAt: Timestamp, source: SourceName, change: LoggedChange,
        mayNameReaders: Bool = true, mayNameOrigin: Bool = true
    ) {
        self.position = position
        self.appendedAt = appendedAt
        self.source = source
        self.change = change
        self.mayNameReaders = mayNameReaders
        self.mayNameOrigin = mayNameOrigin
    }
}

/// Undecoded changes of the log, with the position down to which the log was searched.
package struct LoggedChangePage: Sendable, Hashable {
    /// The changes, the newest first.
    package var changes: [LoggedPastChange]
    /// The lowest position that was searched.
    ///
    /// The search continues before it.
    package var before: LogPosition

    package init(changes: [LoggedPastChange], before: LogPosition) {
        self.changes = changes
        self.before = before
    }
}

/// A search for changes of a container, from the newest back.
package struct PastSearch: Sendable, Hashable {
    /// The container.
    package var container: ContainerKey
    /// The position before which the search begins.
    package var before: LogPosition
    /// The maximum number of log entries to look at, of any container.
    package var entries: Int
    /// The maximum number of changes to return.
    package var limit: Int
    /// Only changes of this record type.
    package var recordType: RecordType?
    /// Only changes of records of this name.
    package var recordName: RecordName?

    package init(
        of container: ContainerKey, before: LogPosition, entries: Int, limit: Int,
        recordType: RecordType? = nil, recordName: RecordName? = nil
    ) {
        self.container = container
        self.before = before
        self.entries = entries
        self.limit = limit
        self.recordType = recordType
        self.recordName = recordName
    }
}

/// A version of a subscription with its end.
package struct PastSubscription: Sendable, Hashable {
    /// The version.
    package var version: SubscriptionVersion
    /// The position of the entry that ended it; `nil` while it is active.
    package var ended: LogPosition?
    /// The change for which the once subscription was claimed; `nil` otherwise.
    package var claimed: LogPosition?

    package init(
        version: SubscriptionVersion, ended: LogPosition? = nil, claimed: LogPosition? = nil
    ) {
        self.version = version
        self.ended = ended
        self.claimed = claimed
    }

    /// Returns whether the version judges a change at `position`.
    package func judges(_ position: LogPosition) -> Bool {
        version.activation < position && (ended.map { $0 >= position } ?? true)
    }
}

/// A version of a device with its end and without its token.
package struct PastDevice: Sendable, Hashable {
    /// The serial.
    package var serial: UInt64
    /// The installation.
    package var id: DeviceID
    /// The user that it belonged to.
    package var owner: UserID
    /// The gateway that reaches it.
    package var gateway: GatewayKind
    /// Which of the gateway's environments issued its token.
    package var gatewayEnvironment: GatewayEnvironment
    /// The topic of the application, if it is not the container's first topic.
    package var topic: String?
    /// When the token was last registered.
    package var registeredAt: Timestamp
    /// The position of the entry that registered it.
    package var activation: LogPosition
    /// The position of the entry that ended it; `nil` while it is active.
    package var ended: LogPosition?

    package init(
        serial: UInt64, id: DeviceID, owner: UserID, gateway: GatewayKind,
        gatewayEnvironment: GatewayEnvironment, topic: String?, registeredAt: Timestamp,
        activation: LogPosition, ended: LogPosition?
    ) {
        self.serial = serial
        self.id = id
        self.owner = owner
        self.gateway = gateway
        self.gatewayEnvironment = gatewayEnvironment
        self.topic = topic
        self.registeredAt = registeredAt
        self.activation = activation
        self.ended = ended
    }

    /// Returns whether the device is notified of a change at `position`.
    package func hears(_ position: LogPosition) -> Bool {
        activation < position && (ended.map { $0 >= position } ?? true)
    }
}

/// The selection of a user's device versions.
package enum PastDeviceChoice: Sendable, Hashable {
    /// The versions that are notified of a change at this position.
    case hearing(LogPosition)
    /// The last `limit` versions that ended before this position.
    case endedBefore(LogPosition, limit: Int)
    /// The last `limit` versions with this ID.
    case named(DeviceID, limit: Int)
}

/// How a version of a device ended.
package struct DeviceEnding: Sendable, Hashable {
    /// The cause of the end.
    package enum Cause: Sendable, Hashable {
        /// The user registered the same device again.
        case renewed
        /// The token was registered for another user or as another device.
        case takenOver
        /// The gateway declared the token dead.
        case declaredDead(DeliveryReceipt)
        /// The device was signed out or forgotten, or its courier was not polled for long.
        case signedOut
    }

    /// The moment of the end.
    package var at: Timestamp
    /// The cause of the end.
    package var cause: Cause

    package init(at: Timestamp, cause: Cause) {
        self.at = at
        self.cause = cause
    }
}

/// The state of a delivery in the queue of a web courier.
package enum CourierFate: Sendable, Hashable {
    /// It waits to be fetched until this moment.
    case waits(until: Timestamp)
    /// It expired at this moment.
    case expired(Timestamp)
    /// It was fetched at this moment, or a newer notification replaced it.
    case taken(Timestamp)
}

/// The state of a notification in an inbox.
package struct InboxFate: Sendable, Hashable {
    /// When it was kept.
    package var keptAt: Timestamp
    /// When it was marked read, if it was.
    package var readAt: Timestamp?

    package init(keptAt: Timestamp, readAt: Timestamp?) {
        self.keptAt = keptAt
        self.readAt = readAt
    }
}
