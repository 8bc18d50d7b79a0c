package import RelayModel
import Storage

/// A connected client, as the engine knows it.
struct LiveClient {
    /// A query that the client has declared.
    struct Declared {
        /// The group number of queries of notifications, which are read from the inbox and not by
        /// the engine.
        static let ofInbox = UInt32.max

        /// What the query shows.
        ///
        /// Clients that declare the same query share one object, because a query takes more memory
        /// than everything else that is kept about a client.
        var shown: LiveShown
        /// The group that shows it; 0 once the query has ended, and ``ofInbox`` for notifications.
        var group: UInt32
        let fingerprint: String
        /// How the client declared the query.
        let declaration: DeclaredQuery.Declaration
        /// The position at which its beginning was sent; earlier changes are not sent again.
        var begun = LogPosition.start
        /// The position of the delivery that ended the query, for a query of a single change.
        var ended: LogPosition?
        /// The position at which the query ended by a frame to this client alone: the only result
        /// that it asked for, or a `gone` frame.
        ///
        /// A client that stands before this position has not received that frame.
        var finished: LogPosition?

        /// Returns whether the query goes on undisturbed if the client replaces it with `declared`.
        func goesOn(as declared: DeclaredQuery) -> Bool {
            let query = declared.query
            return group != 0 && fingerprint == declared.fingerprint
                && self.query.isOnce == query.isOnce
                && (self.query.beginning == .current || query.beginning == .none)
        }

        var query: LiveQuery { shown.query }
        var grant: ReadGrant { shown.grant }
    }

    let hub: any LiveHub
    let container: ContainerKey
    let reader: LiveReader
    let device: DeviceID?
    var queries: [String: Declared] = [:]
    var version: Int64 = 0
    /// The schema under which its set was read.
    var schema: LiveSchema?
    /// The queries whose beginning has not been sent.
    var waiting: Set<String> = []
    /// The answers to fences that are sent once nothing waits any more.
    var fences: [LiveFrame] = []
    var isToldComplete = true {
        didSet { if isToldComplete { missedBytes = 0 } else { quarters = 0 } }
    }
    /// The bytes that it was sent of what it had missed, since its set was last complete.
    var missedBytes = 0
    /// The number of quarters of its set that were last reported as progress.
    var quarters: UInt8 = 0
    /// Whether it is being sent from the log what happened since it fell behind.
    var isCatchingUp = false
    /// The latest time at which it fell behind, as its hub reported.
    var behind = LiveLag(.start, count: 0)
    /// The lag after which it caught up last.
    var caughtUp = LiveLag(.start, count: 0)

    /// Whether it fell behind and has not begun to catch up; changes reach it later, from the log.
    var isBehind: Bool { behind > caughtUp }

    /// Whether it fell behind and has not caught up completely.
    var isLagging: Bool { isCatchingUp || isBehind }

    /// Whether its set has no queries; one-time gets are no part of the set.
    var isEmpty: Bool { queries.keys.allSatisfy { $0.hasPrefix(LiveWaiter.getMark) } }

    /// Returns the frame that reports a state of its set.
    func state(
        _ state: SetState, _ queries: [JSONValue]? = nil, progress: Double? = nil
    ) -> LiveFrame {
        FrameWriter.state(
            state, version: version, isEmpty: isEmpty, queries, progress: progress)
    }

    /// The frame for a client whose set is replaced before all of it has been sent; `nil` if all of
    /// it has been sent.
    var superseded: LiveFrame? {
        version > 0 && !isToldComplete ? state(.superseded) : nil
    }

    /// Returns the share of the set that has been sent, at each further quarter; otherwise `nil`.
    ///
    /// Sets of fewer than four queries report no progress.
    mutating func progress() -> Double? {
        guard !isToldComplete, !waiting.isEmpty, queries.count >= 4 else { return nil }
        let told = UInt8(4 * (queries.count - waiting.count) / queries.count)
        guard told > quarters else { return nil }
        quarters = told
        return Double(queries.count - waiting.count) / Double(queries.count)
    }
}

