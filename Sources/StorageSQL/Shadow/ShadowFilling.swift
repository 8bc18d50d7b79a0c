import RelayModel
import Storage

/// What a change that a source posted does to the shadow: the record's last version completes its
/// images, and the change becomes the last version.
struct ShadowFilling {
    /// The change with its images completed.
    let change: RecordChange
    /// Its text, if it is the one that was prepared.
    let text: String?
    private let shadowRows: ShadowRows
    private let current: ShadowRecord?
    private let source: SourceName
    private let now: Timestamp
    /// Whether the change is the record's creation.
    private let isCreation: Bool
    /// Whether the record is written; a new one is not where a quota is reached.
    let isWritten: Bool

    /// Completes a change, or returns `nil` if its record type is not kept.
    ///
    /// `kept` is known of the request.
    init?(
        _ prepared: PreparedChange, source: SourceName, at now: Timestamp,
        knowing kept: inout KeptTogether, in commit: inout OpenCommit,
        _ container: StoredContainer
    ) throws {
        let change = prepared.change
        guard try commit.isKept(change.recordType, of: container) else { return nil }
        let place = RecordPlace(
            container: container.key, database: change.database, owner: change.owner)
        let rows = ShadowRows(place: place, container: container)
        shadowRows = rows
        let found =
            try kept.records?.take(change) ?? rows.records(named: change.recordID, in: commit.db)
        current = found.first { $0.recordType == change.recordType }
        self.source = source
        self.now = now
        isWritten = try Self.hasRoom(
            for: change, bytes: prepared.body.utf8.count, current, shadowRows, &kept, in: commit)
        var completed = change.completed(by: current)
        if let former = change.movedFrom, change.after?.completeness == .partial,
            let kept = try Self.kept(at: former, before: change, source, container, commit)
        {
            completed.takeOver(kept)
        }
        let earlier = try Self.readers(of: current, shadowRows, in: &commit)
        completed.inheritReaders(of: current, whoReadBefore: earlier)
        completed.noteKept(current)
        isCreation = Self.isCreation(completed, of: current)
        if isCreation, current?.isDeleted == false {
            completed.created = RecordTrace(
                at: completed.occurredAt ?? now, userID: completed.editor)
            // Who could read it by having made it would else be looked for by the new creator.
            completed.kept?.readers = earlier
        }
        if isCreation, let former = change.movedFrom, change.database == .public {
            completed.created = RecordTrace(
                at: completed.occurredAt ?? now,
                userID: try Self.creator(
                    at: former, of: former.recordType ?? change.recordType, container, commit))
        }
        completed.isUnkept = !isWritten
        self.change = completed
        text = completed == change ? prepared.body : nil
    }

    /// What was kept of a record where it lay before `change`, if the last that happened there is
    /// that the same source deleted it.
    ///
    /// The log is asked, and not the changes of the same request: of a request that comes again
    /// the deletion may have been taken before.
    private static func kept(
        at former: RecordAddress, before change: RecordChange, _ source: SourceName,
        _ container: StoredContainer, _ commit: OpenCommit
    ) throws -> KeptState? {
        let place = RecordPlace(
            container: container.key, database: former.database, owner: former.owner)
        let rows = ShadowRows(place: place, container: container)
        let type = former.recordType ?? change.recordType
        let record = try rows.records(named: former.recordID, in: commit.db)
            .first { $0.recordType == type }
        guard let record, record.isDeleted else { return nil }
        let row = try Row.fetchOne(
            commit.db.cachedStatement(
                sql: """
                    SELECT body FROM logEntry
                    WHERE position = ? AND container = ? AND source = ? AND kind = 1
                    """),
            arguments: [record.position.stored, container.id, source.rawValue])
        guard let row else { return nil }
        let stored = StoredRow(row: row, table: "logEntry")
        do {
            let deletion = try RecordChange(storedForm: try stored.json("body"))
            guard deletion.operation == .delete else { return nil }
            return KeptState(image: deletion.before, readers: record.readers)
        } catch is JSONContractError {
            throw stored.damage("body")
        }
    }

    /// Who created the record that lay where its source has given it another name or place now:
    /// whoever did that has not made it.
    private static func creator(
        at former: RecordAddress, of type: RecordType, _ container: StoredContainer,
        _ commit: OpenCommit
    ) throws -> UserID? {
        let place = RecordPlace(
            container: container.key, database: former.database, owner: former.owner)
        let rows = ShadowRows(place: place, container: container)
        let record = try rows.records(named: former.recordID, in: commit.db)
            .first { $0.recordType == type }
        // What lies there again is another one.
        return record.flatMap { $0.isDeleted ? $0.created.userID : nil }
    }

    /// Who created the record, where that is known and not this change.
    var creator: UserID? {
        guard isCreation else { return current?.created.userID }
        return change.movedFrom == nil ? nil : change.created?.userID
    }

    /// Whether a change is the creation of a record of which `current` is kept.
    ///
    /// So it is where nothing is kept, and where its source creates what a client has made, or
    /// somebody else's: else whoever takes the name of a record before its database creates it
    /// would be its creator, and read and write it.
    private static func isCreation(_ change: RecordChange, of current: ShadowRecord?) -> Bool {
        guard let current, !current.isDeleted else { return true }
        guard change.operation == .create else { return false }
        guard let editor = change.editor else { return current.source == .cloudKit }
        // Who gives a row another name has not made it, also where they took that name before.
        let isMove = change.movedFrom != nil && change.database == .public
        if isMove, current.source == .cloudKit { return true }
        // Rows of a snapshot that is made again do not say who created them.
        return editor != current.created.userID
            && (!change.isSnapshot || current.source == .cloudKit)
    }

