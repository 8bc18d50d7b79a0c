import GRDB
import RelayModel

/// What a change that a source posted does to the shadow: the record's last version completes its
/// images (design §4.3), and the change becomes the last version.
struct ShadowFilling {
    /// The change with its images completed.
    let change: RecordChange
    /// The text that the log keeps of it.
    let body: String
    private let shelf: ShadowShelf
    private let current: ShadowRecord?
    private let source: SourceName
    private let now: Timestamp

    /// Completes a change, or returns `nil` if its record type is not kept.
    init?(
        _ prepared: PreparedChange, source: SourceName, at now: Timestamp,
        in commit: inout OpenCommit, _ container: StoredContainer
    ) throws {
        let change = prepared.change
        guard try commit.isKept(change.recordType, of: container) else { return nil }
        let place = RecordPlace(
            container: container.key, database: change.database, owner: change.owner)
        shelf = ShadowShelf(place: place, container: container)
        current = try shelf.records(named: change.recordID, in: commit.db)
            .first { $0.recordType == change.recordType }
        self.source = source
        self.now = now
        let completed = change.completed(by: current)
        self.change = completed
        body =
            completed == change ? prepared.body : JSONValue.object(completed.storedForm).text
    }

    /// Makes the change the last version of its record, at its position.
    func write(at position: LogPosition, in db: Database) throws {
        let stamp = RecordStamp(
            at: change.occurredAt ?? now, userID: change.origin.userID,
            deviceID: change.origin.deviceID)
        let isNew = current?.isDeleted ?? true
        var record = ShadowRecord(
            recordID: change.recordID, recordType: change.recordType, fields: [:],
            readers: change.readers, created: isNew ? stamp : current?.created ?? stamp,
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
        // What clients wrote beyond the values holds for as long as the value does.
        for member in current?.wire.members ?? []
        where current?.fields[member.name] == record.fields[member.name] {
            record.wire[member.name] = member.value
        }
        try shelf.write(record, version: change.version, in: db)
    }
}

extension RecordChange {
    /// The change with what the last known version of its record adds to its images.
    func completed(by shadow: ShadowRecord?) -> RecordChange {
        guard let shadow, !shadow.isDeleted, operation != .create else { return self }
        var change = self
        let known = RecordImage(
            shadow.fields, completeness: shadow.isPartial ? .partial : .full)
        change.before = known.overlaid(with: before)
        if let after, after.completeness == .partial { change.after = known.overlaid(with: after) }
        return change
    }
}

extension RecordImage {
    /// This image, with what `other` says in the place of what it says itself.
    func overlaid(with other: RecordImage?) -> RecordImage {
        guard let other else { return self }
        if other.completeness == .full { return other }
        return RecordImage(
            fields.merging(other.fields) { _, later in later }, completeness: completeness)
    }
}
