import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import Testing

@testable import ChangeSources
@testable import RelayServer

/// How changes are prepared before they are appended, and how a request is appended in parts.
@Suite struct ChangeIntakeTests {
    private static let quiet = ContainerKey(
        container: Fixtures.identifier("iCloud.com.example.Music"), environment: .development)

    private static func keyed(_ count: Int) -> DecodedBatch {
        DecodedBatch(
            items: (0..<count).map { index in
                .change(
                    Fixtures.change(.create, "r\(index)"),
                    key: DedupeKey(kind: .delivery, text: "d#\(index)", digest: [1], window: nil))
            })
    }

    private static var shop: ChangeSource {
        get throws {
            try ChangeSource(
                json: ["name": "shop", "preset": "belfry", "verification": ["scheme": "none"]])
        }
    }

    /// Returns an intake that another container uses too.
    private static func intakeBesideOthers(
        _ store: RelayStore, _ clock: TestClock
    ) async throws -> (ChangeIntake, IntakeTurns) {
        let turns = IntakeTurns(clock: clock)
        _ = try await turns.run(quiet, changes: 1) { ((), nil) }
        let intake = ChangeIntake(
            log: store, shadow: store, registry: store, turns: ContainerTurns(turns: turns))
        return (intake, turns)
    }

    @Test func `beside other containers a webhook of dear changes is appended in parts`()
        async throws
    {
        let store = try TemporaryStore(in: .memory).open()
        try await store.save(
            ContainerSettings(key: Fixtures.container, topics: []), at: Fixtures.moment)
        let clock = TestClock()
        let (intake, turns) = try await Self.intakeBesideOthers(store, clock)
        let source = try Self.shop
        let post: @Sendable () async throws -> ChangeResults = {
            try await intake.take(
                Self.keyed(40), from: source, of: Fixtures.container, at: Fixtures.moment)
        }
        // Nothing is followed: sixteen changes are appended, and the others wait until the time
        // limit.
        let first = Task { try await post() }
        #expect(await Turns.yield { clock.sleeperCount == 1 })
        clock.advance(by: .seconds(2))
        let throttled = try await first.value
        #expect(throttled.failure?.httpStatus == 429 && throttled.failure?.retryAfter == 1)
        #expect(throttled.applied == 16 && throttled.entries.count == 40)
        let appended = try await store.head()
        // The repeated request continues where the first one ended.
        turns.followed(upTo: appended)
        let second = Task { try await post() }
        #expect(await Turns.yield { clock.sleeperCount == 1 })
        let head = try await store.head()
        #expect(head.rawValue - appended.rawValue == 16)
        turns.followed(upTo: head)
        let all = try await second.value
        #expect(all.failure == nil && all.applied == 24 && all.entries.count == 40)
        await store.close()
    }

    /// A part ends at 16 MiB, and the next part gets the share that it left.
    @Test func `beside other containers changes that a part left over are not counted`()
        async throws
    {
        let store = try TemporaryStore(in: .memory).open()
        try await store.save(
            ContainerSettings(key: Fixtures.container, topics: []), at: Fixtures.moment)
        let names = (0..<16).map { "r\($0)" }
        let long = FieldValue.string(String(repeating: "x", count: 900_000))
        let type = RecordTypeDefinition(Fixtures.change().recordType)
        try await store.extendSchema(of: Fixtures.container, with: [type])
        for name in names {
            let change = Fixtures.change(.create, name, fields: ["text": long])
            _ = try await store.append(
                [ChangeToAppend(change, key: nil)], container: Fixtures.container,
                source: Sample.source, at: Fixtures.moment)
        }
        let clock = TestClock()
        let (intake, _) = try await Self.intakeBesideOthers(store, clock)
        let source = try Self.shop
        let batch = DecodedBatch(
            items: names.map { name in
                var change = Fixtures.change(.update, name)
                change.after = RecordImage(["n": .integer(1)], completeness: .partial)
                return .change(change, key: nil)
            })
        let taken = Task {
            try await intake.take(
                batch, from: source, of: Fixtures.container, at: Fixtures.moment)
        }
        // Nothing is followed, and the share is just enough for all of them.
        let isIn = try await Turns.yield { try await store.head().rawValue == 32 }
        #expect(isIn)
        clock.advance(by: .seconds(2))
        let results = try await taken.value
        #expect(results.failure == nil && results.applied == 16)
        await store.close()
    }

    /// One request does a bounded part of the work, and the next one goes on where it ended.
    @Test func `the end of a snapshot with many missing records takes several requests`()
        async throws
    {
        let store = try TemporaryStore(in: .memory).open()
        try await store.save(
            ContainerSettings(key: Fixtures.container, topics: []), at: Fixtures.moment)
        let type = Fixtures.change().recordType
        try await store.extendSchema(
            of: Fixtures.container, with: [RecordTypeDefinition(type)])
        let source = try Self.shop
        var rest = (0..<1300).map { index in
            var change = Fixtures.change(.create, "r\(index)")
            change.version = 1
            return ChangeToAppend(change, key: nil)
        }
        while !rest.isEmpty {
            let outcomes = try await store.append(
                rest, container: Fixtures.container, source: source.name, at: Fixtures.moment)
            rest.removeFirst(outcomes.count)
        }
        let intake = ChangeIntake(
            log: store, shadow: store, registry: store, turns: ContainerTurns(turns: nil))
        let end = DecodedBatch(items: [.ended(EndedTypes(types: [type], version: 2))])
        var entries: [JSONValue] = []
        for isUnfinished in [true, false, false] {
            let results = try await intake.take(
                end, from: source, of: Fixtures.container, at: Fixtures.moment)
            #expect(results.isUnfinished == isUnfinished)
            entries += results.entries
        }
        let expected = [("unfinished", 1280), ("complete", 20), ("complete", 0)]
        #expect(
            entries
                == expected.map { status, count -> JSONValue in
                    ["status": .string(status), "deleted": .integer(Int64(count))]
                })
        #expect(try await store.head().rawValue == 2600)
        await store.close()
    }

    @Test(arguments: [false, true])
    func `prepared changes are valid as long as the schema is the same`(
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
