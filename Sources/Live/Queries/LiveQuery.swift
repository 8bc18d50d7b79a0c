package import PredicateLanguage
package import RelayModel
package import Storage

/// A query that a connected client declares on its connection; it is never saved.
package struct LiveQuery: Sendable, Hashable {
    /// What a query shows.
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        /// The records that fit the query, and how they enter and leave the result.
        case result
        /// Each change that fits, once.
        case changes
        /// The inbox, that is what the user's saved subscriptions fired; the engine does not read
        /// it.
        case notifications
    }

    /// What a client is sent when it declares the query.
    package enum Beginning: String, Sendable, Hashable, CaseIterable {
        /// The current state.
        case current
        /// Nothing, until something happens.
        case none
    }

    /// What is shown.
    package var kind: Kind
    /// The condition, the place and, for queries of changes, the firing rules, as in a
    /// subscription; its owner is the user who declared the query.
    package var subscription: Subscription
    /// The order of a result; an empty one sorts by zone and name.
    package var order: [LiveSortKey] = []
    /// Where the result begins, on the first key of the order.
    package var start: LiveBound?
    /// Where the result ends, on the first key of the order.
    package var end: LiveBound?
    /// The order of Firebase or Wilddog with its bounds; it replaces `order`, `start` and `end`.
    package var firebase: FirebaseQuery?
    /// The limit on the shown records.
    package var limit: LiveLimit?
    /// The fields that are sent, ascending as ``IndexedText/order(_:_:)`` has it; `nil` sends all.
    package var desiredKeys: [String]?
    /// Whether the record before the change is sent too.
    package var showsBefore = false
    /// What the client is sent first.
    package var beginning = Beginning.current
    /// Whether the query ends after what it is sent first, or after the first change.
    package var isOnce = false
    /// Whether only the last of several changes of one record is sent, if they are read together.
    package var coalesces = false
    /// The database whose subscriptions' notifications are shown; `nil` shows all.
    package var inboxDatabase: DatabaseScope?
    /// The bytes that the condition takes in memory each time it is indexed.
    package var conditionBytes = 0
    /// The form in which records are written.
    package var form: LiveForm

    /// Creates a query without order, bounds and limit.
    package init(_ kind: Kind, _ subscription: Subscription, form: LiveForm) {
        self.kind = kind
        self.subscription = subscription
        self.form = form
    }

    /// Whether the result is ordered or limited, so that a record's place depends on other records.
    package var isOrdered: Bool { !order.isEmpty || firebase != nil || limit != nil }

    /// Returns whether another query shows the same as this one.
    ///
    /// The dialects of the conditions may differ. For the public database, the users who declared
    /// the queries may differ too.
    package func shows(theSameAs other: LiveQuery) -> Bool {
        guard kind != .notifications else { return self == other }
        var other = other
        if subscription.database == .public { other.subscription.owner = subscription.owner }
        if case .query(let own, _) = subscription.scope,
            case .query(let asked, let zoneID) = other.subscription.scope,
            own.recordType == asked.recordType,
            own.canonical.utf8.elementsEqual(asked.canonical.utf8)
        {
            other.subscription.scope = .query(own, zoneID: zoneID)
            other.conditionBytes = conditionBytes
        }
        return self == other
    }

    /// The record type; `nil`, which only queries of changes may have, stands for all types.
    package var recordType: RecordType? { subscription.recordType }

    /// Returns whether the query shows anything of a change.
    ///
    /// An update is not sent if it is known to have left all requested fields unchanged. A change
    /// of the record's readers is always sent, because the record is new to some of them.
    func shows(_ change: RecordChange) -> Bool {
        var known: [String: Bool] = [:]
        return shows(change, knowing: &known)
    }

    /// Returns whether the query shows anything of a change, reusing comparisons of fields.
    ///
    /// - Parameters:
    ///   - change: The change.
    ///   - known: Whether each field compared so far has changed. Thousands of queries may ask for
    ///     one field that holds a megabyte.
    /// - Returns: Whether the query shows anything of it.
    func shows(_ change: RecordChange, knowing known: inout [String: Bool]) -> Bool {
        guard let desiredKeys, change.operation == .update, change.readersBefore == nil,
            subscription.firesWhen == .matches || subscription.firesWhen == .stayed
        else { return true }
        if let changed = change.changedKeys { return changed.contains(where: travels) }
        guard let before = change.before, let after = change.after,
            before.completeness == .full, after.completeness == .full
        else { return true }
        return desiredKeys.contains { name in
            if let isOther = known[name] { return isOther }
            let isOther = before.fields[name] != after.fields[name]
            known[name] = isOther
            return isOther
        }
    }

    /// Returns whether a field, or a part of a field, is among those that are sent.
    ///
    /// - Complexity: Logarithmic in the number of requested fields, because each query asks this
    ///   for all fields that a change has altered.
    func travels(_ key: String) -> Bool {
        guard let desiredKeys else { return true }
        var name = key
        while true {
            var (low, high) = (0, desiredKeys.count)
            while low < high {
                let middle = (low + high) / 2
                let order = IndexedText.order(desiredKeys[middle], name)
                if order == 0 { return true }
                if order < 0 { low = middle + 1 } else { high = middle }
            }
            // By bytes: as a `Character`, the dot and a combining mark after it would be one.
            guard let dot = name.utf8.lastIndex(of: UInt8(ascii: ".")) else { return false }
            name = String(name[..<dot])
        }
    }

    /// The place where the records are.
    package var place: RecordPlace {
        RecordPlace(
            container: subscription.container, database: subscription.database,
            owner: subscription.database == .public ? nil : subscription.owner)
    }
}

