import PostgresLink
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StoragePostgreSQL
@testable import StorageSQL

/// Cursors: rows that a real server sends in parts.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
struct CursorTests {
    @Test func `a caller that stops early does not wait for the last row`() throws {
        let connection = try TestPlace().session().connectAgain()
        try connection.begin(" ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        // The server would give up long before it had produced all rows.
        let rows = try Row.fetchCursor(
            Database(connection), sql: "SELECT generate_series(?1, 1000000000000) AS n",
            arguments: [Int64(7)])
        // One row more than the first two answers hold.
        let wanted = 9 * ServerCursor.firstRows + 1
        var numbers: [Int64] = []
        while numbers.count < wanted, let row = try rows.next() { numbers.append(row["n"]) }
        #expect(numbers == (0..<wanted).map { Int64($0) + 7 })
        // The start of the transaction and the declaration of the cursor were sent along with the
        // first fetch.
        #expect(connection.pipeline.roundTrips == 3)
        #expect(try connection.commit() == "COMMIT")
    }

    @Test(arguments: [0, 1, 15, 16, 17, 144, 145, 300])
    func `a caller that reads to the end gets every row once`(count: Int) throws {
        let connection = try TestPlace().session().connectAgain()
        let db = Database(connection)
        try connection.begin()
        let rows = try Row.fetchCursor(
            db, sql: "SELECT generate_series(1, ?1) AS n", arguments: [Int64(count)])
        var numbers: [Int64] = []
        while let row = try rows.next() {
            numbers.append(row["n"])
            guard numbers.count < 3 else { continue }
            // Several cursors may be open at once.
            let other = try Int64.fetchCursor(
                db.cachedStatement(sql: "SELECT generate_series(?1, 1000000000000)"),
                arguments: [Int64(numbers.count)])
            #expect(try other.next() == Int64(numbers.count))
        }
        #expect(numbers == (0..<count).map { Int64($0) + 1 })
        #expect(try rows.next() == nil)
        // The first cursor was closed at its end. The query that counts has no named cursor.
        let left = try Int64.fetchOne(
            db, sql: "SELECT count(*) FROM pg_cursors WHERE name = 'rows1'")
        #expect(left == 0)
        #expect(try connection.commit() == "COMMIT")
    }

    /// A user's subscriptions are such rows: each may have a long condition.
    @Test func `large rows come a few at a time however many are requested`() throws {
        let connection = try TestPlace().session().connectAgain()
        try connection.begin(" ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        let rows = try Row.fetchCursor(
            Database(connection),
            sql: "SELECT repeat('x', 1000000) AS body FROM generate_series(1, ?1) LIMIT ?2",
            arguments: [Int64(10_000), 1000])
        var count = 0
        while count < ServerCursor.firstRows + 2, let row = try rows.next() {
            count += row.bytes(of: "body") / 1_000_000
        }
        #expect(count == ServerCursor.firstRows + 2)
        #expect(connection.pipeline.roundTrips == 3)
        #expect(try connection.commit() == "COMMIT")
    }

    @Test func `a statement that declares few rows is sent as a whole`() throws {
        let connection = try TestPlace().session().connectAgain()
        let db = Database(connection)
        try connection.begin()
        let rows = try Row.fetchCursor(
            db, sql: "SELECT n FROM (SELECT generate_series(1, ?1) AS n) AS few LIMIT ?2",
            arguments: [Int64(1000), ServerCursor.firstRows])
        var count = 0
        while try rows.next() != nil { count += 1 }
        #expect(count == ServerCursor.firstRows)
        #expect(connection.pipeline.roundTrips == 1)
        let question = "SELECT count(*) FROM pg_cursors WHERE name <> ''"
        #expect(try Int64.fetchOne(db, sql: question) == 0)
        #expect(try connection.commit() == "COMMIT")
    }

    @Test func `outside a transaction all rows come at once`() throws {
        let connection = try TestPlace().session().connectAgain()
        let numbers = try Int64.fetchCursor(
            Database(connection).makeStatement(sql: "SELECT generate_series(1, ?1)"),
            arguments: [Int64(200)])
        var count = 0
        while try numbers.next() != nil { count += 1 }
        #expect(count == 200)
    }

    /// There are as many badges as devices.
    ///
    /// A single answer would exceed the limit for a statement, and a relay that takes over a store
    /// would never start to send.
    @Test func `badges come in parts, and all of them come`() async throws {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        try test.server.sql(
            """
            SET search_path = \(test.schema);
            INSERT INTO "user" (container, name)
            SELECT id, 'user-' || n FROM container, generate_series(1, 3000) AS n;
            INSERT INTO badge (container, deviceID, owner, badge)
            SELECT container, 'device-' || id, id, 7 FROM "user";
            """)
        let connection = try test.session().connectAgain(limits: PostgresSession.readingLimits)
        try connection.begin(" ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        let badges = try RelayStore.badges(in: Database(connection))
        #expect(badges.count == 3000)
        #expect(badges.values.allSatisfy { $0 == 7 })
        let last: UserID = Sample.identifier("user-3000")
        #expect(badges.keys.contains { $0.container == Sample.container && $0.owner == last })
        #expect((3...60).contains(connection.pipeline.roundTrips))
        #expect(try connection.commit() == "COMMIT")
        await store.close()
    }
}
