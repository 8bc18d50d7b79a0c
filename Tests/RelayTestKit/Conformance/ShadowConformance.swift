import RelayModel
import Storage
import Testing

/// The contract of ``Storage/Shadow``: what survives, and in which transaction.
package enum ShadowConformance {
    /// The cases that state it.
    package static let cases = [
        ConformanceCase(
            "the bound of the store also refuses records, and counts the refusals", check: bounded),
        ConformanceCase(
            "an acknowledged record is there after the store was closed and opened again",
            check: durable),
        ConformanceCase(
            "a refused atomic request leaves neither records nor entries of the log",
            check: atomic),
        ConformanceCase(
            "one of many edits of the same version of a record succeeds", check: contended),
        ConformanceCase(
            "a webhook's change and its record are written together, once", check: filled),
        ConformanceCase(
            "a renamed record keeps the fields that its source leaves out", check: moved),
        ConformanceCase(
            "a record that is moved to a taken name or another type keeps its creator",
            check: movedOver),
        ConformanceCase(
            "a type that the schema no longer keeps loses its records", check: forgotten),
        ConformanceCase(
            "concurrent schema changes each build on the one before",
            check: changedTogether),
        ConformanceCase(
            "a schema that is defined anew holds what it was defined to be",
            check: definedAnew),
        ConformanceCase(
            "each change of the read grants is counted, also when it is undone later",
            check: grantsCounted),
        ConformanceCase(
            "a scan of zones without records stops when its turn ends, and can go on",
            check: scanned),
        ConformanceCase(
            "a look-up reports records beyond the byte limit as unread",
            check: lookedUp),
        ConformanceCase(
            "changes in many zones are read for each zone, up to the byte limit",
            check: changedInZones),
        ConformanceCase(
            "zones can be created together, and existing ones stay unchanged",
            check: createdTogether),
        ConformanceCase(
            "a sweep deletes only what the completed snapshot did not contain", check: swept),
    ]

    static let container = Sample.container
    static let type: RecordType = Sample.identifier("Artwork")
    static let place = RecordPlace(
        container: container, database: .public, owner: nil)
    static let editor = RecordEditor(
        userID: Sample.identifier("alice"), isServer: false)

    static func id(_ name: String) -> RecordID {
        RecordID(recordName: Sample.identifier(name))
    }

    static func create(_ name: String, _ title: String) -> RecordEdit {
        var edit = RecordEdit(.create, id(name), type: type)
        edit.fields = ["title": .string(title)]
        return edit
    }

    static func modify(
        _ store: any ConformingStore, _ edits: [RecordEdit], atomicity: EditAtomicity = .independent
    ) async throws -> [RecordEditOutcome] {
        try await store.modify(
            edits, in: place, by: editor, atomicity: atomicity,
            additions: [RecordTypeDefinition(type, isInferred: true)], at: Sample.moment(1))
    }

    private static func bounded(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        store.gate.set([.ranges: "many wait"])
        await #expect(throws: StorageError.bounded(.ranges, reason: "many wait")) {
            try await modify(store, [create("a", "One")])
        }
        #expect(store.gate.refusals == [.ranges: 1])
        store.gate.set([:])
        #expect(try await modify(store, [create("a", "One")]).count == 1)
    }

    private static func durable(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let outcomes = try await modify(store, [create("a", "One")])
        guard case .saved(let saved)? = outcomes.first else {
            Issue.record("\(outcomes)")
            return
        }
        let again = try await factory.reopen(store)
        let found = try await again.records(named: [id("a")], in: place)
        #expect(found == [saved])
        let schema = try await again.schema(of: container)
        #expect(schema.recordTypes[type]?.isInferred == true)
        let entries = try await again.entries(after: .start, limit: 10)
        #expect(entries.map(\.position) == [saved.position])
    }

    private static func atomic(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        var update = RecordEdit(.update, id("b"), type: type)
        update.changeTag = "1"
        let outcomes = try await modify(
            store, [create("a", "One"), update], atomicity: .allOrNothing)
        #expect(outcomes == [.undone, .refused(.notFound)])
        #expect(try await store.records(named: [id("a")], in: place) == [])
        #expect(try await store.head() == .start)
    }

    private static func contended(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let outcomes = try await modify(store, [create("a", "One")])
        guard case .saved(let saved)? = outcomes.first else {
            Issue.record("\(outcomes)")
            return
        }
        let wins = try await withThrowingTaskGroup(of: Bool.self) { tasks in
            for number in 0..<20 {
                tasks.addTask {
                    var edit = RecordEdit(.update, id("a"), type: type)
                    edit.changeTag = saved.changeTag
                    edit.fields = ["title": .string("\(number)")]
                    guard case .saved? = try await modify(store, [edit]).first else {
                        return false
                    }
                    return true
                }
            }
            return try await tasks.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(wins == 1)
    }

    private static func filled(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        try await store.extendSchema(
            of: container, with: [RecordTypeDefinition(type)])
        var change = RecordChange(.update, of: type, id("a"))
        change.after = RecordImage(["title": .string("One")], completeness: .partial)
        let key = DedupeKey(kind: .delivery, text: "d1", digest: [1])
        for _ in 0..<2 {
            _ = try await store.append(
                [ChangeToAppend(change, key: key)], container: container,
                source: Sample.source, at: Sample.moment(2))
        }
        var removal = RecordChange(.delete, of: type, id("a"))
        _ = try await store.append(
            [ChangeToAppend(removal, key: nil)], container: container,
            source: Sample.source, at: Sample.moment(3))
        let entries = try await store.entries(after: .start, limit: 10)
        removal.before = RecordImage(["title": .string("One")], completeness: .partial)
        // The logged change also carries what the relay knows of the kept record.
        removal.created = RecordTrace(at: Sample.moment(2), userID: nil)
        removal.formerlyModified = removal.created
        #expect(
            entries.map(\.body) == [
                .change(change, source: Sample.source, isStale: false),
                .change(removal, source: Sample.source, isStale: false),
            ])
        let marks = try await store.recordChanges(
            in: .default, of: place, after: .start, PageBounds(rows: 10))
        #expect(marks.elements.map(\.isDeleted) == [true])
    }

    /// Renames rows with a large value that did not change, which the database's log leaves out.
    private static func moved(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        try await store.extendSchema(of: container, with: [RecordTypeDefinition(type)])
        func append(_ changes: [RecordChange], _ second: Int64) async throws {
            let keyed = changes.map { change in
                let name = "\(second) \(change.operation) \(change.recordID.recordName)"
                return ChangeToAppend(
                    change, key: DedupeKey(kind: .position, text: name, digest: [1]))
            }
            _ = try await store.append(
                keyed, container: container, source: Sample.source, at: Sample.moment(second))
        }
        func move(_ former: String, _ name: String, _ fields: RecordFields) -> [RecordChange] {
            var creation = RecordChange(.create, of: type, id(name))
            creation.after = RecordImage(fields, completeness: .partial)
            creation.movedFrom = RecordAddress(id(former), database: .public, owner: nil)
            creation.origin.userID = Sample.identifier("mover")
            return [RecordChange(.delete, of: type, id(former)), creation]
        }
        var rows = ["a", "b"].map { RecordChange(.create, of: type, id($0)) }
        for index in rows.indices {
            rows[index].readers = index == 0 ? ["alice"] : nil
            rows[index].origin.userID = Sample.identifier(index == 0 ? "alice" : "bob")
            rows[index].after = RecordImage(["large": .string("\(index)"), "n": .integer(1)])
        }
        try await append(rows, 1)
        // The rows exchange their names. Repeating a part or all of it changes nothing.
        let steps = [move("a", "c", ["n": .integer(2)]), move("b", "a", [:]), move("c", "b", [:])]
        try await append([steps[0][0]], 2)
        for _ in 0..<2 { try await append(steps.flatMap(\.self), 2) }
        var kept: [ShadowRecord] = []
        for name in ["a", "b", "c"] {
            kept += try await store.records(named: [id(name)], in: place).filter { !$0.isDeleted }
        }
        #expect(kept.map(\.recordID) == [id("a"), id("b")])
        #expect(
            kept.map(\.fields) == [
                ["large": .string("1"), "n": .integer(1)],
                ["large": .string("0"), "n": .integer(2)],
            ])
        #expect(kept.map(\.readers) == [nil, ["alice"]])
        // Renaming a record does not make the user its creator.
        #expect(kept.map(\.created.userID?.rawValue) == ["bob", "alice"])
        #expect(!kept.contains { $0.isPartial })
    }

    /// Moves rows to a name or type that another record had before.
    private static func movedOver(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let other: RecordType = Sample.identifier("Sketch")
        try await store.extendSchema(
            of: container, with: [RecordTypeDefinition(type), RecordTypeDefinition(other)])
        func append(_ changes: [RecordChange], _ second: Int64) async throws {
            _ = try await store.append(
                changes.map { ChangeToAppend($0, key: nil) }, container: container,
                source: Sample.source, at: Sample.moment(second))
        }
        func creation(_ name: String, _ type: RecordType, by user: String) -> RecordChange {
            var change = RecordChange(.create, of: type, id(name))
            change.origin.userID = Sample.identifier(user)
            change.after = RecordImage(["large": .string("old"), "n": .integer(1)])
            return change
        }
        func move(
            _ former: (name: String, type: RecordType), _ name: String, _ type: RecordType,
            _ image: RecordImage
        ) -> [RecordChange] {
            var moved = creation(name, type, by: "alice")
            moved.after = image
            moved.movedFrom = RecordAddress(
                id(former.name), database: .public, owner: nil, recordType: former.type)
            return [RecordChange(.delete, of: former.type, id(former.name)), moved]
        }
        // Alice has created records under two of the names, and has deleted one of them.
        _ = try await modify(store, [create("b", "Taken"), create("c", "Taken")])
        _ = try await modify(store, [RecordEdit(.forceDelete, id("c"), type: type)])
        let rows = [("a", type), ("c", other), ("d", type)]
        try await append(rows.map { creation($0.0, $0.1, by: "bob") }, 2)
        let new = RecordImage(["large": .string("new"), "n": .integer(2)])
        try await append(move(("a", type), "b", type, new), 3)
        try await append(move(("c", other), "c", type, new), 4)
        // A value that the log leaves out is the last known one, also if the type has changed
        // since.
        try await append(move(("d", type), "d", other, new), 5)
        let part = RecordImage(["n": .integer(2)], completeness: .partial)
        try await append(move(("d", other), "d", type, part), 6)
        var kept: [ShadowRecord] = []
        for name in ["a", "b", "c", "d"] {
            kept += try await store.records(named: [id(name)], in: place).filter { !$0.isDeleted }
        }
        #expect(kept.map(\.recordID) == [id("b"), id("c"), id("d")])
        #expect(kept.allSatisfy { $0.recordType == type && $0.fields == new.fields })
        #expect(kept.map(\.created.userID?.rawValue) == ["bob", "bob", "bob"])
    }

    private static func forgotten(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        _ = try await modify(store, [create("a", "One")])
        let head = try await store.head()
        for second in [2, 3] {
            try await store.replaceSchema(
                of: container, with: ContainerSchema(), at: Sample.moment(Int64(second)))
        }
        // The log says once for each type that its records are forgotten.
        let told = try await store.entries(after: head, limit: 10)
        guard case .change(let change, _, false)? = told.first?.body, told.count == 1 else {
            Issue.record("the log says \(told)")
            return
        }
        #expect(change.forgetsType && change.recordType == type && change.readers == [])
        #expect(try await store.records(named: [id("a")], in: place) == [])
        #expect(try await store.schema(of: container) == ContainerSchema())
    }

    private static func changedTogether(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let names: [RecordType] = (0..<8).map { Sample.identifier("T\($0)") }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for name in names {
                group.addTask {
                    try await store.changeSchema(of: container, at: Sample.moment(1)) { before in
                        var schema = before
                        schema.recordTypes[name] = RecordTypeDefinition(name, isInferred: true)
                        return schema
                    }
                }
            }
            try await group.waitForAll()
        }
        let schema = try await store.schema(of: container)
        #expect(names.allSatisfy { schema.recordTypes[$0] != nil })
    }

    private static func definedAnew(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        _ = try await modify(store, [create("a", "One")])
        let other: RecordType = Sample.identifier("Other")
        func define(
            _ fields: [String: FieldDefinition], kept: Bool = true, roles: [RoleName] = []
        ) -> ContainerSchema {
            let type = RecordTypeDefinition(
                type, fields: fields, grants: kept ? RecordGrant.usual : [], isKept: kept)
            return ContainerSchema(
                [type] + (kept ? [] : [RecordTypeDefinition(other, fields: fields)]), roles: roles)
        }
        let text = FieldDefinition(SchemaFieldType(.string), uses: .queryable)
        let number = FieldDefinition(SchemaFieldType(.int64, isList: true), isEncrypted: true)
        let role: RoleName = Sample.identifier("editors")
        let schemas = [
            define(["a": text, "b": number]), define(["a": number, "c": text], roles: [role]),
            define(["a": number, "c": text], kept: false), define(["c": number], kept: false),
            define([:]), ContainerSchema(), define(["b": text]),
        ]
        for (second, schema) in schemas.enumerated() {
            try await store.replaceSchema(
                of: container, with: schema, at: Sample.moment(Int64(second)))
            let stored = try await store.schema(of: container)
            #expect(stored.recordTypes == schema.recordTypes)
            #expect(stored.roles == schema.roles)
            #expect(stored.differences(from: schema) == 0)
        }
    }

    private static func grantsCounted(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        _ = try await modify(store, [create("a", "One")])
        func put(_ grants: [RecordGrant], _ second: Int64) async throws -> Int64 {
            let types = [RecordTypeDefinition(type, grants: grants)]
            try await store.replaceSchema(
                of: container, with: ContainerSchema(types), at: Sample.moment(second))
            return try await store.schema(of: container).readGeneration
        }
        let written = RecordGrant.usual + [RecordGrant(.write, to: .icloud)]
        let own = [RecordGrant(.read, to: .creator)]
        #expect(try await put(RecordGrant.usual, 2) == 0)
        #expect(try await put(written, 3) == 0, "who may write says nothing of who reads")
        #expect(try await put(own, 4) == 1)
        #expect(try await put(RecordGrant.usual, 5) == 2)
        #expect(try await put(own, 6) == 3)
        // A type that was removed is readable by everybody once it has records again.
        try await store.replaceSchema(
            of: container, with: ContainerSchema(), at: Sample.moment(7))
        let again = try await factory.reopen(store)
        #expect(try await again.schema(of: container).readGeneration == 4)
    }

    private static func scanned(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let own = RecordPlace(
            container: container, database: .private, owner: Sample.identifier("alice"))
        let zones = (0..<200).compactMap { ZoneID(zoneName: "zone-\(1000 + $0)") }
        _ = try await store.createZones(zones, in: own)
        let records = [zones[3], zones[150], zones[199]].map {
            RecordID(recordName: Sample.identifier("r"), zoneID: $0)
        }
        let edits = records.map { id -> RecordEdit in
            var edit = RecordEdit(.create, id, type: type)
            edit.fields = ["title": .string("One")]
            return edit
        }
        _ = try await store.modify(
            edits, in: own, by: editor, atomicity: .independent,
            additions: [RecordTypeDefinition(type, isInferred: true)], at: Sample.moment(1))
        var scan = RecordScan(of: type, in: own, turn: { { true } })
        var found: [RecordID] = []
        var slices = 0
        repeat {
            let slice = try await store.scanRecords(scan, into: [RecordID]()) { ids, scanned in
                ids.append(scanned.record.recordID)
                return true
            }
            found += slice.value
            slices += 1
            // One slice skips all empty zones up to the next record.
            #expect(slice.rows <= 100)
            scan.cursor = slice.cursor
        } while scan.cursor != nil && slices < 250
        #expect(found == records)
        #expect(scan.cursor == nil)
    }

    private static func lookedUp(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let edits = (1...40).map { create("r\($0)", "One") }
        _ = try await modify(store, edits)
        _ = try await modify(store, [RecordEdit(.forceDelete, id("r2"), type: type)])
        let ids = edits.map(\.recordID) + [id("nowhere")]
        let all = try await store.records(named: ids, in: place, bytes: 1 << 20)
        #expect(all.records.map(\.recordID) == edits.map(\.recordID).filter { $0 != id("r2") })
        #expect(all.unread.isEmpty)
        let one = try await store.records(named: ids, in: place, bytes: 1)
        #expect(one.records.map(\.recordID) == [id("r1")])
        #expect(one.unread == Set(ids.dropFirst()))
    }
}
