import RelayModel
import Storage

/// Applies the operations of one request to the records of one database.
struct RecordEditStep {
    let shadowRows: ShadowRows
    let editor: RecordEditor
    let now: Timestamp
    /// The zones to update when all operations have been applied.
    let zones = ZoneNotes()
    /// The data that the operations need, read for several operations at once.
    let together = EditsTogether()

    func run(
        _ edits: [RecordEdit], _ atomicity: EditAtomicity,
        within allowance: inout RecordEditAllowance, in commit: inout OpenCommit
    ) throws -> [RecordEditOutcome] {
        let beginning = commit.bookmark
        together.expect(edits)
        let outcomes = try commit.apply(edits, atomicity) { edit, commit -> RecordEditOutcome in
            guard !allowance.isUnfinished else { return .refused(.unfinished) }
            guard commit.bytes(since: beginning) < allowance.appended else {
                return .refused(.tooMuchAtOnce(bytes: RecordEditAllowance.maximumBytes))
            }
            let outcome = try apply(edit, within: &allowance.cascade, in: &commit)
            allowance.isUnfinished = outcome.isUnfinished
            if !outcome.isUnfinished { allowance.cascade.finish() }
            return outcome.told(within: &allowance.told)
        }
        // Undone operations have changed no zone.
        let isUndone = atomicity == .allOrNothing && outcomes.contains(where: \.isRefusal)
        if isUndone { zones.forget() } else { try zones.end(shadowRows, in: commit.db) }
        allowance.appended -= commit.bytes(since: beginning)
        return outcomes
    }

    /// Applies one operation: the record, the records deleted along with it, and the changes in the
    /// log.
    ///
    /// The zone is updated at the end.
    func apply(
        _ edit: RecordEdit, within room: inout CascadeRoom, in commit: inout OpenCommit
    ) throws -> RecordEditOutcome {
        let zoneID = edit.recordID.zoneID
        if zoneID != .default, try !together.hasZone(zoneID, shadowRows, in: commit.db) {
            return .refused(.zoneNotFound)
        }
        let current = try current(for: edit, in: commit.db)
        if let current, !current.isDeleted, room.isOther(current.created) {
            return .deleted(edit.recordID)
        }
        let isHidden = try current.map { try !isReadable($0, in: &commit) } ?? false
        switch edit.decide(
            on: current, isHidden: isHidden, in: shadowRows.place, by: editor, at: now)
        {
        case .failure(let refused): return .refused(refused.refusal)
        case .success(nil): return .deleted(edit.recordID)
        case .success(let decision?):
            try refuseUnkept(decision.record.recordType, in: &commit)
            if let missing = try missingReference(of: edit, in: &commit) {
                return .refused(.missingReference(missing))
            }
            if let refusal = try refusal(of: decision.record, replacing: current, in: commit) {
                return .refused(.overQuota(refusal))
            }
            return try apply(decision, within: &room, in: &commit)
        }
    }

    /// Throws if the type is no longer kept.
    ///
    /// A client that read the schema before would otherwise leave a record among those being
    /// deleted, at a place that the deletion has already passed.
    private func refuseUnkept(_ type: RecordType, in commit: inout OpenCommit) throws {
        guard try !commit.isKept(type, of: shadowRows.container) else { return }
        try UnkeptTypes(container: shadowRows.container).refuse([type], in: commit.db)
    }

    /// Returns the first record that the operation refers to and requires, but that does not exist
    /// for the editor.
    ///
    /// There may be a thousand, and all other writers wait. So they are looked up in portions,
    /// which saves round trips.
    private func missingReference(
        of edit: RecordEdit, in commit: inout OpenCommit
    ) throws -> RecordID? {
        let ids = edit.validated.filter { $0 != edit.recordID }
        let portion = KnownRecords.mostTogether
        for start in stride(from: 0, to: ids.count, by: portion) {
            let asked = ids[start...].prefix(portion)
            for (id, targets) in zip(asked, try shadowRows.heads(named: asked, in: commit.db)) {
                var isThere = false
                for target in targets where !isThere && !target.isDeleted {
                    isThere = try isReadable(target, in: &commit)
                }
                if !isThere { return id }
            }
        }
        return nil
    }

    /// Returns whether the editor may know of a record.
    private func isReadable(
        _ record: ShadowRecord, in commit: inout OpenCommit
    ) throws -> Bool {
        guard !editor.isServer else { return true }
        if let readers = record.readers { return RecordChange.names(editor.userID, in: readers) }
        guard shadowRows.place.database == .public else { return true }
        return try commit.readGrant(of: record.recordType, in: shadowRows.container)
            .admits(editor.userID, createdBy: record.created.userID)
    }

    private func apply(
        _ decision: RecordDecision, within room: inout CascadeRoom, in commit: inout OpenCommit
    ) throws -> RecordEditOutcome {
        guard decision.record.isDeleted else {
            return .saved(try write(decision, in: &commit))
        }
        room.begin(decision.record.created)
        guard try deleteFollowers(of: decision.record, within: &room, in: &commit) else {
            return .refused(.unfinished)
        }
        return .deleted(try write(decision, in: &commit).recordID)
    }

    /// Appends the change and writes the record.
    ///
    /// The zone is updated at the end of the request.
    func write(
        _ decision: RecordDecision, in commit: inout OpenCommit
    ) throws -> ShadowRecord {
        var record = decision.record
        record.position = try commit.append(
            decision.change, createdBy: record.created.userID, source: .cloudKit, isStale: false,
            in: shadowRows.container, at: now)
        try shadowRows.put(record, version: nil, in: commit.db)
        together.forget(record.recordID)
        zones.note(record.recordID.zoneID, at: record.position)
        return record
    }

    /// Returns the record that an operation refers to.
    ///
    /// In CloudKit, names are unique in a zone. A source's names are keys of tables and therefore
    /// unique only within their type.
    private func current(for edit: RecordEdit, in db: Database) throws -> ShadowRecord? {
        let found = try together.records(named: edit.recordID, shadowRows, in: db)
        let records = found.sorted {
            $0.isDeleted == $1.isDeleted
                ? $0.isMeant(over: $1, by: editor.userID, in: shadowRows.place.database)
                : $1.isDeleted
        }
        guard let type = edit.recordType else { return records.first }
        let ofType = records.first { $0.recordType == type }
        // A repeated forced deletion has nothing left to do. It must not apply to another record.
        if let ofType, !ofType.isDeleted || edit.kind == .forceDelete { return ofType }
        return records.first { !$0.isDeleted && $0.source == .cloudKit } ?? ofType
    }
}

extension RecordEditOutcome: EditOutcome {
    /// Whether the operation was refused.
    var isRefusal: Bool {
        if case .refused = self { true } else { false }
    }
}
