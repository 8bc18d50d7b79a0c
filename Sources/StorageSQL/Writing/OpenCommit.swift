package import RelayModel
package import Storage

/// A transaction that is being filled with the requests of several callers.
///
/// It assigns positions without gaps, because a failed request gives its positions back.
package struct OpenCommit {
    /// The state to which a failed request returns.
    struct Bookmark {
        let head: LogPosition
        let appendedCount: Int
        let bytes: Int
    }

    /// The writer's connection.
    package let db: Database
    /// The quotas of containers that set none of their own.
    let quotas: Quotas
    /// The last assigned position.
    package private(set) var head: LogPosition
    /// The appended entries, in order.
    package private(set) var appended: [StoredEntry] = []
    /// The size of the appended bodies in bytes.
    package private(set) var bytes = 0
    /// Rows that consecutive changes need again and again.
    private var known = KnownRows()
    /// The remembered keys that appends looked up; complete as long as only appends write.
    var keys = KnownKeys()
    /// The noted versions that appends looked up; complete as long as only appends write.
    var versions = KnownVersions()
    /// Whether the next requests have looked up together what they need.
    private var hasLookedAhead = false
    /// The prepared statements of appends, as far as they were used.
    private var statements = AppendStatements()
    /// The number of entries appended before the current request.
    private var requestStart = 0

    /// The size in bytes at which the commit takes no further request.
    private let mostBytes: Int

    /// Creates a commit that continues after `head` and is full at `most` bytes.
    package init(_ db: Database, head: LogPosition, quotas: Quotas, most: Int = .max) {
        self.db = db
        self.quotas = quotas
        self.head = head
        mostBytes = most
    }

    /// Whether the commit has appended so much that others should have their turn.
    package var isFull: Bool { bytes >= mostBytes }

    /// The position of the next entry.
    var next: LogPosition { head.next }

    /// The current state, to return to.
    var bookmark: Bookmark {
        Bookmark(head: head, appendedCount: appended.count, bytes: bytes)
    }

    /// Returns the size of the bodies appended since `bookmark`, in bytes.
    func bytes(since bookmark: Bookmark) -> Int { bytes - bookmark.bytes }

    /// Discards the entries appended since `bookmark`.
    mutating func restore(_ bookmark: Bookmark) {
        head = bookmark.head
        bytes = bookmark.bytes
        appended.removeLast(appended.count - bookmark.appendedCount)
    }

    /// Whether appends look up what they need together, because each query is a round trip.
    var looksAhead: Bool { db.dialect == .postgresql }

    /// Looks up together what `requests` need, up to the first that does not look ahead, unless
    /// that was done since such a request ran.
    ///
    /// Without this, each request asks for itself when it runs.
    package mutating func lookAhead(_ requests: ArraySlice<WriteRequest>) throws {
        guard looksAhead, !hasLookedAhead else { return }
        hasLookedAhead = true
        var lookahead = Lookahead()
        for request in requests {
            guard let look = request.lookAhead else { break }
            // What a request refuses is its own, and is said when it runs.
            do { try look(&self, &lookahead) } catch is StorageError { continue }
        }
        try lookUp(lookahead)
    }

    /// Looks up what was not looked up before.
    mutating func lookUp(_ names: Lookahead) throws {
        guard looksAhead else { return }
        try keys.lookUp(names.keys, by: statement(.known))
        try versions.lookUp(names.versions, by: statement(.knownVersion))
    }

    private mutating func forgetLookedUp() {
        hasLookedAhead = false
        keys = KnownKeys()
        versions = KnownVersions()
    }

    /// Runs `body` in a savepoint.
    ///
    /// Its writes are undone if it throws or returns `keep: false`.
    mutating func attempt<Value>(
        _ body: (inout OpenCommit) throws -> (value: Value, keep: Bool)
    ) throws -> Value {
        let bookmark = bookmark
        try db.cachedStatement(sql: "SAVEPOINT attempt").execute()
        do {
            let (value, keep) = try body(&self)
            try db.connection.settle()
            if !keep { try undo(to: bookmark) }
            try db.cachedStatement(sql: "RELEASE attempt").execute()
            return value
        } catch {
            // What was deferred is run now, because it would otherwise fail at the next request.
            try? db.connection.settle()
            // SQLite may have rolled back the whole transaction by itself. Then there is no
            // savepoint.
            if db.isInsideTransaction {
                try undo(to: bookmark)
                try db.cachedStatement(sql: "RELEASE attempt").execute()
            }
            throw error
        }
    }

    private mutating func undo(to bookmark: Bookmark) throws {
        try db.cachedStatement(sql: "ROLLBACK TO attempt").execute()
        restore(bookmark)
        // Statements that were used in the undone part are not reused. The part may have extended a
        // schema.
        statements = AppendStatements()
        known = KnownRows()
        forgetLookedUp()
    }

    /// Runs `request`.
    ///
    /// With `WriteIsolation.each`, its writes are undone if it throws.
    package mutating func run(
        _ request: WriteRequest, _ isolation: WriteIsolation
    ) throws -> @Sendable () -> Void {
        // Intake requests leave containers unchanged, and schemas unless they extend them.
        defer {
            if request.lane == .own { known = KnownRows() }
            if request.lookAhead == nil { forgetLookedUp() }
        }
        requestStart = appended.count
        return switch isolation {
        case .together: try request.perform(&self)
        case .each: try attempt { (value: try request.perform(&$0), keep: true) }
        }
    }

    /// Returns a container with its number.
    ///
    /// - Throws: ``StorageError/unknownContainer(_:)`` if it was never saved.
    mutating func container(_ key: ContainerKey) throws -> StoredContainer {
        if let container = known.container, container.key == key { return container }
        let container = try db.container(key)
        known.container = container
        return container
    }

    /// Forgets the rules of all types, because the schema has changed.
    mutating func forgetRules() { known.types = [:] }

    /// Returns whether the relay keeps the records of a type.
    mutating func isKept(
        _ recordType: RecordType, of container: StoredContainer
    ) throws -> Bool {
        try rules(of: recordType, in: container).isKept
    }

    /// Returns who may read the records of a type that name no readers.
    ///
    /// Records of a type that is not in the schema are readable by everybody.
    mutating func readGrant(
        of recordType: RecordType, in container: StoredContainer
    ) throws -> ReadGrant {
        try rules(of: recordType, in: container).readGrant
    }

    private mutating func rules(
        of recordType: RecordType, in container: StoredContainer
    ) throws -> RecordTypeRules {
        let type = KnownRows.RecordTypeKey(container: container.id, recordType: recordType)
        if let rules = known.types[type] { return rules }
        let statement = try db.cachedStatement(
            sql: "SELECT * FROM recordType WHERE container = ? AND name = ?")
        let row = try Row.fetchOne(statement, arguments: [container.id, recordType.rawValue])
        let definition = try row.map(RecordTypeDefinition.init(row:))
        let rules = RecordTypeRules(
            isKept: definition?.isKept ?? false, readGrant: definition?.readGrant ?? .world)
        known.types[type] = rules
        return rules
    }

    /// Returns a prepared statement for consecutive changes.
    ///
    /// Looking it up by its text would take a tenth of the time of running it.
    mutating func statement(_ which: AppendStatement) throws -> Statement {
        try statements.statement(which, of: db)
    }

    /// Appends a change with the readers that it names, or else those whom the schema grants
    /// access.
    ///
    /// All changes enter the log through this function, so that none lacks its readers. `text` is
    /// the prepared text for the log, if there is one. `creator` is the creator of the record; for
    /// a creation, the default is the user who makes the change.
    mutating func append(
        _ change: RecordChange, text: String? = nil, createdBy creator: UserID?, source: SourceName,
        isStale: Bool, in container: StoredContainer, at now: Timestamp
    ) throws -> LogPosition {
        var change = change
        var text = text
        if change.readers == nil, change.database == .public {
            // A user who renamed a record has not created it.
            let isMade = change.operation == .create && change.movedFrom == nil
            let creator = creator ?? (isMade ? change.origin.userID : nil)
            change.readers =
                change.lacksReaders
                ? RecordChange.unsentReaders
                : try readGrant(of: change.recordType, in: container).readers(createdBy: creator)
            if change.readers != nil { text = nil }
        }
        return try append(
            .change(change, source: source, isStale: isStale),
            storedBody: text ?? change.storedText(), in: container, at: now)
    }

    /// Appends one entry.
    mutating func append(
        _ body: LogEntryBody, storedBody: String, in container: StoredContainer, at now: Timestamp
    ) throws -> LogPosition {
        let position = head.next
        let continues = appended.count > requestStart
        try statement(.append).insert([
            position.stored, container.id, now.stored, body.kind.rawValue, body.source?.rawValue,
            body.isStale, storedBody, continues, body.record?.type.rawValue,
            body.record?.name.rawValue,
        ])
        head = position
        let entry = LogEntry(
            position: position, appendedAt: now, container: container.key, body: body,
            continuesRequest: continues)
        let size = storedBody.utf8.count
        appended.append(StoredEntry(entry: entry, bytes: size))
        bytes += size
        return position
    }
}

