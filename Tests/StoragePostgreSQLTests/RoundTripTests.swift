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

    @Test func `entries of inboxes are numbered and written together, each once`() async throws {
        let test = try TestPlace()
        let store = try RelayStore.open(try test.place(), as: .forTests(), settings: .forTests)
        try await store.save(
            ContainerSettings(key: Sample.container, topics: []), at: Sample.moment(0))
        let connection = try test.session().connectAgain()
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
