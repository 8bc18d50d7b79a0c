import RelayModel
import RelayTestKit
import Storage
import StorageSQLite
import Testing

/// The shadow in the store: what survives, and in which transaction.
@Suite struct ShadowTests {
    private static let container = Sample.container
    private static let type: RecordType = Sample.identifier("Artwork")
    private static let place = RecordPlace(
        container: container, database: .public, owner: nil)
    private static let editor = RecordEditor(
        userID: Sample.identifier("alice"), isServer: false)

    private static func id(_ name: String) -> RecordID {
        RecordID(recordName: Sample.identifier(name))
    }

    private static func open(_ home: TemporaryStore) async throws -> RelayStore {
        let store = try home.open()
        try await store.save(
            ContainerSettings(key: container, topics: ["t"]), at: Sample.moment(0))
        return store
    }

    private static func create(_ name: String, _ title: String) -> RecordEdit {
        var edit = RecordEdit(.create, id(name), type: type)
        edit.fields = ["title": .string(title)]
        return edit
    }

    private static func modify(
        _ store: RelayStore, _ edits: [RecordEdit], atomicity: EditAtomicity = .independent
    ) async throws -> [RecordEditOutcome] {
        try await store.modify(
            edits, in: place, by: editor, atomicity: atomicity,
            additions: [RecordTypeDefinition(type, isInferred: true)], at: Sample.moment(1))
    }

    @Test func `a bound refuses records too, and counts them`() async throws {
        let store = try await Self.open(TemporaryStore())
        store.gate.set([.ranges: "many wait"])
        await #expect(throws: StorageError.bounded(.ranges, reason: "many wait")) {
            try await Self.modify(store, [Self.create("a", "One")])
        }
        #expect(store.gate.refusals == [.ranges: 1])
        store.gate.set([:])
        #expect(try await Self.modify(store, [Self.create("a", "One")]).count == 1)
        await store.close()
    }

    @Test func `an acknowledged record is there after the store was closed and opened again`()
        async throws
    {
        let home = try TemporaryStore()
        let store = try await Self.open(home)
        let outcomes = try await Self.modify(store, [Self.create("a", "One")])
        guard case .saved(let saved)? = outcomes.first else {
            Issue.record("\(outcomes)")
            return
        }
        await store.close()
        let again = try home.open()
        let found = try await again.records(named: [Self.id("a")], in: Self.place)
        #expect(found == [saved])
        let schema = try await again.schema(of: Self.container)
        #expect(schema.recordTypes[Self.type]?.isInferred == true)
        let entries = try await again.entries(after: .start, limit: 10)
        #expect(entries.map(\.position) == [saved.position])
        await again.close()
    }

    @Test func `a refused atomic request leaves neither records nor entries of the log`()
        async throws
    {
        let store = try await Self.open(try TemporaryStore())
        var update = RecordEdit(.update, Self.id("b"), type: Self.type)
        update.changeTag = "1"
        let outcomes = try await Self.modify(
            store, [Self.create("a", "One"), update], atomicity: .allOrNothing)
        #expect(outcomes == [.undone, .refused(.notFound)])
        #expect(try await store.records(named: [Self.id("a")], in: Self.place) == [])
        #expect(try await store.head() == .start)
        await store.close()
    }

    @Test func `of many who change one version of a record, one succeeds`() async throws {
        let store = try await Self.open(try TemporaryStore())
        let outcomes = try await Self.modify(store, [Self.create("a", "One")])
        guard case .saved(let saved)? = outcomes.first else {
            Issue.record("\(outcomes)")
            return
        }
        let wins = try await withThrowingTaskGroup(of: Bool.self) { tasks in
            for number in 0..<20 {
                tasks.addTask {
                    var edit = RecordEdit(.update, Self.id("a"), type: Self.type)
                    edit.changeTag = saved.changeTag
                    edit.fields = ["title": .string("\(number)")]
                    guard case .saved? = try await Self.modify(store, [edit]).first else {
                        return false
                    }
                    return true
                }
            }
            return try await tasks.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(wins == 1)
        await store.close()
    }

    @Test func `a webhook's change and the shadow are written together, once`() async throws {
        let store = try await Self.open(try TemporaryStore())
        try await store.extendSchema(
            of: Self.container, with: [RecordTypeDefinition(Self.type)])
        var change = RecordChange(.update, of: Self.type, Self.id("a"))
        change.after = RecordImage(["title": .string("One")], completeness: .partial)
        let key = DedupeKey(kind: .delivery, text: "d1", digest: [1])
        for _ in 0..<2 {
            _ = try await store.append(
                [ChangeToAppend(change, key: key)], container: Self.container,
                source: Sample.source, at: Sample.moment(2))
        }
        var removal = RecordChange(.delete, of: Self.type, Self.id("a"))
        _ = try await store.append(
            [ChangeToAppend(removal, key: nil)], container: Self.container,
            source: Sample.source, at: Sample.moment(3))
        let entries = try await store.entries(after: .start, limit: 10)
        removal.before = RecordImage(["title": .string("One")], completeness: .partial)
        // What the relay knows of a kept record goes with its changes.
        removal.created = RecordTrace(at: Sample.moment(2), userID: nil)
        removal.formerlyModified = removal.created
        #expect(
            entries.map(\.body) == [
                .change(change, source: Sample.source, isStale: false),
                .change(removal, source: Sample.source, isStale: false),
            ])
        let marks = try await store.recordChanges(
            in: .default, of: Self.place, after: .start, PageBounds(rows: 10))
        #expect(marks.elements.map(\.isDeleted) == [true])
        await store.close()
    }

    @Test func `a schema that keeps a type no more forgets its records`() async throws {
        let store = try await Self.open(try TemporaryStore())
        _ = try await Self.modify(store, [Self.create("a", "One")])
        try await store.replaceSchema(of: Self.container, with: ContainerSchema())
        #expect(try await store.records(named: [Self.id("a")], in: Self.place) == [])
        #expect(try await store.schema(of: Self.container) == ContainerSchema())
        await store.close()
    }
}
