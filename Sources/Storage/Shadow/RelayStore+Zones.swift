import GRDB
package import RelayModel

extension RelayStore {
    package func zones(of place: RecordPlace) async throws -> [ZoneMark] {
        try await read { db in
            guard let container = try db.containerIfKnown(place.container) else { return [] }
            return try Row.fetchAll(
                db,
                sql: """
                    SELECT * FROM recordZone WHERE container = ? AND database = ? AND owner = ?
                    ORDER BY zoneName, zoneOwner
                    """,
                arguments: [container.id, place.database.rawValue, place.owner?.rawValue ?? ""]
            ).map(ZoneMark.init(row:))
        }
    }

    package func zone(_ zoneID: ZoneID, of place: RecordPlace) async throws -> ZoneMark? {
        try await read { db in
            guard let container = try db.containerIfKnown(place.container) else { return nil }
            let shelf = ShadowShelf(place: place, container: container)
            let statement = try db.cachedStatement(
                sql: "SELECT * FROM recordZone WHERE \(ShadowShelf.zoneCondition)")
            return try Row.fetchOne(statement, arguments: shelf.zone(zoneID))
                .map(ZoneMark.init(row:))
        }
    }

    package func createZones(
        _ zones: [ZoneID], in place: RecordPlace
    ) async throws -> [ZoneMark] {
        try await counted {
            try await write(of: place.container, changes: zones.count) { commit in
                let shelf = ShadowShelf(
                    place: place, container: try commit.container(place.container))
                return try zones.map { try shelf.create($0, in: commit) }
            }
        }
    }

    /// Records of a zone that one transaction deletes.
    private static let deletedAtATime = 500

    /// The records go first, some at a time, so that a crash leaves a zone with fewer records and
    /// never records without a zone; whoever deletes it again goes on.
    package func deleteZone(
        _ zoneID: ZoneID, in place: RecordPlace, by editor: RecordEditor, at now: Timestamp
    ) async throws -> Bool {
        while true {
            let isGone: Bool? = try await write(of: place.container) { commit in
                let container = try commit.container(place.container)
                let shelf = ShadowShelf(place: place, container: container)
                guard try shelf.zone(zoneID, in: commit.db) != nil else { return false }
                let step = RecordEditStep(shelf: shelf, editor: editor, now: now)
                let records = try shelf.liveRecords(
                    of: zoneID, limit: Self.deletedAtATime, in: commit.db)
                for record in records {
                    let edit = RecordEdit(.forceDelete, record.recordID, type: record.recordType)
                    _ = try step.apply(edit, in: &commit)
                }
                guard records.count < Self.deletedAtATime else { return nil }
                try shelf.save(zoneID, position: .start, isDeleted: true, in: commit.db)
                return true
            }
            if let isGone { return isGone }
        }
    }
}

extension ShadowShelf {
    /// Creates a zone; one that is there stays.
    ///
    /// - Throws: ``StorageError/overQuota(_:)``.
    func create(_ zoneID: ZoneID, in commit: OpenCommit) throws -> ZoneMark {
        if let known = try zone(zoneID, in: commit.db) { return known }
        if let refusal = try refusal(of: zoneID, in: commit) {
            throw StorageError.overQuota(refusal)
        }
        try save(zoneID, position: .start, isDeleted: false, in: commit.db)
        guard let zone = try zone(zoneID, in: commit.db) else {
            throw StorageError.damaged(path: "recordZone", reason: "a saved zone is absent")
        }
        return zone
    }

    /// The quota that does not allow a zone that is new; one that was deleted has its row still.
    func refusal(of zoneID: ZoneID, in commit: OpenCommit) throws -> QuotaRefusal? {
        guard zoneID != .default else { return nil }
        let statement = try commit.db.cachedStatement(
            sql: "SELECT 1 FROM recordZone WHERE \(Self.zoneCondition)")
        guard try Int.fetchOne(statement, arguments: zone(zoneID)) == nil else { return nil }
        return try commit.ledger(of: container).refusal(
            of: .zones, growingBy: Growth(number: 1),
            holder: "\(place.database.rawValue)/\(place.owner?.rawValue ?? "")")
    }

    /// Live records of a zone, of every type.
    func liveRecords(
        of zoneID: ZoneID, limit: Int, in db: Database
    ) throws -> [ShadowRecord] {
        try Row.fetchAll(
            db,
            sql: """
                SELECT * FROM shadowRecord
                WHERE \(Self.zoneCondition) AND isKept = 1 AND isDeleted = 0 LIMIT ?
                """, arguments: zone(zoneID) + [limit]
        ).map(ShadowRecord.init(row:))
    }
}
