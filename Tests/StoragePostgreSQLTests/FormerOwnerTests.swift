import PostgresLink
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import Testing

@testable import StoragePostgreSQL

/// Relays that hang or are cut off while another relay owns the store.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
struct FormerOwnerTests {
    /// A relay may be cut off from the database while another one owns the store and revokes a key.
    @Test func `cached settings do not count once the lease is over`() async throws {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        try await store.save(
            AccessKey(
                id: "key", container: Sample.container, kind: .bearer, verifier: "verifier",
                label: "", createdAt: Sample.moment(0)))
        #expect(try await store.accessKeys(of: Sample.container).first?.revokedAt == nil)
        let connection = try test.session().connect()
        try connection.query("SET idle_in_transaction_session_timeout = 0")
        try connection.query("BEGIN")
        try connection.query("SELECT shard FROM ownership FOR UPDATE")
        try test.server.sql("UPDATE \(test.schema).accessKey SET revokedAt = 1")
        let isHeard = try await Turns.yield {
            try await store.accessKeys(of: Sample.container).first?.revokedAt != nil
        }
        #expect(isHeard)
        try connection.query("ROLLBACK")
        await store.close()
    }

    /// A relay that was suspended may wake when another one owns the store.
    @Test func `a relay that does not own the store does not encrypt its secrets`() async throws {
        let test = try TestPlace()
        let place = try test.place()
        let store = try RelayStore.open(place, as: .forTests(), settings: .forTests)
        let key = try #require(SecretKey(text: String(repeating: "ab", count: 32)))
        let secrets = ServerSecrets(
            place: place, vault: SecretVault(current: key, previous: []))
        let refusal = #expect(throws: StorageError.self) {
            try secrets.seal(try test.session(), epoch: 1)
        }
        guard case .locked? = refusal else {
            Issue.record("\(String(describing: refusal))")
            return
        }
        #expect(
            try test.server.sql("SELECT count(*) FROM \(test.schema).secretSeal") == "0")
        await store.close()
    }

    /// The hanging sessions belong to the login role, and the role that the relay works as may not
    /// terminate them.
    @Test func `a hanging former owner is terminated even if a role works as another`()
        async throws
    {
        let test = try TestPlace()
        let (owner, login) = ("o\(test.schema)", "r\(test.schema)")
        try test.server.sql("CREATE ROLE \(owner)")
        try test.server.sql("CREATE ROLE \(login) LOGIN IN ROLE \(owner)")
        try test.server.sql("ALTER ROLE \(login) SET role = \(owner)")
        try test.server.sql("CREATE SCHEMA \(test.schema) AUTHORIZATION \(owner)")
        let place = try test.place(role: login)
        _ = try RelayStore.migrate(place)
        let (first, second) = (StoreClaimant.forTests(), StoreClaimant.forTests())
        let hanging = try PostgresSession(place: place, name: first.sessionName).connect()
        try hanging.query("SET idle_in_transaction_session_timeout = 0")
        try hanging.query("UPDATE ownership SET owner = $1, epoch = 1", [first.sessionName])
        try hanging.query("BEGIN")
        try hanging.query("SELECT shard FROM shard FOR UPDATE")
        let connection = try test.session(role: login).connect()
        // A server that has just started leaves the store to its owner for a moment.
        let isOwned = try await Turns.yield {
            try Ownership.claim(second, connection) == .owned(epoch: 2)
        }
        #expect(isOwned)
        #expect(try connection.query("SHOW role") == [[owner]])
        #expect(throws: PostgresError.self) { try hanging.query("SELECT 1") }
    }
}
