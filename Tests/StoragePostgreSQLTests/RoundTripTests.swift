import PostgresLink
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StoragePostgreSQL
@testable import StorageSQL

/// How often what is written together waits for a real server: over a network each time counts, and
/// nobody else writes meanwhile.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
struct RoundTripTests {
    private static func entry(_ number: Int) -> InboxEntry {
        InboxEntry(
            owner: InboxOwner(
                container: Sample.container, user: Sample.identifier("user-\(number % 10)")),
            position: LogPosition(UInt64(1 + number / 10)), subscriptionSerial: 1,
            subscriptionID: Sample.identifier("s1"), database: .public,
            notificationID: UUIDBytes(high: 7, low: UInt64(number)), originDevice: nil,
            payload: Array("{}".utf8), at: Sample.moment(1))
    }

    @Test func `the keys of a request are asked for at once, and each is remembered once`()
        async throws
    {
        let test = try TestPlace()
        let store = try RelayStore.open(try test.place(), as: .forTests(), settings: .forTests)
        try await store.save(
            ContainerSettings(key: Sample.container, topics: []), at: Sample.moment(0))
        let connection = try test.session().connectAgain(limits: PostgresSession.readingLimits)
        try connection.begin()
        var commit = OpenCommit(Database(connection), head: .start, quotas: Quotas())
        let container = try commit.container(Sample.container)
        func run(_ changes: [ChangeToAppend], at seconds: Int64) throws -> [AppendOutcome] {
            let step = AppendStep(
                changes: try changes.map { try PreparedChange($0) }, delivery: nil,
                source: Sample.source, now: Sample.moment(seconds), settings: .forTests)
            return try step.run(in: &commit, container: container)
        }
        let changes = (1...200).map { Sample.keyed("art-\($0)", .position, "\($0)") }
        let before = connection.pipeline.roundTrips
        let first = try run(changes, at: 1)
        let expected = (UInt64(1)...200).map { AppendOutcome.appended(LogPosition($0)) }
        #expect(first == expected)
        #expect(connection.pipeline.roundTrips - before < 20)
        // The same again, one of them otherwise, and a new one twice.
        let again =
            [changes[0], Sample.keyed("art-2", .position, "2", digest: 2)]
            + [Sample.keyed("new", .position, "new"), Sample.keyed("new", .position, "new")]
        let second = try run(again, at: 2)
        #expect(
            second == [
                .duplicate(LogPosition(1)), .conflict(LogPosition(2)), .appended(LogPosition(201)),
                .duplicate(LogPosition(201)),
            ])
        // What is forgotten by then is new.
        let late = Int64(StoreSettings.forTests.dedupeWindow.components.seconds) + 10
        let third = try run([changes[0], changes[0]], at: late)
        #expect(third == [.appended(LogPosition(202)), .duplicate(LogPosition(202))])
        connection.rollBack()
        await store.close()
    }

    @Test func `entries of inboxes are numbered and written together, each once`() async throws {
        let test = try TestPlace()
        let store = try RelayStore.open(try test.place(), as: .forTests(), settings: .forTests)
        try await store.save(
            ContainerSettings(key: Sample.container, topics: []), at: Sample.moment(0))
        let connection = try test.session().connectAgain(limits: PostgresSession.readingLimits)
        let db = Database(connection)
        try connection.begin()
        // Some twice at once, and then many once more, as after a crash.
        let entries = (0..<200).map { Self.entry($0) } + (195..<200).map { Self.entry($0) }
        try InboxStep.insert(entries, perUser: 1000, in: db)
        try InboxStep.insert(Array(entries.prefix(100)), perUser: 1000, in: db)
        try connection.settle()
        #expect(connection.pipeline.roundTrips < 60)
        let count = try Int64.fetchOne(db, sql: "SELECT count(*) FROM notification")
        #expect(count == 200)
        let ends = try Int64.fetchAll(db, sql: "SELECT lastSequence FROM inbox")
        #expect(ends == [Int64](repeating: 20, count: 10))
        #expect(try connection.commit() == "COMMIT")
        await store.close()
    }
}
