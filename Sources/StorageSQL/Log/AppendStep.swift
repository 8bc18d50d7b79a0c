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
        try commit.lookUp(names(in: part, container))
        if let delivery,
            case .conflict(let position)? = try remember(delivery, in: &commit, container)
        {
            return changes.map { _ in .conflict(position) }
        }
        var outcomes: [AppendOutcome] = []
        outcomes.reserveCapacity(part.count)
        var kept = KeptTogether(part)
        var bytes = 0
        appending: for start in stride(from: 0, to: part.count, by: KnownRecords.mostTogether) {
            let some = part[start...].prefix(KnownRecords.mostTogether)
            kept.records = try knownRecords(of: some, in: &commit, container)
            for change in some {
                let beginning = commit.bookmark
                let outcome = try append(change, &kept, in: &commit, container)
                outcomes.append(outcome)
                // Even a short change of a kept record contains the whole record twice.
                bytes += commit.bytes(since: beginning)
                guard bytes < RecordEditAllowance.maximumBytes, !commit.isFull else {
                    break appending
                }
            }
        }
        try kept.end(in: commit.db)
        return outcomes
    }

    /// Notes what the first part of the request will look up.
    func look(
        ahead lookahead: inout Lookahead, in commit: inout OpenCommit, _ container: StoredContainer
    ) throws {
        let names = names(in: try atOnce(in: &commit, container), container)
        lookahead.keys += names.keys
        lookahead.versions += names.versions
    }

    private func names(
        in part: [PreparedChange], _ container: StoredContainer
    ) -> Lookahead {
        let keys = [delivery].compactMap(\.self) + part.compactMap(\.key)
        return Lookahead(
            keys: keys.map { name(of: $0, in: container) },
            versions: part.lazy.map(\.change).filter { $0.version != nil }
                .map { name(of: $0, in: container) })
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
        _ prepared: PreparedChange, _ kept: inout KeptTogether, in commit: inout OpenCommit,
        _ container: StoredContainer
    ) throws -> AppendOutcome {
        if let key = prepared.key,
            let known = try remember(key, in: &commit, container)
        {
            return known
        }
        let isStale = try isStale(prepared.change, in: &commit, container)
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
        if filling?.isWritten == true, commit.looksAhead {
            commit.versions.note(
                prepared.change.version, of: name(of: prepared.change, in: container),
                from: source)
        }
        return isStale ? .appendedAsStale(position) : .appended(position)
    }

    private func name(of key: DedupeKey, in container: StoredContainer) -> RowName {
        RowName([container.id, source.rawValue, key.kind.stored, Data(key.text.utf8)])
    }

    /// Remembers `key` with the next position, unless it is already known.
    ///
    /// Returns the outcome for a known key.
    private func remember(
        _ key: DedupeKey, in commit: inout OpenCommit, _ container: StoredContainer
    ) throws -> AppendOutcome? {
        let window =
            key.window
            ?? (key.kind == .content ? settings.contentDedupeWindow : settings.dedupeWindow)
        let name = name(of: key, in: container)
        let until = now.advanced(by: window).stored
        let value: StatementArguments = [Data(key.digest), commit.next.stored, until]
        guard commit.looksAhead else {
            let statement = try commit.statement(.remember)
            let count = try statement.executeCounting(
                arguments: name.arguments + value + [now.stored])
            if count > 0 { return nil }
            let known = try commit.statement(.known)
            guard let row = try Row.fetchOne(known, arguments: name.arguments) else { return nil }
            return Self.outcome(of: key, at: LogPosition(stored: row["position"]), row["digest"])
        }
        if let known = commit.keys.place(of: name), !known.givesWay(to: key, at: now) {
            return Self.outcome(of: key, at: known.position, known.digest)
        }
        try commit.statement(.rememberAnew).insert(
            name.arguments + value, keyColumns: name.arguments.values.count)
        commit.keys.note(
            KnownKeys.Place(
                digest: Data(key.digest), position: commit.next, rememberedUntil: until),
            of: name)
        return nil
    }

    /// Returns the outcome for a change whose key is known with this digest.
    private static func outcome(
        of key: DedupeKey, at position: LogPosition, _ digest: Data
    ) -> AppendOutcome {
        digest == Data(key.digest) ? .duplicate(position) : .conflict(position)
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
    ) -> RowName {
        let zoneID = change.recordID.zoneID
        return RowName([
            container.id, change.database.rawValue, change.owner?.rawValue ?? "",
            zoneID.ownerRecordName?.rawValue ?? "", zoneID.zoneName, change.recordType.rawValue,
            change.recordID.recordName.rawValue,
        ])
    }

    /// Notes the version of a record, and returns whether a later version was noted before.
    ///
    /// Versions of different sources cannot be compared. The last source wins.
    private func isStale(
        _ change: RecordChange, in commit: inout OpenCommit, _ container: StoredContainer
    ) throws -> Bool {
        guard let version = change.version else { return false }
        let name = name(of: change, in: container)
        let noted: StatementArguments = [
            source.rawValue, version, commit.next.stored, now.stored,
        ]
        let statement = try commit.statement(.noteVersion)
        guard commit.looksAhead else {
            return try statement.executeCounting(arguments: name.arguments + noted) == 0
        }
        if commit.versions.isStale(version, of: name, from: source) { return true }
        try statement.insert(name.arguments + noted, keyColumns: name.arguments.values.count)
        commit.versions.note(version, of: name, from: source)
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
