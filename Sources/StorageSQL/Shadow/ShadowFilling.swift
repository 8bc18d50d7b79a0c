import RelayModel
import Storage

/// The effect of a source's change on the kept records: the record's last version completes the
/// change's images, and the change becomes the last version.
struct ShadowFilling {
    /// The change with its images completed.
    let change: RecordChange
    /// The prepared text of the change; `nil` if the completed change differs from it.
    let text: String?
    private let shadowRows: ShadowRows
    private let current: ShadowRecord?
    private let source: SourceName
    private let now: Timestamp
    /// Whether the change counts as the record's creation.
    private let isCreation: Bool
    /// Whether the record is written.
    ///
    /// A new one is not if a quota is reached.
    let isWritten: Bool

    /// Completes a change, or returns `nil` if its record type is not kept.
    ///
    /// `kept` holds the data shared by the changes of the request.
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
            // The readers of the kept version are recorded, because they would otherwise be
            // derived from the new creator.
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

    /// Returns what was kept of a record at its place before a move, if the last event there is its
    /// deletion by the same source.
    ///
    /// The log is searched, not the changes of the same request, because in a repeated request the
    /// deletion may have been appended earlier.
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

    /// Returns the creator of the record at the place from which its source moved it.
    ///
    /// The user who moved it has not created it.
    private static func creator(
        at former: RecordAddress, of type: RecordType, _ container: StoredContainer,
        _ commit: OpenCommit
    ) throws -> UserID? {
        let place = RecordPlace(
            container: container.key, database: former.database, owner: former.owner)
        let rows = ShadowRows(place: place, container: container)
        let record = try rows.records(named: former.recordID, in: commit.db)
            .first { $0.recordType == type }
        // A live record at that place is another record.
        return record.flatMap { $0.isDeleted ? $0.created.userID : nil }
    }

    /// The creator of the record, if it is known from before this change.
    var creator: UserID? {
        guard isCreation else { return current?.created.userID }
        return change.movedFrom == nil ? nil : change.created?.userID
    }

    /// Returns whether a change is the creation of a record with the kept version `current`.
    ///
    /// It is one if nothing is kept, or if the source creates a record that a client or another
    /// user had created under this name. Otherwise a client that takes the name of a record before
    /// its database creates it would count as its creator, and could read and write it.
    private static func isCreation(_ change: RecordChange, of current: ShadowRecord?) -> Bool {
        guard let current, !current.isDeleted else { return true }
        guard change.operation == .create else { return false }
        guard let editor = change.editor else { return current.source == .cloudKit }
        // A user who renames a row has not created it, even if that user took the new name before.
        let isMove = change.movedFrom != nil && change.database == .public
        if isMove, current.source == .cloudKit { return true }
        // The rows of a repeated snapshot do not say who created them.
        return editor != current.created.userID
            && (!change.isSnapshot || current.source == .cloudKit)
    }

    /// Returns the users who may read the kept record, by the record itself or by the schema; `nil`
    /// means everybody.
    private static func readers(
        of current: ShadowRecord?, _ shadowRows: ShadowRows, in commit: inout OpenCommit
    ) throws -> [String]? {
        guard let current, !current.isDeleted else { return nil }
        if current.readers != nil || shadowRows.place.database != .public { return current.readers }
        return try commit.readGrant(of: current.recordType, in: shadowRows.container)
            .readers(createdBy: current.created.userID)
    }

    /// Returns whether the container may have another record.
    ///
    /// An existing record is always kept up to date.
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

    /// Makes the change the last version of its record, at its position.
    ///
    /// If there is no room for the record, that is counted, and the change fires nevertheless.
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
            // The source reports only that something changed.
            record.fields = current?.fields ?? [:]
            record.isPartial = true
        }
        // What clients wrote about a field beyond its value stays as long as the value does.
        for member in isCreation ? [] : current?.wire.members ?? []
        where current?.fields[member.name] == record.fields[member.name] {
            record.wire[member.name] = member.value
        }
        try shadowRows.put(record, version: change.version, in: commit.db)
        try kept.note(change.recordID.zoneID, shadowRows, at: position, in: commit.db)
    }

    /// Returns the creation stamp of a record that was unknown before the change with this stamp.
    ///
    /// A user who only changed or renamed a record that existed before has not created it, and must
    /// not get a creator's rights.
    private func creation(by stamp: RecordStamp) -> RecordStamp {
        guard shadowRows.place.database == .public,
            change.operation != .create || change.movedFrom != nil
        else { return stamp }
        return RecordStamp(at: stamp.at, userID: creator, deviceID: nil)
    }
}

extension RecordChange {
    /// Keeps the record's readers unless the change names others.
    ///
    /// A change without readers must not show everybody a record that was kept for a few. But if
    /// the record's readers were not sent before, a change that says that it has none of its own
    /// leaves them to the schema.
    ///
    /// `earlier` are the users who may read the kept version; `nil` means everybody. A deletion
    /// shows the record as it was, so it goes only to users who are named and could read it before.
    mutating func inheritReaders(of shadow: ShadowRecord?, whoReadBefore earlier: [String]?) {
        guard let shadow, !shadow.isDeleted else {
            if lacksReaders, database == .public { readers = RecordChange.unsentReaders }
            return
        }
        guard let named = readers else {
            if operation != .delete, endsUnsentReaders(shadow.readers) {
                if operation == .update { readersBefore = shadow.readers }
                return
            }
            settleReaders()
            return readers = shadow.readers
        }
        guard let earlier, !RecordChange.isSame(named, as: earlier) else { return }
        switch operation {
        case .create: return
        case .update: readersBefore = earlier
        case .delete: readers = RecordChange.common(named, earlier)
        }
    }

    /// Notes that the readers are those of a kept record, even where it has none of its own.
    ///
    /// What says the same as before stays equal, so that its prepared text is used.
    private mutating func settleReaders() {
        if unnamedReaders == .unsent { unnamedReaders = .unsaid }
    }

    /// Returns whether the kept readers were not sent before, and the change says that the record
    /// has none of its own.
    private func endsUnsentReaders(_ kept: [String]?) -> Bool {
        unnamedReaders == .sentNone && RecordChange.areUnsent(kept)
    }

    /// Takes over what a creation does not say about a record that its source renamed, because a
    /// database's log omits large values that did not change.
    mutating func takeOver(_ former: KeptState) {
        if readers == nil, !endsUnsentReaders(former.readers) {
            settleReaders()
            readers = former.readers
        }
        if let image = former.image, let after { self.after = image.completed(by: after) }
    }

    /// Records what the relay kept of the record if the change itself says otherwise.
    ///
    /// Live results follow what was kept and not what the source believes.
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
        // A creation says only when and by whom it was made, and nothing of the earlier record.
        guard operation == .create, let known else { return }
        kept?.created = RecordTrace(known.created)
        kept?.modified = RecordTrace(known.modified)
    }

    /// Returns the change with its images completed from the last known version of its record.
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
