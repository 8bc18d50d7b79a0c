import RelayModel
import Storage
import Testing

/// Reading and creating several zones in one call.
extension ShadowConformance {
    private static let own = RecordPlace(
        container: container, database: .private, owner: Sample.identifier("alice"))

    static func changedInZones(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let zones = (0..<40).compactMap { ZoneID(zoneName: "zone-\($0)") }
        _ = try await store.createZones(zones, in: own)
        // One zone has many records, one has a large record, and some have none.
        var edits = (0..<60).map { record("m\($0)", "One", in: zones[7]) }
        edits.append(record("large", String(repeating: "x", count: 200_000), in: zones[20]))
        for zone in zones.prefix(30) { edits.append(record("r", "One", in: zone)) }
        edits.append(record("r", "One", in: .default))
        for start in stride(from: 0, to: edits.count, by: 50) {
            _ = try await store.modify(
                Array(edits[start...].prefix(50)), in: own, by: editor, atomicity: .independent,
                additions: [RecordTypeDefinition(type, isInferred: true)], at: Sample.moment(1))
        }
        let gone = try #require(ZoneID(zoneName: "none"))
        let asked: [ZoneID] = zones + [ZoneID.default, gone, zones[0]]
        func changes(
            after position: LogPosition = .start, rows: Int = 200, bytes: Int = 4 << 20
        ) async throws -> [ZoneChanges] {
            try await store.recordChanges(
                in: asked.map { ZoneChangesQuestion($0, after: position, rows: rows) }, of: own,
                bytes: bytes)
        }
        let all = try await changes()
        let there: [ZoneID] = zones + [ZoneID.default, zones[0]]
        #expect(all.compactMap(\.zone?.zoneID) == there)
        let marks = try await store.zones(asked, of: own)
        #expect(all.map(\.zone) == marks && marks[41] == nil)
        let counts = all.map(\.page.elements.count)
        #expect(counts == zones.indices.map { count(of: $0) } + [1, 0, 1])
        for (zone, found) in zip(asked, all) {
            #expect(found.page.elements.allSatisfy { $0.recordID.zoneID == zone })
            #expect(!found.page.hasMore)
            let alone = try await store.recordChanges(
                in: zone, of: own, after: .start, PageBounds(rows: 200))
            #expect(alone.elements == found.page.elements && alone.bytes == found.page.bytes)
        }
        let few = try await changes(rows: 1)
        #expect(few.map(\.page.elements.count) == counts.map { min($0, 1) })
        #expect(few.indices.filter { few[$0].page.hasMore } == [7, 20])
        let later = try await changes(after: store.head())
        #expect(later.allSatisfy { $0.page.elements.isEmpty && !$0.page.hasMore })
        // After the large record there is no room for the zones that follow.
        let cut = try await changes(bytes: 150_000)
        #expect(cut[20].page.elements.count == 1 && cut[20].page.hasMore)
        #expect(cut.prefix(20).map(\.page.elements.count) == Array(counts.prefix(20)))
        #expect(cut.dropFirst(21).allSatisfy { $0.page.elements.isEmpty && $0.page.hasMore })
    }

    static func createdTogether(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let zones = (0..<100).compactMap { ZoneID(zoneName: "zone-\($0)") }
        let first = try await store.createZones([zones[3], zones[5]], in: own)
        let gone = try await store.deleteZone(
            zones[5], in: own, by: editor, limit: 32, from: nil, at: Sample.moment(2))
        #expect(gone == .done)
        let asked: [ZoneID] = [ZoneID.default] + zones + [zones[0], ZoneID.default]
        let made = try await store.createZones(asked, in: own)
        #expect(made.map(\.zoneID) == asked && made.allSatisfy { !$0.isDeleted })
        #expect(made[4] == first[0] && made[6] != first[1])
        #expect(made[0] == made[102] && made[1] == made[101])
        // Each zone has its own edit number, in the order of the request and after the existing
        // zones.
        let edits = made.prefix(101).filter { $0.zoneID != zones[3] }.map(\.edit)
        #expect(edits == edits.sorted() && Set(edits).count == 100)
        #expect(try await store.createZones(asked, in: own) == made)
        let found = try await store.zones(asked, of: own)
        #expect(found.compactMap { $0 } == made)
        #expect(try await store.createZones([], in: own).isEmpty)
    }

    private static func count(of zone: Int) -> Int {
        switch zone {
        case 7: 61
        case 20: 2
        default: zone < 30 ? 1 : 0
        }
    }

    private static func record(_ name: String, _ title: String, in zone: ZoneID) -> RecordEdit {
        let id = RecordID(recordName: Sample.identifier(name), zoneID: zone)
        var edit = RecordEdit(.create, id, type: type)
        edit.fields = ["title": .string(title)]
        return edit
    }
}
