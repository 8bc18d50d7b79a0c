import FoundationEssentials
import RelayModel
import Storage

/// Appends the changes of one request, as many as one transaction takes: others write meanwhile.
struct AppendStep: Sendable {
    let changes: [PreparedChange]
    let delivery: DedupeKey?
    let source: SourceName
    let now: Timestamp
    let settings: StoreSettings

    /// Rows that one transaction writes beside the log, on PostgreSQL: all who write wait for it.
    ///
    /// One that it has written before counts as several, because the row is asked for and written
    /// again, which walks over all that the transaction made of it: a thousand changes of one
    /// record take seconds.
    static let (mostRows, rowsOfOneAgain) = (256, 8)

    func run(
        in commit: inout OpenCommit, container: StoredContainer
    ) throws -> [AppendOutcome] {
        // What is left is asked about with the part that it goes in with: else all who write would
        // wait for as many answers in each part.
        let part = try atOnce(in: &commit, container)
        var keys = try knownKeys(of: part, in: &commit, container)
        if let delivery,
            case .conflict(let position)? = try remember(delivery, &keys, in: &commit, container)
        {
            return changes.map { _ in .conflict(position) }
        }
        var versions = try knownVersions(of: part, in: &commit, container)
        var outcomes: [AppendOutcome] = []
        outcomes.reserveCapacity(part.count)
        var kept = KeptTogether(part)
        var bytes = 0
        appending: for start in stride(from: 0, to: part.count, by: KnownRecords.mostTogether) {
            let some = part[start...].prefix(KnownRecords.mostTogether)
            kept.records = try knownRecords(of: some, in: &commit, container)
            for change in some {
                let beginning = commit.bookmark
                let outcome = try append(change, &keys, &versions, &kept, in: &commit, container)
                outcomes.append(outcome)
                // A short change of a record that is kept has all of it, twice.
                bytes += commit.bytes(since: beginning)
                guard bytes < RecordEditAllowance.maximumBytes else { break appending }
            }
        }
        try kept.end(in: commit.db)
        return outcomes
    }

    /// The first of the changes, which write as many rows as one transaction may; one at least.
    private func atOnce(
        in commit: inout OpenCommit, _ container: StoredContainer
    ) throws -> [PreparedChange] {
        guard commit.db.dialect == .postgresql else { return changes }
        var written = RowsWritten()
        for (index, change) in changes.enumerated() {
            try written.note(change, in: &commit, container)
            if written.count >= Self.mostRows { return Array(changes.prefix(index + 1)) }
        }
        return changes
    }

    private func append(
        _ prepared: PreparedChange, _ keys: inout KnownKeys?, _ versions: inout KnownVersions?,
        _ kept: inout KeptTogether, in commit: inout OpenCommit, _ container: StoredContainer
    ) throws -> AppendOutcome {
        if let key = prepared.key,
            let known = try remember(key, &keys, in: &commit, container)
        {
            return known
        }
        let isStale = try isStale(prepared.change, &versions, in: &commit, container)
        let filling =
            isStale
            ? nil
            : try ShadowFilling(
                prepared, source: source, at: now, knowing: &kept, in: &commit, container)
        let position = try commit.append(
            filling?.change ?? prepared.change,
            text: filling == nil ? prepared.body : filling?.text,
            createdBy: filling?.creator, source: source, isStale: isStale, in: container, at: now)
        try filling?.write(at: position, &kept, in: commit)
        // Of a record that is kept the version is that of its last change, or none.
        if filling?.isWritten == true { versions?.note(prepared.change, of: source) }
        return isStale ? .appendedAsStale(position) : .appended(position)
    }

    /// What is remembered of all keys, where each question would be waited for; `nil` where each
    /// is asked for in its turn.
    private func knownKeys(
        of changes: [PreparedChange], in commit: inout OpenCommit, _ container: StoredContainer
    ) throws -> KnownKeys? {
        let all = [delivery].compactMap(\.self) + changes.compactMap(\.key)
        guard commit.db.dialect == .postgresql, all.count > 1 else { return nil }
        return try KnownKeys(
            all.map { name(of: $0, in: container) }, by: try commit.statement(.known))
    }

    private func name(of key: DedupeKey, in container: StoredContainer) -> StatementArguments {
        [container.id, source.rawValue, key.kind.stored, Data(key.text.utf8)]
    }

