import RelayModel
import Storage

extension ShadowRecord {
    /// The record in the same zone whose deletion also deletes this one: the target of this
    /// record's first reference with the action `DELETE_SELF` that does not lead into another zone.
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

    /// Returns whether the zone that a client wrote into a reference is the record's own zone.
    ///
    /// A reference without a zone refers to the record's own zone.
    ///
    /// A record of the same name in another zone is another record.
    private func isOwnZone(_ json: JSONValue?) -> Bool {
        guard let json, json != .null else { return true }
        guard let zone = try? ZoneID(json: json, path: "zoneID") else { return false }
        return zone.zoneName.utf8.elementsEqual(recordID.zoneID.zoneName.utf8)
    }
}

extension RecordEditStep {
    /// The numbers of records read at a time, each of which may have a megabyte.
    ///
    /// Reading starts with few and takes more as long as no record has to wait for its own
    /// referrers.
    private static let portions = (fewest: 1, first: 8, most: 64)
    /// The number of last records of a path that are checked before the deletion continues.
    private static let levelsLookedFor = 64

    /// Deletes the records that refer by `DELETE_SELF` to a record that is about to be deleted, and
    /// what refers to those, as far as `room` allows.
    ///
    /// Each deletion is a change of its own, made on the same device.
    ///
    /// Records without referrers go first. So no record is left without its target wherever this
    /// stops, and the same deletion can continue with the rest.
    ///
    /// A reference names no type. If a source has a record of another type under the name of the
    /// deleted one, the referrers of the name stay, because their target may be that record.
    /// Otherwise a client could create a record with such a name and delete it to delete the
    /// records of others.
    ///
    /// - Returns: Whether no record refers to the deleted one any more.
    func deleteFollowers(
        of deleted: ShadowRecord, within room: inout CascadeRoom, in commit: inout OpenCommit
    ) throws -> Bool {
        let top = deleted.recordID
        if try sharesItsName(deleted, in: commit.db) { return true }
        try shadowRows.shorten(&room.path, from: top, in: commit.db, Self.levelsLookedFor)
        var portion = Self.portions.first
        while !room.isSpent {
            let target = RecordID(
                recordName: room.path.last ?? top.recordName, zoneID: top.zoneID)
            let followers = try shadowRows.followers(
                of: target, below: top, limit: min(portion, room.records), in: commit.db)
            guard !followers.isEmpty else {
                guard !room.path.isEmpty else { return true }
                room.leave()
                portion = Self.portions.fewest
                continue
            }
            portion = min(2 * portion, Self.portions.most)
            for follower in followers where !room.isSpent {
                let name = follower.record.recordID.recordName
                let goesAfter =
                    try follower.isFollowed && room.path.count < CascadeRoom.mostLevels
                    && !sharesItsName(follower.record, in: commit.db)
                if goesAfter {
                    room.enter(name, bytes: follower.bytes)
                    portion = Self.portions.fewest
                    break
                }
                try delete(follower.record, by: deleted.modified.deviceID, in: &commit)
                room.noteGone(bytes: follower.bytes)
            }
        }
        return false
    }

    /// Returns whether there is a record of another type with the same name.
    private func sharesItsName(_ record: ShadowRecord, in db: Database) throws -> Bool {
        try shadowRows.heads(named: record.recordID, in: db).contains {
            !$0.isDeleted && $0.recordType != record.recordType
        }
    }

    /// Deletes a referring record, regardless of its creator.
    private func delete(
        _ record: ShadowRecord, by device: DeviceID?, in commit: inout OpenCommit
    ) throws {
        var edit = RecordEdit(.forceDelete, record.recordID, type: record.recordType)
        edit.isWritableByAll = true
        edit.deviceID = device
        let decision = try edit.decide(on: record, in: shadowRows.place, by: editor, at: now).get()
        if let decision { _ = try write(decision, in: &commit) }
    }
}

/// A record that refers to another one by `DELETE_SELF`.
struct FollowingRecord {
    let record: ShadowRecord
    /// The size of its stored texts in bytes.
    let bytes: Int
    /// Whether other records refer to it.
    let isFollowed: Bool

    init(row: Row) throws {
        let scanned = try ScannedRecord(row: row)
        record = scanned.record
        bytes = scanned.bytes
        isFollowed = row["isFollowed"] as Int64 != 0
    }
}

extension ShadowRows {
    /// Returns live records of a zone that are deleted with `target`, which is `top` or a record
    /// below it.
    ///
    /// `top` is excluded, because it may itself refer to one of them.
    func followers(
        of target: RecordID, below top: RecordID, limit: Int, in db: Database
    ) throws -> [FollowingRecord] {
        let name = top.recordName.rawValue
        let arguments: StatementArguments = [name]
        return try Row.fetchAll(
            db.cachedStatement(sql: Self.deletedWithStatement),
            arguments: arguments + zone(target.zoneID)
                + [target.recordName.rawValue, name, limit]
        ).map(FollowingRecord.init(row:))
    }

    /// Shortens a path from `top` to the part that still exists, because other clients change
    /// records between the parts of a deletion.
    ///
    /// Of a long path, only the last `levels` are checked.
    func shorten(
        _ path: inout [RecordName], from top: RecordID, in db: Database, _ levels: Int
    ) throws {
        let statement = try db.cachedStatement(sql: Self.followingStatement)
        for index in path.indices.suffix(levels) {
            let parent = index > 0 ? path[index - 1] : top.recordName
            let isThere =
                try Int.fetchOne(
                    statement,
                    arguments: zone(top.zoneID) + [path[index].rawValue, parent.rawValue]) != nil
            guard isThere else {
                path.removeSubrange(index...)
                return
            }
        }
    }

    static let deletedWithStatement = """
        SELECT *, CASE WHEN EXISTS (
            SELECT 1 FROM shadowRecord AS further INDEXED BY shadowRecordDeletedWith
            WHERE further.container = shadowRecord.container
                AND further.database = shadowRecord.database
                AND further.owner = shadowRecord.owner
                AND further.zoneOwner = shadowRecord.zoneOwner
                AND further.zoneName = shadowRecord.zoneName
                AND further.deletedWith = shadowRecord.recordName AND further.recordName <> ?
                AND \(UnkeptTypes.isNone(of: "further"))
        ) THEN 1 ELSE 0 END AS isFollowed
        FROM shadowRecord INDEXED BY shadowRecordDeletedWith
        WHERE \(zoneCondition) AND deletedWith = ? AND recordName <> ?
            AND \(UnkeptTypes.isNone()) LIMIT ?
        """

    static let followingStatement = """
        SELECT 1 FROM shadowRecord INDEXED BY shadowRecordName
        WHERE \(zoneCondition) AND recordName = ? AND isKept = 1 AND deletedWith = ?
            AND \(UnkeptTypes.isNone())
        """
}
