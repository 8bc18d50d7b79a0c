import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StorageSQL
@testable import StorageSQLite

/// What the store accepts can be read again from the file, and not only from memory.
@Suite struct StoredFormTests {
    private static func ready(_ home: TemporaryStore) async throws -> RelayStore {
        let store = try home.open()
        try await store.save(
            ContainerSettings(key: Fixtures.container, topics: ["t"]), at: Fixtures.moment)
        return store
    }

    private static func append(_ change: RecordChange, to store: RelayStore) async throws {
        _ = try await store.append(
            [ChangeToAppend(change, key: nil)], delivery: nil, container: Fixtures.container,
            source: Fixtures.identifier("app"), at: Fixtures.moment)
    }

    private static func nested(_ depth: Int, in wrap: (FieldValue) -> FieldValue) -> FieldValue {
        (0..<depth).reduce(.integer(1)) { value, _ in wrap(value) }
    }

    @Test(arguments: Seeds.all)
    func `an appended change reads back as written, or is refused with the field's name`(
        seed: UInt64
    ) async throws {
        let store = try await Self.ready(TemporaryStore())
        var odd = OddValues(seed: seed)
        var appended: [RecordChange] = []
        var refused = 0
        for number in 0..<300 {
            var fields: RecordFields = [:]
            for _ in 0...2 {
                guard let json = try? JSONValue(stored: odd.json()),
                    let value = try? FieldValue(notation: json)
                else { continue }
                fields[odd.name()] = value
            }
            let change = Fixtures.change(
                number % 3 == 0 ? .delete : .create, "r\(number)", fields: fields)
            do {
                try await Self.append(change, to: store)
                appended.append(change)
            } catch let error as JSONContractError {
                refused += 1
                #expect(error.reason.hasSuffix("128 are allowed"), "\(error)")
                #expect(error.path.hasPrefix("after.") || error.path.hasPrefix("before."))
            }
        }
        #expect(refused > 0 && appended.count > 200, "\(refused) of 300 refused")
        let entries = try await store.storedEntries(after: .start, limit: 1000)
        let read = entries.compactMap { entry in
            if case .change(let change, _, _) = entry.body { change } else { nil }
        }
        #expect(read == appended)
        await store.close()
    }

    @Test func `the deepest value is stored, and a deeper one is refused`() async throws {
        let store = try await Self.ready(TemporaryStore())
        let wraps: [(levels: Int, wrap: (FieldValue) -> FieldValue)] = [
            (1, { .list([$0]) }), (1, { .map(["a": $0]) }), (2, { .set([$0]) }),
            (2, { .map(["$a": $0]) }),
        ]
        for (levels, wrap) in wraps {
            let deepest = Self.nested(Limits.maximumValueDepth / levels, in: wrap)
            try await Self.append(Fixtures.change(fields: ["f": deepest]), to: store)
            let head = try await store.head()
            let entries = try await store.storedEntries(
                after: LogPosition(head.rawValue - 1), limit: 1)
            guard case .change(let change, _, _)? = entries.first?.body else {
                Issue.record("\(entries)")
                continue
            }
            #expect(change.after?.fields == ["f": deepest])
            let tooDeep = JSONContractError(
                path: "after.f",
                reason: "nested \(Limits.maximumValueDepth + 1) levels deep in its stored form; "
                    + "128 are allowed")
            await #expect(throws: tooDeep) {
                try await Self.append(
                    Fixtures.change(fields: ["f": .list([deepest])]), to: store)
            }
            #expect(try await store.head() == head, "nothing is half-applied")
        }
        await store.close()
    }

    @Test func `a kept record and its partial images read back as written`() async throws {
        let home = try TemporaryStore()
        let store = try await Self.ready(home)
        var kept = RecordTypeDefinition(Fixtures.identifier("Artwork"))
        kept.isKept = true
        try await store.extendSchema(of: Fixtures.container, with: [kept])
        let deepest = Self.nested(Limits.maximumValueDepth) { .list([$0]) }
        try await Self.append(Fixtures.change(fields: ["f": deepest, "g": .bool(true)]), to: store)
        var update = RecordChange(
            .update, of: Fixtures.identifier("Artwork"),
            RecordID(recordName: Fixtures.identifier("a1")))
        update.after = RecordImage(["g": .bool(false)], completeness: .partial)
        try await Self.append(update, to: store)
        await store.close()
        let again = try home.open()
        let place = RecordPlace(container: Fixtures.container, database: .public, owner: nil)
        let found = try await again.records(named: [update.recordID], in: place)
        #expect(found.first?.fields == ["f": deepest, "g": .bool(false)])
        let entries = try await again.entries(after: .start, limit: 10)
        guard case .change(let change, _, _)? = entries.last?.body else {
            Issue.record("\(entries)")
            return
        }
        #expect(change.before?.fields == ["f": deepest, "g": .bool(true)])
        // The entry also holds what the relay knows about the record's creation and modification.
        #expect(change.created == RecordTrace(at: Fixtures.moment, userID: nil))
        #expect(change.formerlyModified == change.created)
        await again.close()
    }
}
