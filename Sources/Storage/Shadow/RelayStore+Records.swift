import GRDB
package import RelayModel

extension RelayStore: Shadow {
    package func modify(
        _ edits: [RecordEdit], in place: RecordPlace, by editor: RecordEditor,
        atomicity: EditAtomicity, additions: [RecordTypeDefinition], at now: Timestamp
    ) async throws -> [RecordEditOutcome] {
        guard !edits.isEmpty else { return [] }
        let outcomes = try await admitted { store in
            try await store.write(.intake, changes: edits.count) { commit in
                let shelf = ShadowShelf(
                    place: place, container: try commit.container(place.container))
                try SchemaStep(container: shelf.container).add(additions, in: commit.db)
                let step = RecordEditStep(shelf: shelf, editor: editor, now: now)
                return try step.run(edits, atomicity, in: &commit)
            }
        }
        if !additions.isEmpty { schemas.forget(place.container) }
        return outcomes
    }

    package func records(
        named ids: [RecordID], in place: RecordPlace
    ) async throws -> [ShadowRecord] {
        try await read { db in
            guard let container = try db.containerIfKnown(place.container) else { return [] }
            let shelf = ShadowShelf(place: place, container: container)
            return try ids.flatMap { try shelf.records(named: $0, in: db) }
                .filter { !$0.isDeleted }
        }
    }

    package func foldRecords<Value: Sendable>(
        of type: RecordType, in place: RecordPlace, zoneID: ZoneID?, after cursor: RecordID?,
        into initial: Value,
        _ step: @escaping @Sendable (inout Value, ShadowRecord) throws -> Bool
    ) async throws -> Value {
        try await read { db in
            var value = initial
            guard let container = try db.containerIfKnown(place.container) else { return value }
            let shelf = ShadowShelf(place: place, container: container)
            let (sql, arguments) = shelf.selection(of: type, zoneID: zoneID, after: cursor)
            let rows = try Row.fetchCursor(db, sql: sql, arguments: arguments)
            while let row = try rows.next() {
                guard try step(&value, try ShadowRecord(row: row)) else { break }
            }
            return value
        }
    }

    package func recordChanges(
        in zoneID: ZoneID, of place: RecordPlace, after position: LogPosition, limit: Int
    ) async throws -> [ShadowRecord] {
        try await read { db in
            guard let container = try db.containerIfKnown(place.container) else { return [] }
            let shelf = ShadowShelf(place: place, container: container)
            return try Row.fetchAll(
                db,
                sql: """
                    SELECT * FROM shadowRecord
                    WHERE \(ShadowShelf.zoneCondition) AND isKept = 1 AND position > ?
                    ORDER BY position LIMIT ?
                    """, arguments: shelf.zone(zoneID) + [position.stored, max(0, limit)]
            ).map(ShadowRecord.init(row:))
        }
    }
}

extension ShadowShelf {
    /// The live records of one type, in the order of the key.
    func selection(
        of type: RecordType, zoneID: ZoneID?, after cursor: RecordID?
    ) -> (sql: String, arguments: StatementArguments) {
        var sql = "SELECT * FROM shadowRecord WHERE "
        var arguments: StatementArguments
        if let zoneID {
            sql += Self.zoneCondition
            arguments = zone(zoneID)
        } else {
            sql += "container = ? AND database = ? AND owner = ?"
            arguments = [container.id, place.database.rawValue, place.owner?.rawValue ?? ""]
        }
        sql += " AND recordType = ? AND isKept = 1 AND isDeleted = 0"
        arguments += [type.rawValue]
        if let cursor {
            sql += " AND (zoneOwner, zoneName, recordName) > (?, ?, ?)"
            arguments += [
                cursor.zoneID.ownerRecordName?.rawValue ?? "", cursor.zoneID.zoneName,
                cursor.recordName.rawValue,
            ]
        }
        return (sql + " ORDER BY zoneOwner, zoneName, recordName", arguments)
    }
}

/// Applies the operations of one request on the records of one database.
struct RecordEditStep {
    let shelf: ShadowShelf
    let editor: RecordEditor
    let now: Timestamp

    func run(
        _ edits: [RecordEdit], _ atomicity: EditAtomicity, in commit: inout OpenCommit
    ) throws -> [RecordEditOutcome] {
        try commit.apply(edits, atomicity) { try apply($0, in: &$1) }
    }

    /// Applies one operation: the record, the change in the log, and the zone's mark.
    func apply(_ edit: RecordEdit, in commit: inout OpenCommit) throws -> RecordEditOutcome {
        let zoneID = edit.recordID.zoneID
        if zoneID != .default, try shelf.zone(zoneID, in: commit.db) == nil {
            return .refused(.zoneNotFound)
        }
        let current = try current(for: edit, in: commit.db)
        switch edit.decide(on: current, in: shelf.place, by: editor, at: now) {
        case .failure(let refused): return .refused(refused.refusal)
        case .success(nil): return .deleted(edit.recordID)
        case .success(let decision?):
            if let missing = try missingReference(of: edit, in: commit.db) {
                return .refused(.missingReference(missing))
            }
            return try apply(decision, in: &commit)
        }
    }

    /// The first record that the operation refers to, must be there, and is not.
    private func missingReference(of edit: RecordEdit, in db: Database) throws -> RecordID? {
        try edit.validated.first { id in
            try id != edit.recordID
                && shelf.records(named: id, in: db).allSatisfy(\.isDeleted)
        }
    }

    private func apply(
        _ decision: RecordDecision, in commit: inout OpenCommit
    ) throws -> RecordEditOutcome {
        let record = try write(decision, in: &commit)
        guard record.isDeleted else { return .saved(record) }
        try cascade(from: record, in: &commit)
        return .deleted(record.recordID)
    }

    /// Appends the change and writes the record.
    func write(
        _ decision: RecordDecision, in commit: inout OpenCommit
    ) throws -> ShadowRecord {
        var record = decision.record
        record.position = try commit.append(
            .change(decision.change, source: .cloudKit, isStale: false),
            storedBody: JSONValue.object(decision.change.storedForm).text,
            in: shelf.container, at: now)
        try shelf.write(record, version: nil, in: commit.db)
        return record
    }

    /// The record that an operation means.
    ///
    /// CloudKit's names are unique in a zone; those of a
    /// source's records only within their type, because they are keys of tables.
    private func current(for edit: RecordEdit, in db: Database) throws -> ShadowRecord? {
        let records = try shelf.records(named: edit.recordID, in: db)
            .sorted { ($0.isDeleted ? 1 : 0, $1.position) < ($1.isDeleted ? 1 : 0, $0.position) }
        guard let type = edit.recordType else { return records.first }
        return records.first { $0.recordType == type && !$0.isDeleted }
            ?? records.first { !$0.isDeleted && $0.source == .cloudKit }
            ?? records.first { $0.recordType == type }
    }
}

extension RecordEditOutcome {
    /// Whether it was refused.
    var isRefusal: Bool {
        if case .refused = self { true } else { false }
    }
}
