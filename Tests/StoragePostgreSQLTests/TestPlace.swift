import RelayTestKit
import Storage
import Synchronization
import Testing

@testable import StoragePostgreSQL
@testable import StorageSQL

extension StoreClaimant {
    /// Returns a claimant with a random identity.
    static func forTests() -> StoreClaimant {
        StoreClaimant(name: "test", identity: (0..<16).map { _ in .random(in: 0...255) })
    }
}

/// A schema of the test server that no other test uses.
struct TestPlace {
    let server: PostgresServer
    let schema: String

    init() throws {
        server = try PostgresServer.ofStores()
        schema = server.schemaName()
    }

    /// Returns the place as a relay names it.
    func place(role: String = "postgres", database: String = "postgres") throws -> PostgresPlace {
        try PostgresPlace(url: server.url(database, role: role), schema: schema)
    }

    /// Returns a session that connects to the test server.
    func session(role: String = "postgres", database: String = "postgres") throws -> PostgresSession
    {
        let began = ContinuousClock.now
        return PostgresSession(
            place: try place(role: role, database: database),
            watch: { began.duration(to: .now) }, name: "belfry test")
    }

    /// Returns a connection as the writer has it, inside a transaction.
    func transaction() throws -> ServerConnection {
        let connection = try session().connectAgain(limits: PostgresSession.writingPlans)
        try connection.begin()
        return connection
    }

    /// Opens a store there and saves the usual container.
    func storeWithContainer() async throws -> RelayStore {
        let store = try RelayStore.open(try place(), as: .forTests(), settings: .forTests)
        try await store.save(
            ContainerSettings(key: Sample.container, topics: []), at: Sample.moment(0))
        return store
    }

    /// Returns how many rows of a table the transaction of `db` has read, by an index or by a scan.
    func rowsRead(of table: String, in db: Database) throws -> Int64 {
        let rows = try Int64.fetchOne(
            db,
            sql: """
                SELECT coalesce(idx_tup_fetch, 0) + seq_tup_read FROM pg_stat_xact_user_tables
                WHERE schemaname = '\(schema)' AND relname = '\(table)'
                """)
        return try #require(rows)
    }
}
