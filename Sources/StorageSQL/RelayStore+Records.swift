package import RelayModel
package import Storage

extension RelayStore: Shadow {
    package func modify(
        _ edits: [RecordEdit], in place: RecordPlace, by editor: RecordEditor,
        atomicity: EditAtomicity, additions: [RecordTypeDefinition], within room: CascadeRoom,
        at now: Timestamp
    ) async throws -> RecordEditsApplied {
        guard !edits.isEmpty else { return RecordEditsApplied(outcomes: [], room: room) }
        let parts = try await admitted(place.container) { store in
            try await store.write(
                edits, atomicity, .intake, of: place.container,
                along: room.isResumed ? room.records : 0,
                besides: { $0.validated.count / WriteRequest.lookupsPerChange },
                from: RecordEditAllowance(room)
            ) { edits, allowance, commit in
                let shadowRows = ShadowRows(
                    place: place, container: try commit.container(place.container))
                // Each part adds the types of its own records.
                let types = Set(edits.compactMap(\.recordType))
                try commit.extendSchema(
                    of: shadowRows.container,
                    with: additions.filter { types.contains($0.name) })
                let step = RecordEditStep(shadowRows: shadowRows, editor: editor, now: now)
                let outcomes = try step.run(edits, atomicity, within: &allowance, in: &commit)
                return [RecordEditsApplied(outcomes: outcomes, room: allowance.cascade)]
            }
        }
        var applied = RecordEditsApplied(outcomes: parts.flatMap(\.outcomes), room: room)
        applied.place = parts.last?.place ?? CascadePlace()
        applied.gone = parts.last?.gone ?? 0
        if !additions.isEmpty { schemas.forget(place.container) }
        for case .refused(.overQuota(let refusal)) in applied.outcomes {
            quotaTally.count(refusal.quota)
        }
        return applied
    }

    package func records(
        named ids: [RecordID], in place: RecordPlace, bytes: Int
    ) async throws -> (records: [ShadowRecord], unread: Set<RecordID>) {
        try await read { db in
            guard let container = try db.containerIfKnown(place.container) else { return ([], []) }
            let shadowRows = ShadowRows(place: place, container: container)
            var records: [ShadowRecord] = []
            var room = bytes
            // On PostgreSQL, several names are looked up in one batch.
            let portion = db.dialect == .postgresql ? KnownRecords.mostTogether : 1
            for start in stride(from: 0, to: ids.count, by: portion) {
                guard room > 0 else { return (records, Set(ids[start...])) }
                let asked = ids[start...].prefix(portion)
                for (index, rows) in zip(asked.indices, try shadowRows.rows(named: asked, in: db)) {
                    guard room > 0 else { return (records, Set(ids[index...])) }
                    let found = try rows.map(ScannedRecord.init(row:))
                    room -= found.reduce(0) { $0 + $1.bytes }
                    records += found.map(\.record).filter { !$0.isDeleted }
                }
            }
            return (records, [])
        }
    }

    package func recordChanges(
        in zones: [ZoneChangesQuestion], of place: RecordPlace, bytes: Int
    ) async throws -> [ZoneChanges] {
        try await read { db in
            guard let container = try db.containerIfKnown(place.container) else {
                return zones.map { _ in ZoneChanges(zone: nil, page: Page([], hasMore: false)) }
            }
            let shadowRows = ShadowRows(place: place, container: container)
            return try ZoneChangesReading(rows: shadowRows, questions: zones, db: db)
                .run(within: bytes)
        }
    }
}
