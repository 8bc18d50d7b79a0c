package import RelayModel
import Storage

/// A client as the engine knows it.
struct LiveClient {
    /// A query that the client has declared.
    struct Declared {
        /// In the place of a group: notifications are read from the inbox, not by the engine.
        static let ofInbox = UInt32.max

        /// What it shows: one object for all who declare the same, because a query takes more
        /// memory than all else that is kept of a client.
        var shown: LiveShown
        /// The group that shows it; 0 once it has ended, and ``ofInbox`` where none does.
        var group: UInt32
        let fingerprint: String
        /// How the client declared it.
        let declaration: DeclaredQuery.Declaration
        /// As of where its beginning was told: what came before that does not come again.
        var begun = LogPosition.start
        /// As of where a query of one change was told it, together with others.
        var ended: LogPosition?
        /// Who stands before it has not been told why it ended, where that was told this client
        /// alone: what it was to be told first, or that it is shown no more.
        var finished: LogPosition?

        /// Whether it goes on undisturbed where the client declares this one in its place.
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
    /// Under which schema its set was read.
    var schema: LiveSchema?
    /// The queries whose beginning has not been told.
    var waiting: Set<String> = []
    /// What it is told once everything has been sent, while something waits.
    var fences: [LiveFrame] = []
    var isToldComplete = true {
        didSet { if !isToldComplete { quarters = 0 } }
    }
    /// How many quarters of its set it was told that it has been told.
    var quarters: UInt8 = 0
    /// Whether it is told from the log what happened since it fell behind.
    var isCatchingUp = false
    /// When it fell behind last, as its hub said, so that nothing goes out to it.
    var behind = LiveLag(.start, count: 0)
    /// After which time it caught up last.
    var caughtUp = LiveLag(.start, count: 0)

    /// Whether it fell behind, and has not begun to catch up: what is told of changes now, it is
    /// told later.
    var isBehind: Bool { behind > caughtUp }

    /// Whether it fell behind, and has not caught up.
    var isLagging: Bool { isCatchingUp || isBehind }

    /// Whether its set has no query.
    var isEmpty: Bool { queries.keys.allSatisfy { $0.hasPrefix(LiveWaiter.getMark) } }

    /// What became of its set.
    func state(
        _ state: SetState, _ queries: [JSONValue]? = nil, progress: Double? = nil
    ) -> LiveFrame {
        FrameWriter.state(
            state, version: version, isEmpty: isEmpty, queries, progress: progress)
    }

    /// What a client is told of its set when another one takes its place before all of it has been
    /// told; `nil` if all of it has.
    var superseded: LiveFrame? {
        version > 0 && !isToldComplete ? state(.superseded) : nil
    }

