package import RelayModel
package import Storage

/// A transaction that is being filled with the requests of several callers.
///
/// It hands out positions: gap-free, because a request that fails gives its own back.
package struct OpenCommit {
    /// What a request that fails goes back to.
    struct Bookmark {
        let head: LogPosition
        let appendedCount: Int
    }

    /// The writer's connection.
    package let db: Database
    /// What containers may have that set nothing of their own.
    let quotas: Quotas
    /// The last position handed out.
    package private(set) var head: LogPosition
    /// What was appended, in order.
    package private(set) var appended: [StoredEntry] = []
    /// What changes in a row ask for again and again.
    private var known = KnownRows()
    /// The statements of an append, as far as it has run them.
    private var statements = AppendStatements()
    /// How many entries were appended before the request that is run.
    private var requestStart = 0

    /// Begins after `head`.
    package init(_ db: Database, head: LogPosition, quotas: Quotas) {
        self.db = db
        self.quotas = quotas
        self.head = head
    }

    /// The position that the next entry will have.
    var next: LogPosition { head.next }

    /// Where the commit stands.
    var bookmark: Bookmark { Bookmark(head: head, appendedCount: appended.count) }

    /// The bytes of the bodies that were appended since `bookmark`.
    func bytes(since bookmark: Bookmark) -> Int {
        appended.dropFirst(bookmark.appendedCount).reduce(0) { $0 + $1.bytes }
    }

    /// Forgets what was appended since `bookmark`.
    mutating func restore(_ bookmark: Bookmark) {
        head = bookmark.head
        appended.removeLast(appended.count - bookmark.appendedCount)
    }

    /// Runs `body` in a savepoint; if it throws, or answers that it wants nothing kept, what it
    /// wrote is undone.
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
            // SQLite may have rolled everything back by itself; then there is no savepoint.
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
        // A statement that failed is not run again.
        statements = AppendStatements()
    }

    /// Runs `request`; with a savepoint of its own, what it wrote is undone if it throws.
    package mutating func run(
        _ request: WriteRequest, _ isolation: WriteIsolation
    ) throws -> @Sendable () -> Void {
        // Only what comes from outside leaves containers and schemas as they are.
        defer { if request.lane == .own { known = KnownRows() } }
        requestStart = appended.count
        return switch isolation {
        case .together: try request.perform(&self)
        case .each: try attempt { (value: try request.perform(&$0), keep: true) }
        }
    }

    /// The number of a container.
    ///
    /// - Throws: ``StorageError/unknownContainer(_:)``.
    mutating func container(_ key: ContainerKey) throws -> StoredContainer {
        if let container = known.container, container.key == key { return container }
        let container = try db.container(key)
        known.container = container
        return container
    }

    /// Whether the shadow keeps the records of a type.
    mutating func isKept(
        _ recordType: RecordType, of container: StoredContainer
    ) throws -> Bool {
        try rules(of: recordType, in: container).isKept
    }

    /// Who may read the records of a type that name no readers; of a type that the schema does not
    /// have, everybody.
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

    /// A statement that changes run one after the other: to look it up by its text costs a tenth of
    /// what it does.
    mutating func statement(_ which: AppendStatement) throws -> Statement {
        try statements.statement(which, of: db)
    }

    /// Appends a change with the readers that it names, or else those whom the schema grants it.
    ///
    /// There is no other way for a change into the log, so that none is in it without. `text` is
    /// what the log is to keep of it, if that was prepared; `creator` has created the record, and
    /// is for a creation whoever makes the change.
    mutating func append(
        _ change: RecordChange, text: String? = nil, createdBy creator: UserID?, source: SourceName,
        isStale: Bool, in container: StoredContainer, at now: Timestamp
    ) throws -> LogPosition {
        var change = change
        var text = text
        if change.readers == nil, change.database == .public {
            // Who gave a record another name has not made it.
            let isMade = change.operation == .create && change.movedFrom == nil
            let creator = creator ?? (isMade ? change.origin.userID : nil)
            change.readers = try readGrant(of: change.recordType, in: container)
                .readers(createdBy: creator)
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
        try statement(.append).execute(arguments: [
            position.stored, container.id, now.stored, body.kind.rawValue, body.source?.rawValue,
            body.isStale, storedBody, continues, body.record?.type.rawValue,
            body.record?.name.rawValue,
        ])
        head = position
        let entry = LogEntry(
            position: position, appendedAt: now, container: container.key, body: body,
            continuesRequest: continues)
        appended.append(StoredEntry(entry: entry, bytes: storedBody.utf8.count))
        return position
    }
}

/// What protects the requests of one commit from each other's failures.
package enum WriteIsolation: Sendable {
    /// Nothing: if one fails, all are undone and run again, ``each`` for itself. It spares two
    /// statements and a copy of every page that a request changes.
    case together
    /// A savepoint for each.
    case each
}

/// Rows that do not change between two requests of the intake.
private struct KnownRows {
    struct RecordTypeKey: Hashable {
        let container: Int64
        let recordType: RecordType
    }

    var container: StoredContainer?
    var types: [RecordTypeKey: RecordTypeRules] = [:]
}

/// What the schema decides of each change of a type.
private struct RecordTypeRules {
    let isKept: Bool
    let readGrant: ReadGrant
}

/// An entry with the size of its stored body.
package struct StoredEntry: Sendable {
    /// The entry.
    package let entry: LogEntry
    /// The bytes of its body as it is stored.
    package let bytes: Int
}

/// What became of one operation of a request that may ask for all or nothing.
protocol EditOutcome {
    /// Nothing: another operation of the request was refused.
    static var undone: Self { get }
    /// Whether the operation was refused.
    var isRefusal: Bool { get }
}

extension OpenCommit {
    /// Applies the operations of a request, in order; all of them or none, if that is asked for.
    ///
    /// - Returns: What became of each.
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