    /// Remembers that `key` stands at the next position, unless it is known already.
    private func remember(
        _ key: DedupeKey, _ keys: inout KnownKeys?, in commit: inout OpenCommit,
        _ container: StoredContainer
    ) throws -> AppendOutcome? {
        let window =
            key.window
            ?? (key.kind == .content ? settings.contentDedupeWindow : settings.dedupeWindow)
        let name = name(of: key, in: container)
        let until = now.advanced(by: window).stored
        let value: StatementArguments = [Data(key.digest), commit.next.stored, until]
        let statement = try commit.statement(.remember)
        if let known = keys?[name], !known.givesWay(to: key, at: now) {
            return Self.outcome(of: key, at: known.position, known.digest)
        }
        guard keys == nil else {
            try statement.execute(arguments: name + value + [now.stored])
            keys?[name] = KnownKeys.Place(
                digest: Data(key.digest), position: commit.next, rememberedUntil: until)
            return nil
        }
        let count = try statement.executeCounting(arguments: name + value + [now.stored])
        if count > 0 { return nil }
        let known = try commit.statement(.known)
        guard let row = try Row.fetchOne(known, arguments: name) else { return nil }
        return Self.outcome(of: key, at: LogPosition(stored: row["position"]), row["digest"])
    }

    /// What becomes of a change whose key is known, by the digest that is remembered.
    private static func outcome(
        of key: DedupeKey, at position: LogPosition, _ digest: Data
    ) -> AppendOutcome {
        digest == Data(key.digest) ? .duplicate(position) : .conflict(position)
    }

    /// What is noted of the versions of all records, where each question would be waited for; `nil`
    /// where each is asked for in its turn.
    private func knownVersions(
        of changes: [PreparedChange], in commit: inout OpenCommit, _ container: StoredContainer
    ) throws -> KnownVersions? {
        let versioned = changes.map(\.change).filter { $0.version != nil }
        guard commit.db.dialect == .postgresql, versioned.count > 1 else { return nil }
        return try KnownVersions(
            versioned, named: versioned.map { name(of: $0, in: container) },
            by: try commit.statement(.knownVersion))
    }

    /// What is kept of the records of some changes, where each question would be waited for; `nil`
    /// where each is asked for in its turn.
    private func knownRecords(
        of changes: some Collection<PreparedChange>, in commit: inout OpenCommit,
        _ container: StoredContainer
    ) throws -> KnownRecords? {
        guard commit.db.dialect == .postgresql, changes.count > 1 else { return nil }
        var kept: [RecordChange] = []
        for change in changes.map(\.change) {
            if try commit.isKept(change.recordType, of: container) { kept.append(change) }
        }
        guard kept.count > 1 else { return nil }
        return try KnownRecords(of: kept, in: container, commit.db)
    }

    private func name(
        of change: RecordChange, in container: StoredContainer
    ) -> StatementArguments {
        let zoneID = change.recordID.zoneID
        return [
            container.id, change.database.rawValue, change.owner?.rawValue ?? "",
            zoneID.ownerRecordName?.rawValue ?? "", zoneID.zoneName, change.recordType.rawValue,
            change.recordID.recordName.rawValue,
        ]
    }

    /// Notes the version of a record, and says whether a later one was noted before.
    ///
    /// Versions of different sources cannot be compared; the last source wins.
    private func isStale(
        _ change: RecordChange, _ versions: inout KnownVersions?, in commit: inout OpenCommit,
        _ container: StoredContainer
    ) throws -> Bool {
        guard let version = change.version else { return false }
        let noted: StatementArguments = [
            source.rawValue, version, commit.next.stored, now.stored,
        ]
        let arguments = name(of: change, in: container) + noted
        let statement = try commit.statement(.noteVersion)
        guard versions != nil else {
            return try statement.executeCounting(arguments: arguments) == 0
        }
        if versions?.isStale(change, of: source) == true { return true }
        try statement.execute(arguments: arguments)
        versions?.note(change, of: source)
        return false
    }
}

/// How many rows of records one transaction writes on PostgreSQL.
private struct RowsWritten {
    private(set) var count = 0
    private var met: Set<RecordAddress> = []

    mutating func note(
        _ prepared: PreparedChange, in commit: inout OpenCommit, _ container: StoredContainer
    ) throws {
        let change = prepared.change
        // What is said last of a record, its version, and what is kept of it has a row of its own.
        var hasRow = change.version != nil || prepared.key?.kind == .content
        if !hasRow { hasRow = try commit.isKept(change.recordType, of: container) }
        guard hasRow else { return }
        let address = RecordAddress(
            change.recordID, database: change.database, owner: change.owner)
        count += met.insert(address).inserted ? 1 : AppendStep.rowsOfOneAgain
    }
}
