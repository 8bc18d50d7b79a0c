package import RelayModel
package import Storage

extension RelayStore {
    package func zonePage(
        of place: RecordPlace, after zoneID: ZoneID?, _ bounds: PageBounds
    ) async throws -> Page<ZoneMark> {
        try await zonePage(
            of: place, bounds,
            condition: "(zoneOwner, zoneName) > (?, ?) AND isDeleted = 0",
            order: "zoneOwner, zoneName",
            [zoneID?.ownerRecordName?.rawValue ?? "", zoneID?.zoneName ?? ""])
    }

    package func zoneChanges(
        of place: RecordPlace, since: ZoneHead, after edit: UInt64, _ bounds: PageBounds
    ) async throws -> Page<ZoneMark> {
        // The unary plus keeps SQLite from walking the edits of all databases in index order.
        try await zonePage(
            of: place, bounds, condition: "(position > ? OR +edit > ?) AND +edit > ?",
            order: "+edit", [since.position.stored, since.edit.stored, edit.stored])
    }

    private func zonePage(
        of place: RecordPlace, _ bounds: PageBounds, condition: String, order: String,
        _ arguments: StatementArguments
    ) async throws -> Page<ZoneMark> {
        try await read { db in
            guard let container = try db.containerIfKnown(place.container) else {
                return Page([], hasMore: false)
            }
            let rows = try Row.fetchCursor(
                db,
                sql: """
                    SELECT * FROM recordZone WHERE container = ? AND database = ? AND owner = ?
                        AND \(condition) ORDER BY \(order)
                    """, arguments: Self.database(place, container) + arguments)
            return try bounds.page(of: rows) { row in
                (
                    try ZoneMark(row: row),
                    Self.bytesAroundZone + row.bytes(of: "zoneOwner", "zoneName")
                )
            }
        }
    }

    /// The approximate size of a zone in an answer without its names: the token and the member
    /// names.
    private static let bytesAroundZone = 256

    package func zoneHead(of place: RecordPlace) async throws -> ZoneHead {
        try await read { db in
            guard let container = try db.containerIfKnown(place.container) else { return .start }
            let row = try Row.fetchOne(
                db,
                sql: """
                    SELECT coalesce(max(position), 0) AS position, coalesce(max(edit), 0) AS edit,
                        coalesce((
                            SELECT prunedEdit FROM zoneMemory
                            WHERE container = ?1 AND database = ?2 AND owner = ?3), 0) AS pruned
                    FROM recordZone WHERE container = ?1 AND database = ?2 AND owner = ?3
                    """, arguments: Self.database(place, container))
            guard let row else { return .start }
            let stored = StoredRow(row: row, table: "recordZone")
            let pruned = stored.number("pruned")
            return ZoneHead(
                position: LogPosition(stored: row["position"]),
                edit: max(stored.number("edit"), pruned), prunedEdit: pruned)
        }
    }

    private static func database(
        _ place: RecordPlace, _ container: StoredContainer
    ) -> StatementArguments {
        [container.id, place.database.rawValue, place.owner?.rawValue ?? ""]
    }

    package func zones(_ zoneIDs: [ZoneID], of place: RecordPlace) async throws -> [ZoneMark?] {
        try await read { db in
            guard let container = try db.containerIfKnown(place.container) else {
                return [ZoneMark?](repeating: nil, count: zoneIDs.count)
            }
            return try ShadowRows(place: place, container: container).marks(of: zoneIDs, in: db)
        }
    }

    package func createZones(
        _ zones: [ZoneID], in place: RecordPlace
    ) async throws -> [ZoneMark] {
        try await counted {
            try await write(of: place.container, changes: zones.count) { commit in
                let shadowRows = ShadowRows(
                    place: place, container: try commit.container(place.container))
                return try shadowRows.create(zones, in: commit)
            }
        }
    }

    /// Deletes a part of a zone.
    ///
    /// The records are deleted first, some at a time, so that a crash leaves a zone with fewer
    /// records and never records without a zone. Repeating the deletion continues it.
    package func deleteZone(
        _ zoneID: ZoneID, in place: RecordPlace, by editor: RecordEditor, limit: Int,
        from begun: ZoneDeletionPlace?, at now: Timestamp
    ) async throws -> ZoneDeletion {
        // Hidden records of types that are no longer kept go first. Otherwise the writer would have
        // to walk over them to find the records to delete.
        if try await forgetPart(of: place.container) != nil { return .begun(begun) }
        let most = max(1, limit)
        // If a record was begun, it comes first again, and the other records need not be read.
        let wanted = begun?.path == nil ? most : 1
        return try await admitted(place.container) { store in
            try await store.write(
                .intake, of: place.container, changes: most * WriteRequest.changesPerEdit
            ) { commit -> ZoneDeletion in
                let container = try commit.container(place.container)
                let shadowRows = ShadowRows(place: place, container: container)
                guard let zone = try shadowRows.zone(zoneID, in: commit.db) else {
                    return begun == nil ? .unknown : .done
                }
                guard begun.map({ $0.edit == zone.edit }) ?? true else { return .done }
                func goesOn(_ path: [RecordName]?) -> ZoneDeletion {
                    .begun(ZoneDeletionPlace(edit: zone.edit, path: path))
                }
                let step = RecordEditStep(shadowRows: shadowRows, editor: editor, now: now)
                let records = try shadowRows.liveRecords(
                    of: zoneID, limit: wanted, in: commit.db)
                var room = CascadeRoom(part: most)
                room.path = begun?.path ?? []
                let (isWhole, path) = try step.delete(records, within: &room, in: &commit)
                guard isWhole, records.count < wanted else { return goesOn(path) }
                try shadowRows.save(zoneID, position: .start, deletedAt: now, in: commit.db)
                return .done
            }
        }
    }
}

private extension RecordEditStep {
    /// Deletes records of a zone with their referrers, and updates the zone.
    ///
    /// - Returns: Whether all of them are deleted. If not, and if the next record was begun, the
    ///   path that its deletion has reached.
    func delete(
        _ records: [ShadowRecord], within room: inout CascadeRoom, in commit: inout OpenCommit
    ) throws -> (isWhole: Bool, path: [RecordName]?) {
        var (isWhole, path): (Bool, [RecordName]?) = (true, nil)
        for record in records where isWhole {
            isWhole = !room.isSpent
            guard isWhole else { break }
            let edit = RecordEdit(.forceDelete, record.recordID, type: record.recordType)
            if try apply(edit, within: &room, in: &commit).isUnfinished {
                (isWhole, path) = (false, room.path)
            } else {
                room.finish()
                room.noteGone(bytes: 0)
            }
        }
        try zones.end(shadowRows, in: commit.db)
        return (isWhole, path)
    }
}
