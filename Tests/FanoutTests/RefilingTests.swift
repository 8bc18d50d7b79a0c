import Fanout
import Matching
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

/// The changes that are followed move subscriptions to better keys.
@Suite struct RefilingTests {
    private struct Finished: Error {}

    private static let owner = SubscriptionOwner(
        container: Fixtures.container, database: .public, user: Fixtures.identifier("alice"))

    /// Makes a store with 150 conditions under one country, followed by changes of that country.
    private func store(changes: Int) async throws -> RelayStore {
        let store = try TemporaryStore().open()
        try await store.save(
            ContainerSettings(key: Fixtures.container, topics: []), at: Fixtures.moment)
        let edits = (0..<150).map { number in
            SubscriptionEdit.create(
                Fixtures.subscription(
                    "s\(number)",
                    where: "country = \"Germany\" AND title LIKE \"*zq\(number)x*\""))
        }
        _ = try await store.edit(
            edits, of: Self.owner, atomicity: .allOrNothing, at: Fixtures.moment)
        for start in stride(from: 0, to: changes, by: 200) {
            let changes = (start..<start + 200).map { number in
                let fields: RecordFields = [
                    "country": .string("Germany"), "title": .string("title \(number)"),
                ]
                return ChangeToAppend(
                    Fixtures.change(.create, "a\(number)", fields: fields), key: nil)
            }
            _ = try await store.append(
                changes, container: Fixtures.container, source: Fixtures.identifier("test"),
                at: Fixtures.moment)
        }
        return store
    }

    @Test func `the follower refiles subscriptions under a hot key from the registry`()
        async throws
    {
        let store = try await store(changes: 1600)
        let directory = IndexDirectory()
        let head = try await store.head()
        var follower = Follower(
            log: store, progress: store, identity: DeliveryIdentity(store: store.storeIdentity),
            indexSeed: 7, clock: ContinuousClock(), settings: { _ in nil },
            logger: .silent,
            directory: directory
        ) { batch in if batch.finished == head { throw Finished() } }
        let registry = BrokenOffReading(store)
        try await follower.recover(at: .start, from: registry)
        let loading = registry.portions.count
        do {
            try await follower.follow(from: .start)
        } catch is Finished {}
        // A few subscriptions are read at a time, because the next push waits for each reading.
        let portions = registry.portions.dropFirst(loading)
        #expect(portions.count <= 5 && portions.max() == 64, "\(portions)")
        await store.close()
        let index = try #require(directory.index(of: Fixtures.container))
        let costs = try #require(directory.costs(of: Fixtures.container))
        let before = index.statistics.runs
        let fields: RecordFields = [
            "country": .string("Germany"), "title": .string("about zq77x"),
        ]
        let found = index.matches(for: Fixtures.change(.create, "z", fields: fields))
        #expect(found.count == 1)
        // Ten other conditions ask for a word that begins with the same three letters.
        #expect(index.statistics.runs - before <= 11)
        #expect(index.statistics.subscriptions == 150)
        #expect(costs.comparisonsPerChange(of: Fixtures.identifier("Artwork")) == 0)
    }
}