    /// How much of a set of several queries has been told, as often as another quarter has.
    mutating func progress() -> Double? {
        guard !isToldComplete, !waiting.isEmpty, queries.count >= 4 else { return nil }
        let told = UInt8(4 * (queries.count - waiting.count) / queries.count)
        guard told > quarters else { return nil }
        quarters = told
        return Double(queries.count - waiting.count) / Double(queries.count)
    }
}

/// One query of a set, as it was read for the engine.
package struct DeclaredQuery: Sendable {
    /// The client's name for it.
    package let id: String
    /// What it shows, and to whom: an object, because a query is most of a kilobyte, and a task
    /// that works a set keeps what it passes on some twenty times over, for each who comes.
    let shown: LiveShown
    /// The relay's mark of it.
    package let fingerprint: String
    /// Where the client stands with it, if it comes back with the same query.
    package var since: LogPosition?
    /// The number in the inbox beyond which notifications are told; `nil` begins as the query says.
    package var after: UInt64?
    /// Why the client cannot go on from where it stood.
    package var reset: LiveReset?
    /// How the client declared it, where that is not as it stands here.
    package var declaration: Declaration?
    /// What the answer says of it besides.
    package let details: JSONObject

    /// How a client has declared a query.
    package struct Declaration: Sendable, Hashable {
        /// The version of the set.
        package let version: Int64
        /// Where the client stood with it, if anywhere.
        package let since: LogPosition?
        /// Why it could not go on from there.
        package let reset: LiveReset?
    }

    /// Describes a query that may be shown.
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

    /// What it shows.
    package var query: LiveQuery { shown.query }
    /// Who may read the records of its type that name no readers.
    package var grant: ReadGrant { shown.grant }
}

/// Which of the schemas that a container has had since the relay's start.
package struct LiveSchema: Sendable, Hashable {
    let number: Int
}

/// An edit of what a client wants to see: taken whole, or not at all.
package struct LiveSet: Sendable {
    /// The client's number of it; each is larger than the one before.
    package let version: Int64
    /// The queries that come, or take the place of those of the same name.
    package var queries: [DeclaredQuery]
    /// The names of those that go; `nil` ends all that are not in ``queries``.
    package var removed: [String]?
    /// As of which schema of the container they were read.
    package let schema: LiveSchema

    /// Describes an edit.
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

/// Queries that show the same.
final class LiveGroup {
    // What a change asks of each of thousands stands first, and is a copy where it would have to be
    // looked for: to fetch it from memory takes longer than to work it.

    let number: UInt32
    /// Whether its container has it.
    var isFiled = false
    /// Whether somebody is told what comes.
    private(set) var hasClients = false
    /// Whether ``shown`` is of the members as they are.
    private var isShown = false
    /// Whether members that go may be counted.
    private var countsReplaced = false
    let traits: LiveShown.Traits
    /// Whose own it is, or else who asked for it first.
    let owner: UserID
    /// Whose own it is, where what is shown depends on who looks.
    let reader: LiveReader?
    /// The members of a result, once they are loaded.
    var members: ResultMembers? {
        didSet {
            guard isShown else { return }
            isShown = false
            shown = nil
        }
    }
    /// What the members take in memory, about.
    var bytes = 0
    /// What it shows, as its clients have it too.
    let content: LiveShown

    let identity: String
    /// What is shown, for as long as somebody is being sent it.
    private weak var shown: ShownRecords?
    /// What counts the members that go, for as long as somebody is being sent some of them.
    private weak var replaced: ReplacedRecords?
    /// What it takes besides them, about.
    let ownBytes: Int
    /// Who pays for that: who asked for it first, and later somebody who asks for it still.
    var payer: LiveReader?
    /// Of a result that coalesces: the records that were changed by what is read now, as they were
    /// members before it; `nil` for those that were none.
    var touched: [RecordID: LiveRecord?] = [:]
    /// Why they come, or go.
    var fates: [RecordID: LiveFate] = [:]
    /// What was done to it, where that was one change.
    var onlyItems: [LiveItem]?
    /// Clients that are told what comes.
    var clients: Set<UInt64> = [] {
        didSet { hasClients = !clients.isEmpty }
    }
    /// Queries that end with the first change that they are told.
    var once: Set<LiveWaiter> = []
    /// Clients whose queries end with what is told next: they are told nothing behind it.
    var ended: Set<UInt64> = []
    /// Queries of clients that wait until the members are loaded, or until they have caught up.
    var waiting: Set<LiveWaiter> = []
    /// How often nobody needed it when the engine looked.
    var idleLooks = 0

    init(
        _ number: UInt32, _ query: LiveQuery, identity: String, grant: ReadGrant,
        reader: LiveReader?
    ) {
        self.number = number
        content = LiveShown(query, grant: grant)
        traits = content.traits
        // What a query says it may have said for somebody else before.
        if case .user(let user)? = reader { owner = user } else { owner = query.subscription.owner }
        ownBytes = query.ownBytes
        self.identity = identity
        self.reader = reader
    }

    var query: LiveQuery { content.query }
    var grant: ReadGrant { content.grant }

    /// The result as it is.
    func shownRecords() -> ShownRecords {
        if let shown { return shown }
        let counter = replaced ?? ReplacedRecords()
        let records = ShownRecords((members?.shown ?? []).map(\.record), counting: counter)
        (shown, replaced, countsReplaced) = (records, counter, true)
        isShown = true
        return records
    }

    /// Notes that members of so many bytes have gone, which somebody may have still to be sent.
    func note(replaced bytes: Int) {
        guard countsReplaced else { return }
        guard let replaced else { return countsReplaced = false }
        replaced.add(bytes)
    }

    /// A record with those who may read it by the grants of its type, if it names nobody.
    func granted(_ record: LiveRecord) -> LiveRecord {
        guard record.readers == nil, query.subscription.database == .public,
            let readers = grant.readers(createdBy: record.record.created.userID)
        else { return record }
        return LiveRecord(record.record, readers: readers)
    }

    /// Who may be told a change: those whom it names, or those who may read its record now, where
    /// it was made before the grants of its type were these.
    func readers(of change: RecordChange) -> [String]? {
        guard change.readers == nil, grant.isPersonal, query.subscription.database == .public
        else { return change.readers }
        // A creation that says so has been made by somebody else, or by nobody who is known.
        if let made = change.created { return grant.readers(createdBy: made.userID) }
        return grant.readers(createdBy: change.operation == .create ? change.editor : nil)
    }

    /// Whether nobody needs it.
    var isIdle: Bool { clients.isEmpty && waiting.isEmpty }
}

/// A query of a client that waits.
struct LiveWaiter: Hashable {
    /// How the names of queries begin that belong to no set: no client can give such a name.
    static let getMark = "\u{0}"

    let client: UInt64
    let query: String
    /// Where it stands; `nil` begins with the result as it is.
    var since: LogPosition?
    /// Whether it stood somewhere from where it cannot go on, so that it needs the result as it is,
    /// whatever it asked to be told first.
    var isAnew = false

    /// A query waits once, wherever it stands.
    static func == (left: LiveWaiter, right: LiveWaiter) -> Bool {
        left.client == right.client && left.query == right.query
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(client)
        hasher.combine(query)
    }

    /// The name of a query that is got once, and belongs to no set.
    var getID: String? {
        query.hasPrefix(Self.getMark) ? String(query.dropFirst(Self.getMark.count)) : nil
    }
}

extension Set {
    /// Takes an element out, and with the last one the room that the set has: of thousands of
    /// clients nearly none waits.
    @discardableResult
    mutating func removeWithRoom(_ element: Element) -> Element? {
        guard count == 1 else { return remove(element) }
        guard let index = firstIndex(of: element) else { return nil }
        defer { self = [] }
        return self[index]
    }
}
