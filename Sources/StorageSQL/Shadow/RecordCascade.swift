import RelayModel
import Storage

extension ShadowRecord {
    /// The record in the same zone with which this one is deleted: the target of its first
    /// reference with the action `DELETE_SELF` that does not lead into another zone.
    var deletedWith: RecordName? {
        for member in wire.members.sorted(by: { $0.name < $1.name }) {
            let references: [JSONValue] =
                if case .array(let elements) = member.value { elements } else { [member.value] }
            for case .object(let reference) in references
            where reference["action"] == "DELETE_SELF" && isOwnZone(reference["zoneID"]) {
                guard case .string(let text)? = reference["recordName"] else { continue }
                return RecordName(rawValue: text)
            }
        }
        return nil
    }

    /// Whether what a client wrote as the zone of a reference is the record's own; none is.
    ///
    /// A record of another zone may have the name of one here, and is another record.
    private func isOwnZone(_ json: JSONValue?) -> Bool {
        guard let json, json != .null else { return true }
        guard let zone = try? ZoneID(json: json, path: "zoneID") else { return false }
        return zone.zoneName.utf8.elementsEqual(recordID.zoneID.zoneName.utf8)
    }
}

extension RecordEditStep {
    /// Records that go with one deletion, at most; CloudKit allows 750 references to one target.
    private static let maximumCascade = 10_000
    /// The bytes that they may append, each the record as it was: the writer does nothing else
    /// meanwhile, and all of them are in memory.
    private static let maximumCascadeBytes = 64 * 1024 * 1024
    /// Records that are read at a time, each of which may have a megabyte: few at first, and more
    /// where they are small, because a server looks through those that have gone each time.
    private static let cascadePortions = (first: 8, most: 64)
    /// The bytes that a portion may append before the next one is larger.
    private static let smallPortionBytes = 1024 * 1024

    /// Deletes the records that refer to a deleted one by `DELETE_SELF`, and those that refer to
    /// them; each is a change of its own, made on the same device.
    func cascade(from deleted: ShadowRecord, in commit: inout OpenCommit) throws {
        var bytes = 0
        var targets = [deleted.recordID]
        var room = Self.maximumCascade
        var portion = Self.cascadePortions.first
        while let target = targets.last, room > 0, bytes < Self.maximumCascadeBytes {
            // Those that are deleted are found no more.
            let children = try shadowRows.records(
                deletedWith: target, limit: min(room, portion), in: commit.db)
            let before = commit.bookmark
            var gone: [RecordID] = []
            for child in children where child.recordID != target {
                var edit = RecordEdit(.forceDelete, child.recordID, type: child.recordType)
                edit.isWritableByAll = true
                edit.deviceID = deleted.modified.deviceID
                if case .success(let decision?) = edit.decide(
                    on: child, in: shadowRows.place, by: editor, at: now)
                {
                    _ = try write(decision, in: &commit)
                    gone.append(child.recordID)
                }
            }
            let added = commit.bytes(since: before)
            bytes += added
            portion =
                added < Self.smallPortionBytes
                ? min(2 * portion, Self.cascadePortions.most) : Self.cascadePortions.first
            room -= gone.count
            if gone.isEmpty { targets.removeLast() }
            targets += gone
        }
    }
}

extension ShadowRows {
    /// Live records of a zone that are deleted with `target`.
    func records(
        deletedWith target: RecordID, limit: Int, in db: Database
    ) throws -> [ShadowRecord] {
        try Row.fetchAll(
            db.cachedStatement(sql: Self.deletedWithStatement),
            arguments: zone(target.zoneID) + [target.recordName.rawValue, limit]
        ).map(ShadowRecord.init(row:))
    }

    static let deletedWithStatement = """
        SELECT * FROM shadowRecord INDEXED BY shadowRecordDeletedWith
        WHERE \(zoneCondition) AND deletedWith = ? LIMIT ?
        """
}
