import PostgresLink
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StoragePostgreSQL
@testable import StorageSQL

/// Round trips to a real server for saving many subscriptions, while all other writers wait.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
struct SubscriptionRoundTripTests {
    private static let owner = Sample.owner("alice")

    private static func subscription(_ number: Int, _ artist: String) -> Subscription {
        Sample.subscription("s\(number)", artist: artist, of: owner)
    }

    @Test func `the operations of one request read together what they need`() async throws {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        let connection = try test.transaction()
        var commit = OpenCommit(Database(connection), head: .start, quotas: Quotas())
        let container = try commit.container(Sample.container)
        let user = try commit.db.user(Self.owner.user, of: container)
        func run(
            _ edits: [SubscriptionEdit], _ atomicity: EditAtomicity = .allOrNothing
        ) throws -> [SubscriptionEditOutcome] {
            let step = SubscriptionStep(
                owner: Self.owner, container: container, user: user, now: Sample.moment(1))
            return try step.run(edits, atomicity, in: &commit)
        }
        let numbers = 1...200
        let before = connection.pipeline.roundTrips
        let created = try run(numbers.map { .create(Self.subscription($0, "a\($0)")) })
        let changed = try run(numbers.map { .update(Self.subscription($0, "b\($0)")) })
        let deleted = try run(numbers.map { .delete(Sample.identifier("s\($0)")) })
        // The database assigns a number to each saved subscription.
        #expect(connection.pipeline.roundTrips - before < 600)
        for outcomes in [created, changed, deleted] {
            #expect(outcomes.count == 200)
            #expect(outcomes.filter(\.isRefusal).isEmpty)
        }
        connection.rollBack()
        await store.close()
    }

    @Test func `looked-up subscriptions are read together`() async throws {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        let many = (1...200).map { Self.subscription($0, "a\($0)") }
        _ = try await store.edit(
            many.map { .create($0) }, of: Self.owner, atomicity: .allOrNothing,
            at: Sample.moment(1))
        let connection = try test.session().connectAgain(limits: PostgresSession.readingLimits)
        try connection.begin()
        let db = Database(connection)
        let before = connection.pipeline.roundTrips
        let (found, unread) = try RelayStore.subscriptions(
            named: many.map(\.id), of: Self.owner, bytes: 1 << 20, UnreadableRows(), in: db)
        #expect(connection.pipeline.roundTrips - before < 20)
        #expect(found.map(\.subscription) == many && unread.isEmpty)
        connection.rollBack()
        await store.close()
    }

    @Test func `operations of one request see the effects of earlier ones`() async throws {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        _ = try await store.edit(
            [.create(Self.subscription(1, "a")), .create(Self.subscription(2, "b"))],
            of: Self.owner, atomicity: .independent, at: Sample.moment(1))
        let outcomes = try await store.edit(
            [
                // Another subscription has the same condition; then that one is deleted.
                .create(Self.subscription(3, "a")), .delete(Sample.identifier("s1")),
                .create(Self.subscription(4, "a")), .create(Self.subscription(5, "a")),
                // A deleted subscription is created again, and updated.
                .create(Self.subscription(1, "c")), .update(Self.subscription(1, "d")),
                .update(Self.subscription(2, "c")), .delete(Sample.identifier("s2")),
                .delete(Sample.identifier("s2")),
            ],
            of: Self.owner, atomicity: .allOrNothing, at: Sample.moment(2))
        let refused = outcomes.indices.filter { outcomes[$0].isRefusal }
        #expect(refused == [0, 3, 8])
        #expect(outcomes[0] == .duplicate(of: Sample.identifier("s1")))
        #expect(outcomes[3] == .duplicate(of: Sample.identifier("s4")))
        #expect(outcomes[8] == .notFound(Sample.identifier("s2")))
        let left = try await store.subscriptions(of: Self.owner)
        #expect(left.map(\.subscription.id.rawValue) == ["s1", "s2"])
        await store.close()
    }
}