/// A query of a set, prepared for the engine.
package struct DeclaredQuery: Sendable {
    /// The client's name for the query.
    package let id: String
    /// What the query shows, and who may read it.
    ///
    /// This is an object because a query takes most of a kilobyte, and a task that works on a set
    /// keeps what it passes on about twenty times for each client.
    let shown: LiveShown
    /// The relay's mark of the query.
    package let fingerprint: String
    /// The position up to which the client knows the query, if it comes back with the same query.
    package var since: LogPosition?
    /// The mark of the entry at that position, as the client's token has it.
    package var entryMark: UInt32?
    /// The inbox number after which notifications are sent; `nil` begins as the query says.
    package var after: UInt64?
    /// Why the client cannot go on from its position.
    package var reset: LiveReset?
    /// How the client declared the query, if that differs from this value.
    package var declaration: Declaration?
    /// Further members of the answer about the query.
    package let details: JSONObject

    /// How a client declared a query.
    package struct Declaration: Sendable, Hashable {
        /// The version of the set.
        package let version: Int64
        /// The position up to which the client knew the query, if any.
        package let since: LogPosition?
        /// Why the client could not go on from there.
        package let reset: LiveReset?
    }

    /// Creates a query that the client may see.
    package init(
        id: String, _ query: LiveQuery, grant: ReadGrant, fingerprint: String,
        since: LogPosition? = nil, reset: LiveReset? = nil, details: JSONObject = [:]
    ) {
        self.id = id
        shown = LiveShown(query, grant: grant)
        self.fingerprint = fingerprint
        self.since = since
        self.reset = reset
        self.details = details
    }

    /// The query itself.
    package var query: LiveQuery { shown.query }
    /// The grant that says who may read the records of its type that name no readers.
    package var grant: ReadGrant { shown.grant }
}

/// Identifies one of the schemas that a container has had since the relay started.
package struct LiveSchema: Sendable, Hashable {
    let number: Int
}

/// An edit of a client's live queries, which is applied whole or not at all.
package struct LiveSet: Sendable {
    /// The client's version number of the set; each is larger than the one before.
    package let version: Int64
    /// The queries that are added, or that replace those of the same name.
    package var queries: [DeclaredQuery]
    /// The names of the queries that are removed; `nil` removes all that are not in ``queries``.
    package var removed: [String]?
    /// The container's schema under which the queries were read.
    package let schema: LiveSchema

    package init(
        version: Int64, _ queries: [DeclaredQuery], removing removed: [String]?,
        under schema: LiveSchema
    ) {
        self.version = version
        self.queries = queries
        self.removed = removed
        self.schema = schema
    }
}

/// A group: live queries that show the same.
final class LiveGroup {
    // The properties that a change reads of each of thousands of groups come first. Some of them
    // copy what lies elsewhere, because loading that from memory takes longer than the work itself.

    let number: UInt32
    /// Whether the group is filed in its container.
    var isFiled = false
    /// Whether any clients are sent changes.
    private(set) var hasClients = false
    /// Whether ``shown`` shows the current members.
    private var isShown = false
    /// Whether ``replaced`` may exist, so that removed members have to be counted.
    private var countsReplaced = false
    let traits: LiveShown.Traits
    /// The user whose own result it is, or else the first user who asked for it.
    let owner: UserID
    /// The reader whose own result it is, if what is shown depends on the reader.
    let reader: LiveReader?
    /// The members of a result, once they are loaded.
    var members: ResultMembers? {
        didSet {
            guard isShown else { return }
            isShown = false
            shown = nil
        }
    }
    /// The estimated memory of the members.
    var bytes = 0
    /// What the group shows; its clients share this object.
    let content: LiveShown

