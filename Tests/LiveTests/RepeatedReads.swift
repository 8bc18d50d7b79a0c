import RelayModel
import Storage
import StorageSQL

/// A store whose connection is lost at the end of each reading, which is then repeated on another
/// one.
struct RepeatedReads: Shadow {
    let store: RelayStore

    func scanRecords<Value: Sendable>(
        _ scan: RecordScan, into initial: Value,
        _ step: @escaping @Sendable (inout Value, ScannedRecord) throws -> Bool
    ) async throws -> RecordSlice<Value> {
        _ = try await store.scanRecords(scan, into: initial, step)
        return try await store.scanRecords(scan, into: initial, step)
    }

    func schema(of container: ContainerKey) async throws -> ContainerSchema {
        try await store.schema(of: container)
    }

    func extendSchema(
        of container: ContainerKey, with additions: [RecordTypeDefinition]
    ) async throws {
        try await store.extendSchema(of: container, with: additions)
    }

    func changeSchema(
        of container: ContainerKey, at now: Timestamp,
        _ change: @escaping @Sendable (ContainerSchema) -> ContainerSchema
    ) async throws {
        try await store.changeSchema(of: container, at: now, change)
    }

    func modify(
        _ edits: [RecordEdit], in place: RecordPlace, by editor: RecordEditor,
        atomicity: EditAtomicity, additions: [RecordTypeDefinition], within room: CascadeRoom,
        at now: Timestamp
    ) async throws -> RecordEditsApplied {
        try await store.modify(
            edits, in: place, by: editor, atomicity: atomicity, additions: additions, within: room,
            at: now)
    }

    func records(
        named ids: [RecordID], in place: RecordPlace, bytes: Int
    ) async throws -> (records: [ShadowRecord], unread: Set<RecordID>) {
        try await store.records(named: ids, in: place, bytes: bytes)
    }

    func recordChanges(
        in zones: [ZoneChangesQuestion], of place: RecordPlace, bytes: Int
    ) async throws -> [ZoneChanges] {
        try await store.recordChanges(in: zones, of: place, bytes: bytes)
    }

    func zones(_ zoneIDs: [ZoneID], of place: RecordPlace) async throws -> [ZoneMark?] {
        try await store.zones(zoneIDs, of: place)
    }

    func zonePage(
        of place: RecordPlace, after zoneID: ZoneID?, _ bounds: PageBounds
    ) async throws -> Page<ZoneMark> {
        try await store.zonePage(of: place, after: zoneID, bounds)
    }

    func zoneChanges(
        of place: RecordPlace, since: ZoneHead, after edit: UInt64, _ bounds: PageBounds
    ) async throws -> Page<ZoneMark> {
        try await store.zoneChanges(of: place, since: since, after: edit, bounds)
    }

    func zoneHead(of place: RecordPlace) async throws -> ZoneHead {
        try await store.zoneHead(of: place)
    }

    func createZones(_ zones: [ZoneID], in place: RecordPlace) async throws -> [ZoneMark] {
        try await store.createZones(zones, in: place)
    }

    func deleteZone(
        _ zoneID: ZoneID, in place: RecordPlace, by editor: RecordEditor, limit: Int,
        from begun: ZoneDeletionPlace?, at now: Timestamp
    ) async throws -> ZoneDeletion {
        try await store.deleteZone(
            zoneID, in: place, by: editor, limit: limit, from: begun, at: now)
    }
}