    /// Who may read the record as it is kept, as far as anybody or the schema says; `nil` for
    /// everybody.
    private static func readers(
        of current: ShadowRecord?, _ shadowRows: ShadowRows, in commit: inout OpenCommit
    ) throws -> [String]? {
        guard let current, !current.isDeleted else { return nil }
        if current.readers != nil || shadowRows.place.database != .public { return current.readers }
        return try commit.readGrant(of: current.recordType, in: shadowRows.container)
            .readers(createdBy: current.created.userID)
    }

    /// Whether the container may have one more record; one that is there is always kept as it is.
    private static func hasRoom(
        for change: RecordChange, bytes: Int, _ current: ShadowRecord?, _ shadowRows: ShadowRows,
        _ kept: inout KeptTogether, in commit: OpenCommit
    ) throws -> Bool {
        if let current, change.operation == .delete || !current.isDeleted { return true }
        let ledger = commit.ledger(of: shadowRows.container)
        if try !kept.hasRoomForAll(by: ledger) {
            let growth = Growth(
                number: change.operation == .delete ? 0 : 1,
                bytes: ShadowRecord.bytesOfRow + bytes)
            guard try ledger.refusal(of: .records, growingBy: growth) == nil else { return false }
        }
        return try kept.hasRoom(for: change.recordID.zoneID, shadowRows, in: commit)
    }

    /// Makes the change the last version of its record, at its position; where there is no room for
    /// the record, that is counted, and the change fires all the same.
    func write(
        at position: LogPosition, _ kept: inout KeptTogether, in commit: OpenCommit
    ) throws {
        guard isWritten else { return try commit.ledger(of: shadowRows.container).noteUnkept() }
        let stamp = RecordStamp(
            at: change.occurredAt ?? now, userID: change.editor,
            deviceID: change.origin.deviceID)
        var record = ShadowRecord(
            recordID: change.recordID, recordType: change.recordType, fields: [:],
            readers: change.readers,
            created: isCreation ? creation(by: stamp) : current?.created ?? stamp,
            modified: stamp, source: source, position: position)
        if change.operation == .delete {
            record.isDeleted = true
        } else if let after = change.after {
            record.fields = after.fields.filter { !$0.value.isNull }
            record.isPartial = after.completeness == .partial
        } else {
            // The source says only that something changed.
            record.fields = current?.fields ?? [:]
            record.isPartial = true
        }
        // What clients wrote beyond the values of their record holds for as long as the value does.
        for member in isCreation ? [] : current?.wire.members ?? []
        where current?.fields[member.name] == record.fields[member.name] {
            record.wire[member.name] = member.value
        }
        try shadowRows.put(record, version: change.version, in: commit.db)
        try kept.note(change.recordID.zoneID, shadowRows, at: position, in: commit.db)
    }

    /// The creation of a record that nothing was known of, by the stamp of the change.
    ///
    /// Whoever only changed what was there before the relay heard of it, or gave it another name,
    /// has not made it, and is not to read and write it as if.
    private func creation(by stamp: RecordStamp) -> RecordStamp {
        guard shadowRows.place.database == .public,
            change.operation != .create || change.movedFrom != nil
        else { return stamp }
        return RecordStamp(at: stamp.at, userID: creator, deviceID: nil)
    }
}

extension RecordChange {
    /// A record's readers are its readers until a change names others: one that names none must
    /// not show everybody what the relay kept for a few.
    ///
    /// `earlier` are those who may read what was kept; `nil` for everybody. What is told of a
    /// deletion is the record as it was, so that naming others shows it to nobody anew.
    mutating func inheritReaders(of shadow: ShadowRecord?, whoReadBefore earlier: [String]?) {
        guard let shadow, !shadow.isDeleted else { return }
        guard let named = readers else { return readers = shadow.readers }
        guard let earlier, !RecordChange.isSame(named, as: earlier) else { return }
        switch operation {
        case .create: return
        case .update: readersBefore = earlier
        case .delete: readers = RecordChange.common(named, earlier)
        }
    }

    /// What a creation does not say of a record that its source gave another name is as it was when
    /// it was called otherwise: the log of a database leaves out large values that did not change.
    mutating func takeOver(_ former: KeptState) {
        if readers == nil { readers = former.readers }
        if let image = former.image, let after { self.after = image.completed(by: after) }
    }

    /// Notes what the relay kept of the record, if the change does not say the same: whoever shows
    /// what is kept follows that, and not what the source believes.
    mutating func noteKept(_ shadow: ShadowRecord?) {
        let known = shadow.flatMap { $0.isDeleted ? nil : $0 }
        let image = known.map {
            RecordImage($0.fields, completeness: $0.isPartial ? .partial : .full)
        }
        let stated = operation == .create ? nil : before
        let isSame =
            stated == image
            && (known == nil
                || RecordChange.isSame(readersBefore ?? readers, as: known?.readers))
        guard !isSame else { return }
        kept = KeptState(image: image, readers: known?.readers)
        // A creation says when and by whom it was itself, and nothing of what was there before.
        guard operation == .create, let known else { return }
        kept?.created = RecordTrace(known.created)
        kept?.modified = RecordTrace(known.modified)
    }

    /// The change with what the last known version of its record adds to its images.
    func completed(by shadow: ShadowRecord?) -> RecordChange {
        guard let shadow, !shadow.isDeleted, operation != .create else { return self }
        var change = self
        change.created = RecordTrace(shadow.created)
        change.formerlyModified = RecordTrace(shadow.modified)
        let known = RecordImage(
            shadow.fields, completeness: shadow.isPartial ? .partial : .full)
        change.before = known.overlaid(with: before)
        if let after, after.completeness == .partial { change.after = known.completed(by: after) }
        return change
    }
}
