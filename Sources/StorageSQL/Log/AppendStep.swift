import FoundationEssentials
import RelayModel
import Storage

/// Appends the changes of one request, as many as one transaction takes, so that other requests can
/// write in between.
struct AppendStep: Sendable {
    let changes: [PreparedChange]
    let delivery: DedupeKey?
    let source: SourceName
    let now: Timestamp
    let settings: StoreSettings

    /// The maximum number of rows that one transaction writes beside the log on PostgreSQL, because
    /// all other writers wait for it.
    ///
    /// A row that was already written in the transaction counts as several, because reading and
    /// writing it again walks over all the versions that the transaction made: a thousand changes
    /// of one record take seconds.
    static let (mostRows, rowsOfOneAgain) = (256, 8)

    func run(
        in commit: inout OpenCommit, container: StoredContainer
    ) throws -> [AppendOutcome] {
        // The remaining changes are looked up with their own part. Otherwise each part would look
        // up all of them while all other writers wait.
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
                // Even a short change of a kept record contains the whole record twice.
                bytes += commit.bytes(since: beginning)
                guard bytes < RecordEditAllowance.maximumBytes else { break appending }
            }
        }
        try kept.end(in: commit.db)
        return outcomes
    }

    /// Returns the first changes that together write as many rows as one transaction may, at least
    /// one.
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
        // The version of a kept record is that of its last change, which may be none.
        if filling?.isWritten == true { versions?.note(prepared.change, of: source) }
        return isStale ? .appendedAsStale(position) : .appended(position)
    }

    /// Returns what is remembered of all keys, if each lookup is a round trip, or `nil` if keys are
    /// looked up one by one.
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

    /// Remembers `key` with the next position, unless it is already known.
    ///
    /// Returns the outcome for a known key.
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

    /// Returns the outcome for a change whose key is known with this digest.
    private static func outcome(
        of key: DedupeKey, at position: LogPosition, _ digest: Data
    ) -> AppendOutcome {
        digest == Data(key.digest) ? .duplicate(position) : .conflict(position)
    }

    /// Returns the noted versions of all records, if each lookup is a round trip, or `nil` if they
    /// are looked up one by one.
    private func knownVersions(
        of changes: [PreparedChange], in commit: inout OpenCommit, _ container: StoredContainer
    ) throws -> KnownVersions? {
        let versioned = changes.map(\.change).filter { $0.version != nil }
        guard commit.db.dialect == .postgresql, versioned.count > 1 else { return nil }
        return try KnownVersions(
            versioned, named: versioned.map { name(of: $0, in: container) },
            by: try commit.statement(.knownVersion))
    }

    /// Returns the kept records of some changes, if each lookup is a round trip, or `nil` if they
    /// are looked up one by one.
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

    /// Notes the version of a record, and returns whether a later version was noted before.
    ///
    /// Versions of different sources cannot be compared. The last source wins.
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

/// Counts the rows of records that one transaction writes on PostgreSQL.
private struct RowsWritten {
    private(set) var count = 0
    private var met: Set<RecordAddress> = []

    mutating func note(
        _ prepared: PreparedChange, in commit: inout OpenCommit, _ container: StoredContainer
    ) throws {
        let change = prepared.change
        // The latest content key of a record, its version, and its kept version are each stored in
        // a row for the record.
        var hasRow = change.version != nil || prepared.key?.kind == .content
        if !hasRow { hasRow = try commit.isKept(change.recordType, of: container) }
        guard hasRow else { return }
        let address = RecordAddress(
            change.recordID, database: change.database, owner: change.owner)
        count += met.insert(address).inserted ? 1 : AppendStep.rowsOfOneAgain
    }
}
