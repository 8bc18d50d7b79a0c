package import PredicateLanguage
package import RelayModel
package import Storage

/// What a connected client wants to see: declared on its connection, and never saved.
package struct LiveQuery: Sendable, Hashable {
    /// What is shown.
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        /// The records that fit, and how they come and go.
        case result
        /// Each change that fits, once.
        case changes
        /// What the user's saved subscriptions fired: the inbox, which the engine does not read.
        case notifications
    }

    /// What is told when the query is declared.
    package enum Beginning: String, Sendable, Hashable, CaseIterable {
        /// What there is now.
        case current
        /// Nothing, until something happens.
        case none
    }

    /// What is shown.
    package var kind: Kind
    /// The condition, the place, and of changes the rules by which they are told, as a subscription
    /// has them; its owner is the user who declared the query.
    package var subscription: Subscription
    /// The order of a result; without one records stand in the order of zone and name.
    package var order: [LiveSortKey] = []
    /// Where the result begins, on the first key of the order.
    package var start: LiveBound?
    /// Where it ends.
    package var end: LiveBound?
    /// The order of Firebase or Wilddog with its bounds, in the place of the three before.
    package var firebase: FirebaseQuery?
    /// How much of it is shown.
    package var limit: LiveLimit?
    /// The fields that travel, ascending as ``IndexedText/order(_:_:)`` has it; `nil` shows all.
    package var desiredKeys: [String]?
    /// Whether the record as it was before travels too.
    package var showsBefore = false
    /// What is told first.
    package var beginning = Beginning.current
    /// Whether the query ends after what it tells first, or after the first change.
    package var isOnce = false
    /// Whether of several changes of one record that are read together the last alone is told.
    package var coalesces = false
    /// The database whose subscriptions' notifications are shown; `nil` shows all.
    package var inboxDatabase: DatabaseScope?
    /// Bytes that the condition takes in memory each time that it is filed.
    package var conditionBytes = 0
    /// How records are written.
    package var form: LiveForm

    /// Describes a query without order, bounds and limit.
    package init(_ kind: Kind, _ subscription: Subscription, form: LiveForm) {
        self.kind = kind
        self.subscription = subscription
        self.form = form
    }

    /// Whether what it shows stands in an order, so that one record's place depends on others.
    package var isOrdered: Bool { !order.isEmpty || firebase != nil || limit != nil }

    /// Whether another query is this one, whatever its condition was written in, and whoever of
    /// those who look at the public database asks.
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

    /// The record type; `nil` watches all of them, which only changes can.
    package var recordType: RecordType? { subscription.recordType }

    /// Whether a change touches what travels: an update of which it is known that it gave none of
    /// the fields that are asked for another value is not told.
    ///
    /// Whoever may read a record only since the change is told of it as of a new one.
    func shows(_ change: RecordChange) -> Bool {
        var known: [String: Bool] = [:]
        return shows(change, knowing: &known)
    }

    /// The same, with what is known of its fields already: thousands of queries may ask for one
    /// that holds a megabyte.
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

    /// Whether a field, or a part of one, is among those that are asked for.
    ///
    /// - Complexity: the logarithm of how many there are: each change is asked for all fields that
    ///   it gave other values, by each query.
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
            // By bytes: as letters the dot and a mark behind it are one.
            guard let dot = name.utf8.lastIndex(of: UInt8(ascii: ".")) else { return false }
            name = String(name[..<dot])
        }
    }

    /// Where the records lie.
    package var place: RecordPlace {
        RecordPlace(
            container: subscription.container, database: subscription.database,
            owner: subscription.database == .public ? nil : subscription.owner)
    }
}

/// How records are written for a client.
package struct LiveForm: Sendable, Hashable {
    /// Whether a field is its bare JSON value, and not CloudKit's dictionary of type and value.
    package var isPlain: Bool
    /// Whether numbers are written as texts, for clients whose numbers are doubles.
    package var writesNumbersAsTexts: Bool

    /// CloudKit's form unless said otherwise.
    package init(isPlain: Bool = false, writesNumbersAsTexts: Bool = false) {
        self.isPlain = isPlain
        self.writesNumbersAsTexts = writesNumbersAsTexts
    }
}

/// One key of an order.
package struct LiveSortKey: Sendable, Hashable {
    /// The field, or one of CloudKit's names of what it knows of every record.
    package let field: String
    /// Whether small values come first.
    package let isAscending: Bool

    /// Sorts by `field`.
    package init(_ field: String, isAscending: Bool = true) {
        self.field = field
        self.isAscending = isAscending
    }

    /// Whether two keys are the same, by the bytes of the fields' names.
    package static func == (left: LiveSortKey, right: LiveSortKey) -> Bool {
        left.isAscending == right.isAscending && left.field.utf8.elementsEqual(right.field.utf8)
    }
}

/// An end of a result, on the first key of its order.
package struct LiveBound: Sendable, Hashable {
    /// The value there.
    package let value: FieldValue
    /// Whether records with this value belong to the result.
    package let isIncluded: Bool

    /// Bounds a result.
    package init(_ value: FieldValue, isIncluded: Bool = true) {
        self.value = value
        self.isIncluded = isIncluded
    }
}

/// How many records of an order are shown.
package enum LiveLimit: Sendable, Hashable {
    /// Those at its beginning.
    case first(Int)
    /// Those at its end.
    case last(Int)
}

/// Who looks, as far as read rules go.
package enum LiveReader: Sendable, Hashable {
    /// A server of the application's own, which may read everything.
    case server
    /// A user.
    case user(UserID)

    /// Whether the reader is among `readers`; `nil` is everybody.
    package func isAmong(_ readers: [String]?) -> Bool {
        guard let readers else { return true }
        switch self {
        case .server: return true
        case .user(let user): return RecordChange.names(user, in: readers)
        }
    }
}

extension ReadGrant {
    /// Whether who looks decides for every record that names no readers.
    package var isPersonal: Bool {
        switch self {
        case .world, .users: false
        case .creator, .nobody: true
        }
    }
}
