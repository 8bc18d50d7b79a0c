/// The kinds of change on which a subscription fires.
public struct FiresOn: OptionSet, Sendable, Hashable {
    /// CloudKit's bits: 1 creation, 2 update, 4 deletion.
    ///
    /// (The bit 8, once, is ``Subscription/firesOnce``.)
    public let rawValue: UInt8

    /// Creates a set from CloudKit's bits.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The subscription fires on creations.
    public static let create = FiresOn(rawValue: 1)
    /// The subscription fires on updates.
    public static let update = FiresOn(rawValue: 2)
    /// The subscription fires on deletions.
    public static let delete = FiresOn(rawValue: 4)
    /// The subscription fires on every change, as zone and database subscriptions do.
    public static let all: FiresOn = [.create, .update, .delete]

    /// Creates the set with only `operation`.
    public init(_ operation: ChangeOperation) {
        switch operation {
        case .create: self = .create
        case .update: self = .update
        case .delete: self = .delete
        }
    }

    /// The operations in this set, in the order create, update, delete.
    public var operations: [ChangeOperation] {
        ChangeOperation.allCases.filter { contains(FiresOn($0)) }
    }
}

/// The updates for which a query subscription fires (docs/firing-rules.md).
public enum FiresWhen: String, Sendable, Hashable, CaseIterable {
    /// The after image satisfies the predicate.
    case matches
    /// The after image satisfies the predicate, and the before image did not.
    case entered
    /// The before image satisfied the predicate, and the after image does not.
    case left
    /// Both images satisfy the predicate.
    case stayed
}

/// The devices that are not notified of a user's own change.
public enum OriginSuppression: String, Sendable, Hashable, CaseIterable {
    /// The device that made the change.
    case device
    /// Every device of the user who made the change.
    case user
    /// No device is left out.
    case none
}

/// The form in which the condition of a query subscription was written.
public enum PredicateForm: String, Sendable, Hashable, CaseIterable {
    /// CloudKit Web Services' `filterBy`.
    case filterBy
    /// NSPredicate text with arguments.
    case predicate
    /// Realm Query Language.
    case rql
    /// Minapp's `where`.
    case `where`
}

/// The condition of a query subscription, as the client wrote it.
///
/// The relay keeps this form so that a client reads back what it saved. ``canonical`` is the
/// relay's own text of the same condition.
public struct SubscriptionQuery: Sendable, Hashable {
    /// The record type whose changes are judged.
    public var recordType: RecordType
    /// The form of ``source``; `nil` if the client gave no condition, which means every record.
    public var form: PredicateForm?
    /// The condition as the client wrote it: an array for `filterBy`, a string for `predicate` and
    /// `rql`, an object for `where`; ``JSONValue/null`` without a condition.
    public var source: JSONValue
    /// The values for `%@` or `$0` in the text forms, in the notation of ``FieldValue``.
    public var arguments: [JSONValue]
    /// The canonical text of the predicate; conditions with equal texts are equal.
    public var canonical: String

    /// Creates a condition on records of `recordType`.
    public init(
        recordType: RecordType, form: PredicateForm?, source: JSONValue,
        arguments: [JSONValue] = [], canonical: String
    ) {
        self.recordType = recordType
        self.form = form
        self.source = source
        self.arguments = arguments
        self.canonical = canonical
    }
}

/// What a subscription watches.
public enum SubscriptionScope: Sendable, Hashable {
    /// Records that satisfy a condition, in one zone or in all.
    case query(SubscriptionQuery, zoneID: ZoneID?)
    /// Every change in a zone, optionally of one record type.
    case zone(ZoneID, recordType: RecordType?)
    /// Every change in the database, optionally of one record type.
    case database(recordType: RecordType?)
}

/// A saved request of a user to be notified of changes.
///
/// ```swift
/// let artwork = try #require(RecordType(rawValue: "Artwork"))
/// let condition = try RecordPredicate(format: #"artist == "a-1""#)
/// let subscription = Subscription(
///     id: try #require(SubscriptionID(rawValue: "new-artworks")),
///     container: container, database: .public, owner: alice,
///     scope: .query(
///         SubscriptionQuery(
///             recordType: artwork, form: .predicate, source: #"artist == "a-1""#,
///             canonical: condition.canonicalText),
///         zoneID: nil),
///     firesOn: [.create, .update])
/// #expect(!subscription.firesOn.contains(.delete))
/// ```
public struct Subscription: Sendable, Hashable {
    /// The ID, unique for its owner in its database.
    public var id: SubscriptionID
    /// The container and environment of the request that saved it.
    public var container: ContainerKey
    /// The database of the request that saved it.
    public var database: DatabaseScope
    /// The user whose devices are notified.
    public var owner: UserID
    /// The records that it watches.
    public var scope: SubscriptionScope
    /// The kinds of change on which it fires; always ``FiresOn/all`` unless its scope is a query.
    public var firesOn: FiresOn
    /// Whether it fires for one change only and is then deleted.
    public var firesOnce: Bool
    /// The updates for which it fires.
    public var firesWhen: FiresWhen
    /// The fields of which an update must change at least one to fire it; if empty, every update
    /// may.
    public var changedKeys: [String]
    /// The devices that are left out.
    public var suppress: OriginSuppression
    /// How the subscriber wants to be told.
    public var notificationInfo: NotificationInfo
    /// The subscriber's settings that end the subscription or hold its pushes back.
    public var kindness = SubscriptionKindness()

    /// Creates a subscription that fires on `firesOn` and suppresses the originating device.
    public init(
        id: SubscriptionID, container: ContainerKey, database: DatabaseScope, owner: UserID,
        scope: SubscriptionScope, firesOn: FiresOn, firesOnce: Bool = false,
        notificationInfo: NotificationInfo = NotificationInfo()
    ) {
        self.id = id
        self.container = container
        self.database = database
        self.owner = owner
        self.scope = scope
        self.firesOn = firesOn
        self.firesOnce = firesOnce
        firesWhen = .matches
        changedKeys = []
        suppress = .device
        self.notificationInfo = notificationInfo
    }

    /// The record type that the scope is limited to; `nil` if it is not.
    public var recordType: RecordType? {
        switch scope {
        case .query(let query, _): query.recordType
        case .zone(_, let recordType), .database(let recordType): recordType
        }
    }

    /// Whether an update needs more than a matching after image to fire the subscription.
    public var narrowsUpdates: Bool {
        firesOn.contains(.update) && (firesWhen != .matches || !changedKeys.isEmpty)
    }

    /// The zone that the scope is limited to; `nil` if it is not.
    public var zoneID: ZoneID? {
        switch scope {
        case .query(_, let zoneID): zoneID
        case .zone(let zoneID, _): zoneID
        case .database: nil
        }
    }
}