/// The form in which records are written for a client.
package struct LiveForm: Sendable, Hashable {
    /// Whether a field is written as its bare JSON value instead of CloudKit's type and value.
    package var isPlain: Bool
    /// Whether numbers are written as texts, for clients that read numbers as doubles.
    package var writesNumbersAsTexts: Bool

    /// Creates a form; the default is CloudKit's.
    package init(isPlain: Bool = false, writesNumbersAsTexts: Bool = false) {
        self.isPlain = isPlain
        self.writesNumbersAsTexts = writesNumbersAsTexts
    }
}

/// One key of an order.
package struct LiveSortKey: Sendable, Hashable {
    /// The field, or one of CloudKit's names for what it knows of every record.
    package let field: String
    /// Whether small values come first.
    package let isAscending: Bool

    /// Creates a key that sorts by `field`.
    package init(_ field: String, isAscending: Bool = true) {
        self.field = field
        self.isAscending = isAscending
    }

    /// Compares the names of the fields by their bytes.
    package static func == (left: LiveSortKey, right: LiveSortKey) -> Bool {
        left.isAscending == right.isAscending && left.field.utf8.elementsEqual(right.field.utf8)
    }
}

/// One end of a result, on the first key of its order.
package struct LiveBound: Sendable, Hashable {
    /// The value at which the result begins or ends.
    package let value: FieldValue
    /// Whether records with this value belong to the result.
    package let isIncluded: Bool

    package init(_ value: FieldValue, isIncluded: Bool = true) {
        self.value = value
        self.isIncluded = isIncluded
    }
}

/// The number of records of an order that are shown.
package enum LiveLimit: Sendable, Hashable {
    /// The first records of the order.
    case first(Int)
    /// The last records of the order.
    case last(Int)
}

/// The reader of a query, for whom read rules are applied.
package enum LiveReader: Sendable, Hashable {
    /// A server of the application itself, which may read everything.
    case server
    /// A user.
    case user(UserID)

    /// Returns whether the reader is among `readers`; `nil` means everybody.
    package func isAmong(_ readers: [String]?) -> Bool {
        guard let readers else { return true }
        switch self {
        case .server: return true
        case .user(let user): return RecordChange.names(user, in: readers)
        }
    }
}

extension ReadGrant {
    /// Whether the grant differs between readers, for records that name no readers.
    package var isPersonal: Bool {
        switch self {
        case .world, .users: false
        case .creator, .nobody: true
        }
    }
}
