import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StorageSQL
@testable import StorageSQLite

/// Records of a type that is no longer kept disappear for readers at once, and are deleted in small
/// parts.
@Suite struct UnkeptTypesTests {
    private static let type: RecordType = Sample.identifier("Artwork")
    private static let other: RecordType = Sample.identifier("Other")
    private static let alice: UserID = Sample.identifier("alice")
    private static let place = RecordPlace(
        container: Sample.container, database: .private, owner: alice)
    private static let count = 100

    private static func id(_ name: String) -> RecordID {
        RecordID(recordName: Sample.identifier(name))
    }

    private static func definition(_ type: RecordType) -> RecordTypeDefinition {
        RecordTypeDefinition(type, isInferred: true)
    }

    private static func create(
        _ names: [String], _ type: RecordType, in store: RelayStore
    ) async throws {
        let edits = names.map { name in
            var edit = RecordEdit(.create, id(name), type: type)
            edit.fields = ["title": .string(name)]
            return edit
        }
        let outcomes = try await store.modify(
            edits, in: place, by: RecordEditor(userID: alice, isServer: false),
            atomicity: .independent, additions: [definition(type)], at: Sample.moment(1))
        #expect(outcomes.allSatisfy { !$0.isRefusal })
    }

    /// Returns a store with records of two types, one of which is no longer kept, before any of
    /// them is deleted.
    ///
    /// A relay that is killed then leaves such a store.
    private static func left(_ home: TemporaryStore) async throws -> RelayStore {
        let store = try home.open()
        try await store.save(
            ContainerSettings(key: Sample.container, topics: ["t"]), at: Sample.moment(0))
        try await create((0..<count).map { "a\($0)" }, type, in: store)
        try await create(["o"], other, in: store)
        try await store.putSchema(of: Sample.container, at: Sample.moment(2)) { _ in
            ContainerSchema([definition(other)])
        }
        return store
    }

    private static func kept(_ store: RelayStore) async throws -> Int? {
        try await store.quotaUse(of: Sample.container).amounts[.records]
    }

    private static func zone(_ store: RelayStore) async throws -> ZoneMark? {
        try await store.zone(.default, of: place)
    }

    @Test func `records of an unkept type disappear at once and are deleted even after a restart`()
        async throws
    {
        let home = try TemporaryStore()
        let killed = try await Self.left(home)
        await killed.close()
        let store = try home.open()
        #expect(try await Self.kept(store) == Self.count + 1)
        #expect(try await store.records(named: [Self.id("a1")], in: Self.place) == [])
        let changes = try await store.recordChanges(
            in: .default, of: Self.place, after: .start, PageBounds(rows: 1000))
        #expect(changes.elements.map(\.recordID) == [Self.id("o")])
        let scan = RecordScan(of: Self.type, in: Self.place, rows: 1000)
        let slice = try await store.scanRecords(scan, into: 0) { count, _ in
            count += 1
            return true
        }
        #expect(slice.value == 0)
        let said = try await store.head()
        // Each part is a turn at the writer, and other requests are written in between.
        #expect(try await store.forgetUnkept(parts: 1) == WriteLines.changesPerTurn)
        #expect(try await Self.kept(store) == Self.count + 1 - WriteLines.changesPerTurn)
        #expect(try await Self.zone(store)?.prunedTo == said)
        while try await store.forgetUnkept(parts: 1) > 0 {}
        #expect(try await store.forgetUnkept(parts: 9) == 0)
        #expect(try await Self.kept(store) == 1)
        #expect(try await store.records(named: [Self.id("o")], in: Self.place).count == 1)
        await store.close()
        #expect(try RelayStore.check(path: home.path).problems == [])
    }

    @Test func `a type can be kept again only after all its records are deleted`() async throws {
        let home = try TemporaryStore()
        let store = try await Self.left(home)
        let refusal = StorageError.bounded(
            .waiting,
            reason:
                "the records of Artwork are still being forgotten, because the type was not kept "
                + "for a while"
        )
        await #expect(throws: refusal) { try await Self.create(["new"], Self.type, in: store) }
        await #expect(throws: refusal) {
            try await store.putSchema(of: Sample.container, at: Sample.moment(3)) { _ in
                ContainerSchema([Self.definition(Self.type)])
            }
        }
        // A request that read the schema earlier leaves nothing behind.
        await #expect(throws: refusal) {
            _ = try await store.modify(
                [RecordEdit(.create, Self.id("late"), type: Self.type)], in: Self.place,
                by: RecordEditor(userID: Self.alice, isServer: false), atomicity: .independent,
                additions: [], at: Sample.moment(3))
        }
        // Saving the schema deletes a small remainder at once.
        try await store.replaceSchema(
            of: Sample.container,
            with: ContainerSchema([Self.definition(Self.type), Self.definition(Self.other)]),
            at: Sample.moment(3))
        #expect(try await Self.kept(store) == 1)
        #expect(try await store.records(named: [Self.id("a1")], in: Self.place) == [])
        try await Self.create(["a1"], Self.type, in: store)
        #expect(try await Self.kept(store) == 2)
        await store.close()
        #expect(try RelayStore.check(path: home.path).problems == [])
    }

    /// For each part, the writer would search all hidden records again.
    @Test func `a zone is deleted once no records of unkept types are left`() async throws {
        let store = try await Self.left(TemporaryStore())
        let zone = try #require(ZoneID(zoneName: "z"))
        _ = try await store.createZones([zone], in: Self.place)
        func delete() async throws -> ZoneDeletion {
            try await store.deleteZone(
                zone, in: Self.place, by: RecordEditor(userID: Self.alice, isServer: false),
                limit: 32, from: nil, at: Sample.moment(3))
        }
        #expect(try await delete() == .begun(nil))
        #expect(try await Self.kept(store) == Self.count + 1 - WriteLines.changesPerTurn)
        while try await delete() == .begun(nil) {}
        #expect(try await Self.kept(store) == 1)
        #expect(try await delete() == .unknown)
        await store.close()
    }

    @Test func `a late deletion step deletes nothing of a type that is kept again`()
        async throws
    {
        let store = try await Self.left(TemporaryStore())
        let slice = try await store.read { db -> UnkeptTypes.Slice? in
            let unkept = UnkeptTypes(container: try db.container(Sample.container))
            return try unkept.search(in: db).map { try unkept.slice($0, in: db) }
        }
        let late = try #require(slice)
        let both = ContainerSchema([Self.definition(Self.type), Self.definition(Self.other)])
        try await store.replaceSchema(of: Sample.container, with: both, at: Sample.moment(3))
        try await Self.create((0..<Self.count).map { "a\($0)" }, Self.type, in: store)
        func forget() async throws {
            try await store.write { commit in
                try UnkeptTypes(container: try commit.container(Sample.container))
                    .forget(late, in: commit.db)
            }
        }
        try await forget()
        #expect(try await Self.kept(store) == Self.count + 1)
        // The late deletion also must not mark the types that were dropped since as already
        // searched.
        try await store.putSchema(of: Sample.container, at: Sample.moment(4)) { _ in
            ContainerSchema([Self.definition(Self.other)])
        }
        try await forget()
        while try await store.forgetUnkept(parts: 1) > 0 {}
        #expect(try await Self.kept(store) == 1)
        await store.close()
    }
}
