package import RelayModel

/// What was, for whoever asks why something fired or did not: changes of the log, what was active
/// when they were judged, and what became of what they owed.
///
/// It goes back as far as the log does, and every answer is found by key or bounded.
package protocol PastRegistry: Sendable {
    /// Bytes that no other shard has: part of the identity of its deliveries.
    var shardIdentity: UUIDBytes { get }
    /// How far back it goes, and how far the log is settled.
    func pastSpan() async throws -> PastSpan
    /// The change at a position; `nil` if there is none of that container.
    func pastChange(
        at position: LogPosition, of container: ContainerKey
    ) async throws -> PastChange?
    /// The changes that `search` finds, the newest first, as far as one turn goes.
    func pastChanges(
        _ search: PastSearch, turn: @escaping TurnStart
    ) async throws -> PastChangePage
    /// Changes that `search` may mean, the newest first and unread; of those that fire nothing
    /// because they came too late or were set aside, none.
    ///
    /// Their texts are looked at and not read, so that one may be of another record than asked for.
    /// A page ends at ``RelayModel/Limits/maximumPageBytes`` too, and with the turn.
    func loggedChanges(
        _ search: PastSearch, turn: @escaping TurnStart
    ) async throws -> LoggedChangePage
    /// When entries of the log were appended, of those that it still has.
    func moments(of positions: [LogPosition]) async throws -> [LogPosition: Timestamp]
    /// The changes that were appended under the sender's ID of a delivery, as long as it is
    /// remembered at `now`, by their positions, at most `limit`.
    func appendedChanges(
        ofDelivery id: String, from source: SourceName, in container: ContainerKey,
        at now: Timestamp, limit: Int
    ) async throws -> [RememberedChange]
    /// Where the last change of a record stands, as far as the relay remembers the record.
    func lastChange(
        of record: RecordID, _ type: RecordType, in owner: SubscriptionOwner
    ) async throws -> LogPosition?

    /// The versions of the subscription with this ID, the newest first, at most `limit`, and about
    /// two pages of bytes.
    func pastSubscriptions(
        _ id: SubscriptionID, of owner: SubscriptionOwner, limit: Int
    ) async throws -> [PastSubscription]
    /// The version with this serial.
    func pastSubscription(
        _ serial: UInt64, of container: ContainerKey
    ) async throws -> PastSubscription?
    /// An owner's versions by which a change at `position` is judged, by ascending serial, at most
    /// `limit`, and about two pages of bytes.
    func subscriptions(
        of owner: SubscriptionOwner, judging position: LogPosition, limit: Int
    ) async throws -> [PastSubscription]
    /// Versions of a user's devices, the oldest first.
    func pastDevices(
        of user: UserID, in container: ContainerKey, _ choice: PastDeviceChoice
    ) async throws -> [PastDevice]
    /// How the version of a device with this serial ended at `position`; `nil` if that is not kept.
    func ending(
        ofDevice serial: UInt64, at position: LogPosition
    ) async throws -> DeviceEnding?

    /// What became of a delivery in the queue of a web courier; `nil` if the queue has it no more.
    func courierFate(of id: DeliveryID) async throws -> CourierFate?
    /// When a notification of an inbox was kept, and read; `nil` if the inbox does not have it.
    func inboxFate(
        of position: LogPosition, _ subscriptionSerial: UInt64, _ owner: InboxOwner
    ) async throws -> InboxFate?
    /// Whether a part of what the change at `position` owes is still to be worked.
    func isInRanges(_ position: LogPosition) async throws -> Bool
}