/// How the requests of one commit are protected from each other's failures.
package enum WriteIsolation: Sendable {
    /// No protection: if one request fails, all are undone and run again with ``each``.
    ///
    /// This saves two statements for each request, and a copy of every page that it changes.
    case together
    /// A savepoint for each request.
    case each
}

/// Rows that do not change between two intake requests, unless one extends a schema.
private struct KnownRows {
    struct RecordTypeKey: Hashable {
        let container: Int64
        let recordType: RecordType
    }

    var container: StoredContainer?
    var types: [RecordTypeKey: RecordTypeRules] = [:]
}

/// The schema's rules for the changes of a type.
private struct RecordTypeRules {
    let isKept: Bool
    let readGrant: ReadGrant
}

/// An entry of the log with the size of its stored body.
package struct StoredEntry: Sendable {
    /// The entry.
    package let entry: LogEntry
    /// The size of its stored body in bytes.
    package let bytes: Int
}

/// The outcome of one operation of a request that may be atomic.
protocol EditOutcome {
    /// The operation was not applied, because another operation of the request was refused.
    static var undone: Self { get }
    /// Whether the operation was refused.
    var isRefusal: Bool { get }
}

extension OpenCommit {
    /// Applies the operations of a request in order, and all or none of them if that is requested.
    ///
    /// - Returns: The outcome of each operation.
    mutating func apply<Edit, Outcome: EditOutcome>(
        _ edits: [Edit], _ atomicity: EditAtomicity,
        _ apply: (Edit, inout OpenCommit) throws -> Outcome
    ) throws -> [Outcome] {
        switch atomicity {
        case .independent:
            return try edits.map { try apply($0, &self) }
        case .allOrNothing:
            return try attempt { commit in
                let outcomes = try edits.map { try apply($0, &commit) }
                guard outcomes.contains(where: \.isRefusal) else { return (outcomes, true) }
                return (outcomes.map { $0.isRefusal ? $0 : .undone }, false)
            }
        }
    }
}