    let identity: String
    /// The current result, while a client is being sent it.
    private weak var shown: ShownRecords?
    /// The counter of replaced members, while a client is being sent some of them.
    private weak var replaced: ReplacedRecords?
    /// The estimated memory of the group besides its members.
    let ownBytes: Int
    /// The reader who pays for that memory: at first the one who asked first, later one who still
    /// asks.
    var payer: LiveReader?
    /// For a result that coalesces: the records changed by the entries being read, as they were as
    /// members before; `nil` for those that were not members.
    var touched: [RecordID: LiveRecord?] = [:]
    /// The reasons for which these records enter or leave.
    var fates: [RecordID: LiveFate] = [:]
    /// The effect on the result, if there was a single change.
    var onlyItems: [LiveItem]?
    /// The clients that are sent changes.
    var clients: Set<UInt64> = [] {
        didSet { hasClients = !clients.isEmpty }
    }
    /// The queries that end with the first change that they are sent.
    var once: Set<LiveWaiter> = []
    /// The clients for whose queries the last frame has been written; they get no frames after it.
    var ended: Set<UInt64> = []
    /// The queries that wait until the members are loaded, or until their clients have caught up.
    var waiting: Set<LiveWaiter> = []
    /// The number of times in a row that the engine found the group unused.
    var idleLooks = 0

    init(
        _ number: UInt32, _ query: LiveQuery, identity: String, grant: ReadGrant,
        reader: LiveReader?
    ) {
        self.number = number
        content = LiveShown(query, grant: grant)
        traits = content.traits
        // The query's owner may be another user, who declared the same query earlier.
        if case .user(let user)? = reader { owner = user } else { owner = query.subscription.owner }
        ownBytes = query.ownBytes
        self.identity = identity
        self.reader = reader
    }

    var query: LiveQuery { content.query }
    var grant: ReadGrant { content.grant }

    /// Returns the current result, which all clients that are being sent it share.
    func shownRecords() -> ShownRecords {
        if let shown { return shown }
        let counter = replaced ?? ReplacedRecords()
        let records = ShownRecords((members?.shown ?? []).map(\.record), counting: counter)
        (shown, replaced, countsReplaced) = (records, counter, true)
        isShown = true
        return records
    }

    /// Counts the bytes of members that are gone, but that a client may still have to be sent.
    func note(replaced bytes: Int) {
        guard countsReplaced else { return }
        guard let replaced else { return countsReplaced = false }
        replaced.add(bytes)
    }

    /// Returns the record with its readers by the grants of its type, if it names no readers
    /// itself.
    func granted(_ record: LiveRecord) -> LiveRecord {
        guard record.readers == nil, query.subscription.database == .public,
            let readers = grant.readers(createdBy: record.record.created.userID)
        else { return record }
        return LiveRecord(record.record, readers: readers)
    }

    /// Returns the users who may be sent a change.
    ///
    /// These are the readers that the change names. Otherwise they follow from the current grants
    /// of the type, because the change may have been made under earlier ones.
    func readers(of change: RecordChange) -> [String]? {
        guard change.readers == nil, grant.isPersonal, query.subscription.database == .public
        else { return change.readers }
        // A change that names the record's creator: another user, or an unknown one.
        if let made = change.created { return grant.readers(createdBy: made.userID) }
        return grant.readers(createdBy: change.operation == .create ? change.editor : nil)
    }

    /// Whether no client uses the group or waits for it.
    var isIdle: Bool { clients.isEmpty && waiting.isEmpty }
}

/// A query of a client that waits for a group.
struct LiveWaiter: Hashable {
    /// The prefix of the names of queries that belong to no set; no client can give such a name.
    static let getMark = "\u{0}"

    let client: UInt64
    let query: String
    /// The position from which the query goes on; `nil` begins with the current result.
    var since: LogPosition?
    /// Whether the query cannot go on from its position and so needs the current result, whatever
    /// it asked to be sent first.
    var isAnew = false

    /// A query waits at most once, whatever its position is.
    static func == (left: LiveWaiter, right: LiveWaiter) -> Bool {
        left.client == right.client && left.query == right.query
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(client)
        hasher.combine(query)
    }

    /// The client's name of a one-time get, which belongs to no set.
    var getID: String? {
        query.hasPrefix(Self.getMark) ? String(query.dropFirst(Self.getMark.count)) : nil
    }
}

extension Set {
    /// Removes an element, and with the last one the set's storage.
    ///
    /// Of thousands of clients nearly none waits.
    @discardableResult
    mutating func removeWithRoom(_ element: Element) -> Element? {
        guard count == 1 else { return remove(element) }
        guard let index = firstIndex(of: element) else { return nil }
        defer { self = [] }
        return self[index]
    }
}
