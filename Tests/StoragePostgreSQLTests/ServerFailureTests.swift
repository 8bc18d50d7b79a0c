import PostgresLink
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import Testing

@testable import StoragePostgreSQL

/// How failures of the server are classified.
struct VerdictTests {
    @Test(arguments: [
        ("57P04", PostgresError.Verdict.lost), ("25P04", .lost), ("57P01", .lost),
        ("53000", .failing), ("58030", .failing), ("58P01", .failing), ("XX000", .failing),
        ("72000", .failing), ("XX001", .damaged), ("42703", .barred), ("42P10", .barred),
        ("53100", .noRoom), ("57014", .busy), ("23505", .refused), ("54000", .refused),
    ])
    func `a failure is classified by its code`(state: String, verdict: PostgresError.Verdict) {
        #expect(PostgresError(state: state, message: "").verdict == verdict)
    }

    /// Too many open files on the server, and what the server calls an internal error, count as
    /// temporary.
    ///
    /// If they did not, a step that cannot be written would end the relay, and each relay that
    /// follows.
    @Test(arguments: ["53000", "58030", "25P04", "57P04", "XX000"])
    func `failures of the server itself count as temporary`(state: String) throws {
        let place = try PostgresPlace(url: "host=/nonexistent user=postgres dbname=postgres")
        let error = PostgresError(state: state, message: "could not open file")
        let told = try #require(error.storageError(of: place) as? StorageError)
        #expect(told.passes)
        #expect("\(told)".contains("could not open file (\(state))"))
    }

    /// Tables may be wrong while another version alters them, or after somebody did.
    ///
    /// Until that is corrected, the step waits, and the relay says why.
    @Test(arguments: ["42703", "42704", "42804", "42883", "42P10"])
    func `wrong tables count as temporary and are reported`(state: String) throws {
        let place = try PostgresPlace(url: "host=/nonexistent user=postgres dbname=postgres")
        let error = PostgresError(state: state, message: "it does not exist")
        let told = try #require(error.storageError(of: place) as? StorageError)
        #expect(told.passes)
        #expect("\(told)".contains("not as this Belfry needs them"))
        #expect("\(told)".contains("it does not exist (\(state))"))
        #expect(try #require(PostgresSession.obstacle(of: error)).contains("undo the alteration"))
    }

    /// A relay that stands by says in its log and its `/readyz` what is wrong, as the owner does.
    @Test(arguments: ["42P01", "3F000", "42703"])
    func `missing tables are also reported to a relay that stands by`(state: String) throws {
        let place = try PostgresPlace(url: "host=/nonexistent user=postgres dbname=postgres")
        let error = PostgresError(state: state, message: "it does not exist").opening(place)
        #expect("\(error)".contains("it does not exist (\(state))"))
        #expect(!"\(error)".contains("see its log"))
        let obstacle = try #require(PostgresSession.obstacle(of: error))
        #expect(obstacle.hasPrefix("the store's tables"))
        #expect(!obstacle.contains("it does not exist"))
    }

    @Test func `a server without TLS is reported as such`() throws {
        let place = try PostgresPlace(url: "host=/nonexistent user=postgres dbname=postgres")
        let error = PostgresError(
            state: "", message: "server does not support SSL, but SSL was required")
        let told = "\(error.opening(place))"
        #expect(told.contains("the server does not speak TLS") && told.contains("sslmode=disable"))
        #expect(!told.contains("sslrootcert"))
    }

    /// A relay that ends because of such an error reports it in these words.
    @Test func `a refusal is described in the server's words`() {
        let error = PostgresError(state: "23505", message: "duplicate key value")
        #expect("\(error)" == "duplicate key value (23505)")
        #expect("\(PostgresError(state: "", message: "lost"))" == "lost")
    }

    @Test func `a failure that every request would meet is no fault of one request`() {
        #expect(throws: StorageError.unavailable("no transactions any more (54000)")) {
            try PostgresError.concerningAll { () throws -> Void in
                throw PostgresError(state: "54000", message: "no transactions any more")
            }
        }
        let lost = PostgresError(state: "57P01", message: "ended")
        #expect(throws: lost) {
            try PostgresError.concerningAll { () throws -> Void in throw lost }
        }
    }
}

