import RelayModel
import Storage

extension ShadowRows {
    /// Creates the zones that do not exist.
    ///
    /// - Returns: All the zones, in their order.
    /// - Throws: ``StorageError/overQuota(_:)`` if there is no room for all of them.
    func create(_ zoneIDs: [ZoneID], in commit: OpenCommit) throws -> [ZoneMark] {
        let known = try marks(of: zoneIDs, in: commit.db)
        var seen: Set<ZoneID> = []
        let missing = zip(zoneIDs, known).filter { zoneID, mark in
            mark?.isDeleted != false && seen.insert(zoneID).inserted
        }
        // A deleted zone still has its row, and is counted already.
        let new = missing.filter { zoneID, mark in mark == nil && zoneID != .default }
        if !new.isEmpty, let refusal = try refusal(ofNew: new.count, in: commit) {
            throw StorageError.overQuota(refusal)
        }
        for (zoneID, _) in missing { try save(zoneID, position: .start, in: commit.db) }
        let zones = try missing.isEmpty ? known : marks(of: zoneIDs, in: commit.db)
        return try zones.map { zone in
            guard let zone, !zone.isDeleted else {
                throw StorageError.damaged(path: "recordZone", reason: "a saved zone is absent")
            }
            return zone
        }
    }

    /// Returns the refusal if a quota does not allow a new zone.
    ///
    /// A deleted zone still has its row and is not new.
    func refusal(of zoneID: ZoneID, in commit: OpenCommit) throws -> QuotaRefusal? {
        guard zoneID != .default else { return nil }
        let statement = try commit.db.cachedStatement(
            sql: "SELECT 1 FROM recordZone WHERE \(Self.zoneCondition)")
        guard try Int.fetchOne(statement, arguments: zone(zoneID)) == nil else { return nil }
        return try self.refusal(ofNew: 1, in: commit)
    }

    private func refusal(ofNew count: Int, in commit: OpenCommit) throws -> QuotaRefusal? {
        try commit.ledger(of: container).refusal(
            of: .zones, growingBy: Growth(number: count),
            holder: "\(place.database.rawValue)/\(place.owner?.rawValue ?? "")")
    }

    /// Returns several zones in the given order, deleted or not, read in one batch.
    func marks(of zoneIDs: [ZoneID], in db: Database) throws -> [ZoneMark?] {
        let statement = try db.cachedStatement(
            sql: "SELECT * FROM recordZone WHERE \(Self.zoneCondition)")
        let rows = try Row.fetchFirsts(statement, arguments: zoneIDs.map { zone($0) })
        return try rows.map { try $0.map(ZoneMark.init(row:)) }
    }

    /// Returns live records of a zone, of all types.
    func liveRecords(
        of zoneID: ZoneID, limit: Int, in db: Database
    ) throws -> [ShadowRecord] {
        try Row.fetchAll(db, sql: Self.liveStatement, arguments: zone(zoneID) + [limit])
            .map(ShadowRecord.init(row:))
    }

    /// Names its index, because the primary key would lead over all marks of deleted records.
    static let liveStatement = """
        SELECT * FROM shadowRecord INDEXED BY shadowRecordLive
        WHERE \(zoneCondition) AND isKept = 1 AND isDeleted = 0
            AND \(UnkeptTypes.isNone()) LIMIT ?
        """
}
