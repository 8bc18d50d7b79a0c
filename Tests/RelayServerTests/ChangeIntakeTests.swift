import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import Testing

@testable import ChangeSources
@testable import RelayServer

/// What is prepared ahead of changes, and what is done when they are taken.
@Suite struct ChangeIntakeTests {
    @Test(arguments: [false, true])
    func `what was prepared counts as long as the schema is the same`(
        changes: Bool
    ) async throws {
        let store = try TemporaryStore(in: .memory).open()
        try await store.save(
            ContainerSettings(key: Fixtures.container, topics: []), at: Fixtures.moment)
        let intake = ChangeIntake(
            log: store, shadow: store, registry: store, turns: ContainerTurns(turns: nil))
        let change = Fixtures.change(fields: ["done": .bool(true)])
        let batch = DecodedBatch(items: [.change(change, key: nil)])
        let schema = try await intake.schema(of: Fixtures.container)
        let prepared = try intake.prepare(batch, by: schema)
        if changes {
            let type = RecordTypeDefinition(
                change.recordType, fields: ["done": FieldDefinition(.init(.int64))])
            try await store.replaceSchema(
                of: Fixtures.container, with: ContainerSchema([type]), at: Fixtures.moment)
        }
        let results = try await intake.take(
            batch, prepared: prepared,
            from: try ChangeSource(
                json: ["name": "shop", "preset": "belfry", "verification": ["scheme": "none"]]),
            of: Fixtures.container, at: Fixtures.moment)
        #expect(results.failure == nil)
        let entries = try await store.entries(after: .start, limit: 2)
        guard case .change(let appended, _, _)? = entries.first?.body else {
            Issue.record("nothing was appended")
            return
        }
        #expect(appended.after?.fields["done"] == (changes ? .integer(1) : .bool(true)))
        await store.close()
    }
}
