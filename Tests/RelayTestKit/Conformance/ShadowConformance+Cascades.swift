import RelayModel
import Storage
import Testing

extension ShadowConformance {
    /// Records that refer to a deleted record by `DELETE_SELF`.
    static let cascades = [
        ConformanceCase(
            "a cascade deletes in parts, and no record is left with a dangling reference",
            check: parted),
        ConformanceCase(
            "a record that is moved away between two parts stays, and so do records that refer "
                + "to it",
            check: movedAway),
        ConformanceCase("records that refer to each other in a circle are deleted", check: circled),
        ConformanceCase(
            "an atomic request whose cascade is too large changes nothing", check: refused),
        ConformanceCase("a zone is deleted in parts, in the same order", check: zoned),
        ConformanceCase(
            "a record that took the name of a deleted one between two parts stays", check: madeAnew),
        ConformanceCase(
            "a zone that was created again between two parts of its deletion stays",
            check: zoneMadeAnew),
        ConformanceCase(
            "each call deletes at least one record of a long chain", check: chained),
    ]

    private static func child(_ name: String, of parent: String) -> RecordEdit {
        var edit = create(name, name)
        edit.wire = ["parent": ["recordName": .string(parent), "action": "DELETE_SELF"]]
        return edit
    }

    /// One record, and a tree of eight records below it.
    private static var tree: [RecordEdit] {
        var edits = [create("top", "One")]
        for name in ["a", "b"] {
            edits.append(child(name, of: "top"))
            for number in 1...3 { edits.append(child("\(name)\(number)", of: name)) }
        }
        return edits
    }

    private static func delete(
        _ name: String, _ store: any ConformingStore, within room: CascadeRoom
    ) async throws -> RecordEditsApplied {
        try await store.modify(
            [RecordEdit(.forceDelete, id(name), type: nil)], in: place, by: editor,
            atomicity: .independent, additions: [], within: room, at: Sample.moment(2))
    }

    private static func remaining(
        of edits: [RecordEdit], _ store: any ConformingStore
    ) async throws -> Set<RecordID> {
        Set(try await store.records(named: edits.map(\.recordID), in: place).map(\.recordID))
    }

    private static func checkTree(_ left: Set<RecordID>) {
        for name in ["a", "b"] where !left.contains(id(name)) {
            #expect((1...3).allSatisfy { !left.contains(id("\(name)\($0)")) })
        }
        #expect(left.contains(id("top")) || left.isEmpty)
    }

    private static func parted(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        _ = try await modify(store, tree)
        var place: CascadePlace?
        var counts = [tree.count]
        var outcome: RecordEditOutcome?
        while outcome == nil, counts.count < 100 {
            let applied = try await delete(
                "top", store, within: CascadeRoom(part: 1, from: place))
            let left = try await remaining(of: tree, store)
            checkTree(left)
            #expect(applied.gone <= 1)
            counts.append(left.count)
            place = applied.place
            outcome = applied.outcomes.first { !$0.isUnfinished }
        }
        #expect(outcome == .deleted(id("top")))
        #expect(counts.last == 0)
        #expect(zip(counts, counts.dropFirst()).allSatisfy { $0 - $1 <= 1 })
        // Each deletion is a change, and that of the requested record is the last.
        let entries = try await store.entries(after: .start, limit: 100)
        #expect(entries.count == 2 * tree.count)
        guard case .change(let change, _, _)? = entries.last?.body else {
            Issue.record("the log ends with \(String(describing: entries.last))")
            return
        }
        #expect(change.recordID == id("top"))
    }

    private static func movedAway(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let edits = [
            create("top", "One"), child("a", of: "top"), child("a1", of: "a"),
            child("a2", of: "a"),
        ]
        _ = try await modify(store, edits)
        let first = try await delete("top", store, within: CascadeRoom(part: 1))
        #expect(first.outcomes == [.refused(.unfinished)])
        #expect(first.place.path == [id("a").recordName] && first.gone == 1)
        var away = RecordEdit(.forceReplace, id("a"), type: type)
        away.fields = ["title": .string("Away")]
        _ = try await modify(store, [away])
        let second = try await delete(
            "top", store, within: CascadeRoom(part: 32, from: first.place))
        #expect(second.outcomes == [.deleted(id("top"))])
        let left = try await remaining(of: edits, store)
        #expect(left.contains(id("a")) && left.count == 2)
    }

    private static func circled(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let edits = [child("top", of: "b"), child("a", of: "top"), child("b", of: "a")]
        _ = try await modify(store, edits)
        let outcomes = try await modify(store, [RecordEdit(.forceDelete, id("top"), type: nil)])
        #expect(outcomes == [.deleted(id("top"))])
        #expect(try await remaining(of: edits, store).isEmpty)
    }