/// How far back a store remembers.
package struct PastSpan: Sendable, Hashable {
    /// The first entry that the log still has; beyond ``head`` if it has none.
    package var first: LogPosition
    /// The last entry of the log.
    package var head: LogPosition
    /// How far the log is settled.
    package var settled: LogPosition
    /// Nothing is kept of what had ended by this position.
    package var endedFrom: LogPosition
    /// The first change of which receipts are sure to be kept.
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

/// A change of the log as it was judged.
package struct PastChange: Sendable, Hashable {
    /// Its place.
    package var position: LogPosition
    /// Whose data it is.
    package var container: ContainerKey
    /// When it was appended.
    package var appendedAt: Timestamp
    /// Who sent it.
    package var source: SourceName
    /// Whether a newer version of its record had been applied.
    package var isStale: Bool
    /// The change; `nil` if it cannot be read.
    package var change: RecordChange?
    /// Why it was set aside, if it was: then it fires nothing.
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

/// Changes of the log, and how far back they were looked for.
package struct PastChangePage: Sendable, Hashable {
    /// The changes, the newest first.
    package var changes: [PastChange]
    /// The bytes of the stored text of each.
    package var sizes: [Int] = []
    /// Every entry from here on was looked at; where a search goes on.
    package var before: LogPosition

    package init(changes: [PastChange], before: LogPosition) {
        self.changes = changes
        self.before = before
    }
}

/// A change that is known by the sender's ID of its delivery: what comes again under it is a
/// duplicate.
package struct RememberedChange: Sendable, Hashable {
    /// Its place.
    package var position: LogPosition
    /// The moment up to which it is known.
    package var until: Timestamp

    package init(position: LogPosition, until: Timestamp) {
        self.position = position
        self.until = until
    }
}

/// A change as it lies in the log.
package struct LoggedPastChange: Sendable, Hashable {
    /// Its place.
    package var position: LogPosition
    /// When it was appended.
    package var appendedAt: Timestamp
    /// Who sent it.
    package var source: SourceName
    /// The change.
    package var change: LoggedChange
    /// Whether it may say who may read the record; what says nothing of the kind, everybody may.
    package var mayNameReaders: Bool
    /// Whether it may say on which device, or by whom, it was made.
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

/// Unread changes of the log, and how far back they were looked for.
package struct LoggedChangePage: Sendable, Hashable {
    /// The changes, the newest first.
    package var changes: [LoggedPastChange]
    /// Every entry from here on was looked at; where a search goes on.
    package var before: LogPosition

    package init(changes: [LoggedPastChange], before: LogPosition) {
        self.changes = changes
        self.before = before
    }
}

/// Which changes of a container are looked for, from the newest back.
package struct PastSearch: Sendable, Hashable {
    /// Whose data.
    package var container: ContainerKey
    /// Only what stands before here.
    package var before: LogPosition
    /// Entries of the log that are looked at, whosever they are.
    package var entries: Int
    /// Changes that are wanted.
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

/// A version of a subscription, with its end.
package struct PastSubscription: Sendable, Hashable {
    /// The version.
    package var version: SubscriptionVersion
    /// The entry that ended it; `nil` while it is active.
    package var ended: LogPosition?
    /// The change that it was claimed for, if it fires once.
    package var claimed: LogPosition?

    package init(
        version: SubscriptionVersion, ended: LogPosition? = nil, claimed: LogPosition? = nil
    ) {
        self.version = version
        self.ended = ended
        self.claimed = claimed
    }

    /// Whether a change at `position` is judged by it.
    package func judges(_ position: LogPosition) -> Bool {
        version.activation < position && (ended.map { $0 >= position } ?? true)
    }
}

/// A version of a device, with its end and without its token.
package struct PastDevice: Sendable, Hashable {
    /// The registry's number.
    package var serial: UInt64
    /// The installation.
    package var id: DeviceID
    /// Whose it was.
    package var owner: UserID
    /// The gateway that reached it.
    package var gateway: GatewayKind
    /// Which of the gateway's environments issued its token.
    package var gatewayEnvironment: GatewayEnvironment
    /// The application's topic, where it was not the container's first.
    package var topic: String?
    /// When the token was registered last.
    package var registeredAt: Timestamp
    /// The entry that registered it.
    package var activation: LogPosition
    /// The entry that ended it; `nil` while it is active.
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

    /// Whether a change at `position` is told to it.
    package func hears(_ position: LogPosition) -> Bool {
        activation < position && (ended.map { $0 >= position } ?? true)
    }
}

/// Which versions of a user's devices are wanted.
package enum PastDeviceChoice: Sendable, Hashable {
    /// Those to which a change at this position is told.
    case hearing(LogPosition)
    /// Those that had ended before this position, the last of them.
    case endedBefore(LogPosition, limit: Int)
    /// Those of this ID, the last of them.
    case named(DeviceID, limit: Int)
}

/// How a version of a device ended.
package struct DeviceEnding: Sendable, Hashable {
    /// What ended it.
    package enum Cause: Sendable, Hashable {
        /// The user registered the same device anew.
        case renewed
        /// Its token was registered by somebody else, or as another device.
        case takenOver
        /// The gateway declared its token dead.
        case declaredDead(DeliveryReceipt)
        /// It was signed out or forgotten, or nobody fetched for long.
        case signedOut
    }

    /// When.
    package var at: Timestamp
    /// What ended it.
    package var cause: Cause

    package init(at: Timestamp, cause: Cause) {
        self.at = at
        self.cause = cause
    }
}

/// What became of a delivery in the queue of a web courier.
package enum CourierFate: Sendable, Hashable {
    /// It waits to be fetched until this moment.
    case waits(until: Timestamp)
    /// It expired at this moment.
    case expired(Timestamp)
    /// It was fetched at this moment, or a newer one took its place.
    case taken(Timestamp)
}

/// What became of a notification in an inbox.
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