/// How the writer handles a server that refuses.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
struct ServerFailureTests {
    private static func append(_ name: String, to store: RelayStore) async throws -> AppendOutcome?
    {
        try await store.append(
            [Sample.unkeyed(name)], container: Sample.container, source: Sample.source,
            at: Sample.moment(0)
        ).first
    }

    @Test func `a shard that cannot be locked refuses requests until it can be`() async throws {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        let table = "ALTER TABLE \(test.schema).shard RENAME COLUMN shard"
        try test.server.sql("\(table) TO other")
        let refusal = await #expect(throws: StorageError.self) {
            _ = try await Self.append("first", to: store)
        }
        guard case .unavailable? = refusal else {
            Issue.record("\(String(describing: refusal))")
            return
        }
        try test.server.sql("ALTER TABLE \(test.schema).shard RENAME COLUMN other TO shard")
        #expect(try await Self.append("first", to: store) == .appended(LogPosition(1)))
        await store.close()
    }

    /// A step that meets this error must not end the relay.
    @Test func `a missing column refuses the requests that need it until it is back`() async throws
    {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        let table = "ALTER TABLE \(test.schema).progress RENAME COLUMN"
        try test.server.sql("\(table) deferred TO other")
        var step = SettledStep(from: .start, to: .start)
        step.tallies[Sample.container] = DeliveryTally(owed: 1, delivered: 1)
        let refusal = await #expect(throws: StorageError.self) { try await store.settle(step) }
        #expect(refusal?.passes == true)
        #expect("\(String(describing: refusal))".contains("belfry nodes"))
        try test.server.sql("\(table) other TO deferred")
        try await store.settle(step)
        #expect(try await store.accounts().first?.owed == 1)
        await store.close()
    }

    /// Queued statements are sent with the commit, which the server then does not execute.
    @Test func `if a queued statement fails nothing is committed and the connection stays usable`()
        throws
    {
        let test = try TestPlace()
        let connection = try test.session().connectAgain()
        let db = Database(connection)
        try db.execute(sql: "CREATE SCHEMA \(test.schema)")
        try db.execute(sql: "CREATE TABLE thing (id bigint PRIMARY KEY)")
        try connection.settle()
        let before = connection.pipeline.roundTrips
        try connection.begin()
        for id in [1, 2, 1] {
            try db.execute(sql: "INSERT INTO thing (id) VALUES (?)", arguments: [id])
        }
        let refusal = #expect(throws: PostgresError.self) { try connection.commit() }
        #expect(refusal?.verdict == .refused && !connection.isBroken)
        connection.rollBack()
        #expect(connection.pipeline.roundTrips == before + 2)
        #expect(try Int64.fetchOne(db, sql: "SELECT count(*) FROM thing") == 0)
    }

    /// A statement whose result is not needed is sent later, here with the rollback.
    @Test func `if a queued statement of a failing request fails the next request succeeds`()
        async throws
    {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        let connection = try test.transaction()
        var commit = OpenCommit(Database(connection), head: .start, quotas: Quotas())
        func request(
            _ perform: @escaping @Sendable (inout OpenCommit) throws -> @Sendable () -> Void
        ) -> WriteRequest {
            WriteRequest(
                lane: .own, container: nil, changes: 1, bytes: 0, perform: perform,
                fail: { _ in })
        }
        let failing = request { commit in
            try commit.db.execute(
                sql: "INSERT INTO onceClaim (subscription, position) VALUES (?, ?)",
                arguments: [1, 0])
            throw StorageError.overloaded("")
        }
        #expect(throws: StorageError.overloaded("")) { _ = try commit.run(failing, .each) }
        let next = request { commit in
            let found = try Int64.fetchOne(commit.db, sql: "SELECT count(*) FROM container")
            #expect(found == 1)
            return {}
        }
        #expect(throws: Never.self) { _ = try commit.run(next, .each) }
        connection.rollBack()
        await store.close()
    }
}