    private static func refused(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        _ = try await modify(store, tree)
        let head = try await store.head()
        let applied = try await store.modify(
            [create("x", "New"), RecordEdit(.forceDelete, id("top"), type: nil)], in: place,
            by: editor, atomicity: .allOrNothing, additions: [], within: CascadeRoom(part: 4),
            at: Sample.moment(2))
        #expect(applied.outcomes == [.undone, .refused(.unfinished)])
        #expect(try await remaining(of: tree, store).count == tree.count)
        #expect(try await store.head() == head)
        // With room for all of them they are deleted.
        let outcomes = try await modify(
            store, [create("x", "New"), RecordEdit(.forceDelete, id("top"), type: nil)],
            atomicity: .allOrNothing)
        #expect(outcomes.last == .deleted(id("top")))
        #expect(try await remaining(of: tree, store).isEmpty)
    }

    private static func zoned(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let zoneID = try #require(ZoneID(zoneName: "notes"))
        let user: UserID = Sample.identifier("alice")
        let own = RecordPlace(container: container, database: .private, owner: user)
        _ = try await store.createZones([zoneID], in: own)
        let edits = tree.map { edit in
            var edit = edit
            edit.recordID = RecordID(recordName: edit.recordID.recordName, zoneID: zoneID)
            return edit
        }
        _ = try await store.modify(
            edits, in: own, by: editor, atomicity: .independent,
            additions: [RecordTypeDefinition(type, isInferred: true)], at: Sample.moment(1))
        var deletion = ZoneDeletion.begun(nil)
        var counts = [edits.count]
        while case .begun(let begun) = deletion, counts.count < 100 {
            deletion = try await store.deleteZone(
                zoneID, in: own, by: editor, limit: 2, from: begun, at: Sample.moment(2))
            let left = Set(
                try await store.records(named: edits.map(\.recordID), in: own)
                    .map { id($0.recordID.recordName.rawValue) })
            checkTree(left)
            counts.append(left.count)
        }
        #expect(deletion == .done)
        #expect(counts.last == 0)
        #expect(zip(counts, counts.dropFirst()).allSatisfy { $0 - $1 <= 2 })
    }

    private static func chained(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let depth = 40
        let edits =
            [create("top", "One")]
            + (1...depth).map { child("c\($0)", of: $0 == 1 ? "top" : "c\($0 - 1)") }
        _ = try await modify(store, edits)
        // Each call starts at the bottom again: a part of one record deletes exactly one.
        for left in (0..<depth).reversed() {
            let applied = try await delete("top", store, within: CascadeRoom(part: 1))
            #expect(applied.outcomes == [.refused(.unfinished)] && applied.gone == 1)
            #expect(try await remaining(of: edits, store).count == left + 1)
        }
        let last = try await delete("top", store, within: CascadeRoom(part: 1))
        #expect(last.outcomes == [.deleted(id("top"))])
        #expect(try await remaining(of: edits, store).isEmpty)
    }

    private static func madeAnew(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let edits = [create("top", "One"), child("a", of: "top"), child("b", of: "top")]
        _ = try await modify(store, edits)
        let first = try await delete("top", store, within: CascadeRoom(part: 1))
        #expect(first.outcomes == [.refused(.unfinished)] && first.gone == 1)
        // Another device deletes the record first, and creates it again with all that refers to
        // it.
        let outcomes = try await modify(store, [RecordEdit(.forceDelete, id("top"), type: nil)])
        #expect(outcomes == [.deleted(id("top"))])
        _ = try await store.modify(
            edits, in: place, by: editor, atomicity: .independent, additions: [],
            at: Sample.moment(3))
        let second = try await delete(
            "top", store, within: CascadeRoom(part: 32, from: first.place))
        #expect(second.outcomes == [.deleted(id("top"))] && second.gone == 0)
        #expect(try await remaining(of: edits, store).count == edits.count)
    }

    private static func zoneMadeAnew(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let zoneID = try #require(ZoneID(zoneName: "notes"))
        let user: UserID = Sample.identifier("alice")
        let own = RecordPlace(container: container, database: .private, owner: user)
        let edits = (0..<4).map { number in
            var edit = create("r\(number)", "One")
            edit.recordID = RecordID(recordName: edit.recordID.recordName, zoneID: zoneID)
            return edit
        }
        func make() async throws {
            _ = try await store.createZones([zoneID], in: own)
            _ = try await store.modify(
                edits, in: own, by: editor, atomicity: .independent,
                additions: [RecordTypeDefinition(type, isInferred: true)], at: Sample.moment(1))
        }
        func delete(from begun: ZoneDeletionPlace?) async throws -> ZoneDeletion {
            try await store.deleteZone(
                zoneID, in: own, by: editor, limit: 2, from: begun, at: Sample.moment(2))
        }
        try await make()
        guard case .begun(let begun?) = try await delete(from: nil) else {
            Issue.record("it is not deleted in parts")
            return
        }
        // Another device finishes the deletion, and creates the zone again.
        var other = ZoneDeletion.begun(nil)
        var parts = 0
        while case .begun(let place) = other, parts < 100 {
            other = try await delete(from: place)
            parts += 1
        }
        #expect(other == .done)
        #expect(try await delete(from: begun) == .done)
        try await make()
        #expect(try await delete(from: begun) == .done)
        #expect(try await store.zone(zoneID, of: own)?.isDeleted == false)
        let left = try await store.records(named: edits.map(\.recordID), in: own)
        #expect(left.count == edits.count)
    }
}
