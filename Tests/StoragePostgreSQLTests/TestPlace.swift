import RelayTestKit
import Storage
import Synchronization
import Testing

@testable import StoragePostgreSQL
@testable import StorageSQL

extension StoreClaimant {
    /// A process that is none of the others.
    static func forTests() -> StoreClaimant {
        StoreClaimant(name: "test", identity: (0..<16).map { _ in .random(in: 0...255) })
    }
}

/// A schema of the test server that nobody else has.
struct TestPlace {
    let server: PostgresServer
    let schema: String

    init() throws {
        server = try PostgresServer.ofStores()
        schema = server.schemaName()
    }

    /// The place as a relay names it.
    func place(role: String = "postgres", database: String = "postgres") throws -> PostgresPlace {
        try PostgresPlace(url: server.url(database, role: role), schema: schema)
    }

    /// Makes connections to it.
    func session(role: String = "postgres", database: String = "postgres") throws -> PostgresSession
    {
        let began = ContinuousClock.now
        return PostgresSession(
            place: try place(role: role, database: database),
            watch: { began.duration(to: .now) }, name: "belfry test")
    }

    /// A connection as the writer has it, in a transaction.
    func transaction() throws -> ServerConnection {
        let connection = try session().connectAgain(limits: PostgresSession.writingPlans)
        try connection.begin()
        return connection
    }

    /// Opens a store there that has the usual container.
    func storeWithContainer() async throws -> RelayStore {
        let store = try RelayStore.open(try place(), as: .forTests(), settings: .forTests)
        try await store.save(
            ContainerSettings(key: Sample.container, topics: []), at: Sample.moment(0))
        return store
    }

    /// The rows of a table that the transaction of `db` has read, by an index or all in a row.
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
