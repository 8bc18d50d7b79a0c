import PostgresLink
import RelayTestKit
import Storage
import StorageSQL
import Synchronization
import Testing

@testable import StoragePostgreSQL

/// The relays that a store knows.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
struct RelayNodesTests {
    private static func claimant(
        _ name: String, _ version: String = "1.2.3", settings: AgreedSettings? = nil
    ) -> StoreClaimant {
        StoreClaimant(
            name: name, identity: (0..<16).map { _ in .random(in: 0...255) }, version: version,
            settings: settings)
    }

    private static func open(
        _ place: PostgresPlace, _ claimant: StoreClaimant, _ key: SecretKey? = nil
    ) throws -> RelayStore {
        var settings = StoreSettings.forTests
        settings.secrets = SecretVault(current: key, previous: [])
        return try RelayStore.open(place, as: claimant, settings: settings)
    }

    @Test func `the owner and the relays that stand by are listed until they end`() async throws {
        let test = try TestPlace()
        let place = try test.place()
        let (first, second) = (Self.claimant("first"), Self.claimant("second", "1.3.0"))
        let store = try Self.open(place, first)
        // A relay lists itself with its first beat.
        try await test.server.wait(
            for: "1", of: "SELECT count(*) FROM \(test.schema).relayNode")
        #expect(throws: StorageError.self) { try Self.open(place, second) }
        let nodes = try RelayStore.nodes(place)
        #expect(nodes.map(\.name) == ["first", "second"])
        #expect(nodes.map(\.version) == ["1.2.3", "1.3.0"])
        #expect(nodes.map(\.role) == [.owner, .standingBy])
        #expect(nodes[0].epoch == 1 && nodes[0].leaseUntil != nil)
        #expect(nodes[1].epoch == nil && nodes[1].leaseUntil == nil)
        #expect(nodes.allSatisfy { $0.since <= $0.seen && $0.since.hasSuffix("Z") })
        let connection = try test.session().connect()
        for standby in [StoreNode.Standby.loading, .warm, nil] {
            try RelayNodes.announce(second, standby: standby, connection)
            #expect(try RelayStore.nodes(place).map(\.standby) == [nil, standby])
        }
        await store.close()
        #expect(try RelayStore.nodes(place).map(\.name) == ["second"])
    }

    @Test func `a command that finds the store owned is not listed as standing by`() async throws {
        let place = try TestPlace().place()
        let store = try Self.open(place, Self.claimant("owner"))
        let refusal = #expect(throws: StorageError.self) { try Self.open(place, .forTests()) }
        #expect(refusal?.description.contains("in use by the relay owner") == true)
        #expect(try RelayStore.nodes(place).map(\.name) == ["owner"])
        await store.close()
    }

    @Test func `a silent relay is listed for a while and then forgotten`() async throws {
        let test = try TestPlace()
        let place = try test.place()
        let owner = Self.claimant("owner")
        let store = try Self.open(place, owner)
        let connection = try test.session().connect()
        for (name, seconds) in [("silent", 20), ("gone", 200)] {
            let claimant = Self.claimant(name)
            try RelayNodes.announce(claimant, connection)
            try connection.query(
                """
                UPDATE relayNode SET seen = clock_timestamp() - interval '\(seconds) seconds'
                WHERE name = $1
                """, [name])
        }
        try RelayNodes.announce(owner, connection)
        let nodes = try RelayStore.nodes(place)
        #expect(nodes.map(\.name) == ["owner", "silent"])
        #expect(nodes.map(\.role) == [.owner, .silent])
        #expect(try RelayNodes.count(connection) == 1)
        await store.close()
    }

    /// This happens if the server's clock was set back by an hour.
    @Test func `times written by a clock that was set back since do not last as long`() async throws
    {
        let test = try TestPlace()
        let place = try test.place()
        let owner = Self.claimant("owner")
        let store = try Self.open(place, owner)
        await store.close()
        let connection = try test.session().connect()
        try connection.query(
            """
            UPDATE ownership SET owner = 'belfry gone', name = 'gone', epoch = epoch + 1,
                leaseUntil = clock_timestamp() + interval '1 hour'
            """)
        try RelayNodes.announce(owner, standby: .warm, connection)
        try connection.query("UPDATE relayNode SET seen = seen + interval '1 hour'")
        #expect(try RelayNodes.count(connection) == 0)
        #expect(try RelayStore.nodes(place).map(\.role) == [.owner, .silent])
        let view = try StoreView.look(at: [test.schema], connection)
        #expect(view.relays.map(\.name) == [""])
        // A live owner keeps the store, and the lease of a dead owner ends soon.
        #expect(try Ownership.owner(connection)?.name == "gone")
        #expect(
            try connection.query(
                "SELECT leaseUntil <= clock_timestamp() + interval '5 seconds' FROM ownership")
                == [["t"]])
        #expect(try Ownership.owner(connection)?.name == "gone")
        try RelayNodes.announce(Self.claimant("other"), connection)
        #expect(try RelayNodes.count(connection) == 1)
        #expect(
            try connection.query("SELECT count(*) FROM relayNode WHERE name = 'owner'") == [["0"]])
    }

    @Test func `a deleted lease is created again, and the former owner loses the store`()
        async throws
    {
        let test = try TestPlace()
        let place = try test.place()
        let first = try Self.open(place, Self.claimant("first"))
        let connection = try test.session().connect()
        let before = try #require(try Ownership.owner(connection))
        try connection.query("DELETE FROM ownership")
        let second = try Self.open(place, Self.claimant("second"))
        await first.close()
        let after = try #require(try Ownership.owner(connection))
        #expect(after.name == "second" && after.epoch > before.epoch)
        #expect(await second.close() == nil)
    }

    @Test func `an owner that cannot renew its lease says so until it can`()
        async throws
    {
        let test = try TestPlace()
        let store = try Self.open(try test.place(), Self.claimant("owner"))
        #expect(store.shortage == nil)
        let connection = try test.session().connect()
        try connection.query("SET idle_in_transaction_session_timeout = 0")
        try connection.query("BEGIN")
        try connection.query("SELECT shard FROM ownership FOR UPDATE")
        #expect(await Turns.yield { store.shortage != nil })
        #expect(store.shortage == "the database cannot be reached")
        try connection.query("ROLLBACK")
        #expect(await Turns.yield { store.shortage == nil })
        await store.close()
    }

    /// `VACUUM FULL` holds such a lock, possibly for an hour, on a table that the relay does not
    /// need meanwhile.
    @Test func `a table that another session locks does not block the lease`()
        async throws
    {
        let test = try TestPlace()
        _ = try RelayStore.migrate(try test.place())
        let keeping = try test.session().connect()
        try keeping.query("SET idle_in_transaction_session_timeout = 0")
        try keeping.query("BEGIN")
        try keeping.query("LOCK TABLE auditEntry IN ACCESS EXCLUSIVE MODE")
        let store = try Self.open(try test.place(), Self.claimant("owner"))
        let connection = try test.session().connect()
        let end = try connection.query(
            "SELECT leaseUntil + interval '6 seconds' FROM ownership")[0][0]
        // The server's clock decides; a session that waits here for more than 3 seconds waits for a
        // lock.
        var longest = "f"
        let isRenewed = try await Turns.yield {
            let rows = try connection.query(
                """
                SELECT leaseUntil > $1::timestamptz, (SELECT coalesce(bool_or(
                    clock_timestamp() - query_start > interval '3 seconds'), false)
                    FROM pg_stat_activity
                    WHERE application_name = owner AND wait_event_type = 'Lock')
                FROM ownership
                """, [end])
            if rows[0][1] == "t" { longest = "t" }
            return rows[0][0] == "t"
        }
        #expect(isRenewed && longest == "f")
        try keeping.query("ROLLBACK")
        await store.close()
    }

    /// The size of the store and the list of relays may be late.
    ///
    /// The lease must not be, because it runs out.
    @Test func `a slow server is only asked for the lease`() async throws {
        let test = try TestPlace()
        let place = try test.place()
        _ = try RelayStore.migrate(place)
        let claimant = Self.claimant("owner")
        let looks = Mutex(0)
        let slow = PostgresSession(
            place: place,
            watch: {
                looks.withLock { looks in
                    looks += 1
                    return Duration.seconds(looks)
                }
            }, name: claimant.sessionName)
        let connection = try test.session().connect()
        #expect(try Ownership.claim(claimant, connection) == .owned(epoch: 1))
        let other = try test.session().connect()
        let later = try other.query(
            "SELECT leaseUntil + interval '1500 milliseconds' FROM ownership")[0][0]
        let made = LeaseRenewer(slow, connection, epoch: 1, as: claimant) {}
        let lease = try #require(made)
        let (ending, end) = AsyncStream.makeStream(of: Never.self)
        lease.start { end.finish() }
        // The lease is renewed at once, and then each second.
        let isRenewed = try await Turns.yield {
            try other.query("SELECT leaseUntil > $1::timestamptz FROM ownership", [later])
                == [["t"]]
        }
        #expect(isRenewed && lease.bytes == 0)
        lease.end()
        for await _ in ending {}
    }

    @Test func `the number of listed relays is bounded`() async throws {
        let test = try TestPlace()
        _ = try RelayStore.migrate(try test.place())
        let connection = try test.session().connect()
        for number in 0..<(RelayNodes.limit + 5) {
            try RelayNodes.announce(Self.claimant("relay-\(number)"), connection)
        }
        #expect(try RelayNodes.count(connection) == RelayNodes.limit)
        #expect(try RelayStore.nodes(try test.place()).count == RelayNodes.limit)
    }

    /// A relay that fails soon after each start, and is restarted each time, leaves many such rows.
    @Test func `silent relays displace no live one`() throws {
        let test = try TestPlace()
        _ = try RelayStore.migrate(try test.place())
        let connection = try test.session().connect()
        try connection.query(
            """
            INSERT INTO relayNode (session, name, version, since, seen)
            SELECT 'belfry ' || n, 'failing', '1', clock_timestamp(),
                clock_timestamp() - interval '20 seconds'
            FROM generate_series(1, \(RelayNodes.limit)) AS n
            """)
        try RelayNodes.announce(Self.claimant("there"), connection)
        let nodes = try RelayStore.nodes(try test.place())
        #expect(nodes.map(\.name) == ["there"] && nodes.map(\.role) == [.standingBy])
    }

    @Test func `a relay that could not take the owner's place is refused at once`() async throws {
        let place = try TestPlace().place()
        let key = try #require(SecretKey(text: String(repeating: "ab", count: 32)))
        let other = try #require(SecretKey(text: String(repeating: "cd", count: 32)))
        let store = try Self.open(place, Self.claimant("owner"), key)
        for wrong in [nil, other] {
            let refusal = #expect(throws: StorageError.self) {
                try Self.open(place, Self.claimant("other"), wrong)
            }
            guard case .secrets = refusal else {
                Issue.record("\(String(describing: refusal))")
                continue
            }
        }
        let refusal = #expect(throws: StorageError.self) {
            try Self.open(place, Self.claimant("second"), key)
        }
        guard case .locked = refusal else {
            Issue.record("\(String(describing: refusal))")
            return
        }
        await store.close()
    }

    @Test func `a relay that cannot read the secrets delays no other`() async throws {
        let place = try TestPlace().place()
        let key = try #require(SecretKey(text: String(repeating: "ab", count: 32)))
        let other = try #require(SecretKey(text: String(repeating: "cd", count: 32)))
        await (try Self.open(place, Self.claimant("first"), key)).close()
        let refusal = #expect(throws: StorageError.self) {
            try Self.open(place, Self.claimant("wrong"), other)
        }
        #expect(refusal?.description.contains("cannot be read") == true)
        // This does not wait for the lease of the refused relay.
        await (try Self.open(place, Self.claimant("second"), key)).close()
    }

    // MARK: Settings

    private static let settings = AgreedSettings(
        ["gateway": "here", "retention": "720"], required: ["gateway"])

    @Test func `the owner and a relay that stands by name relays with other settings`() async throws
    {
        let test = try TestPlace()
        let place = try test.place()
        let (first, same) = (
            Self.claimant("first", settings: Self.settings),
            Self.claimant("same", settings: Self.settings)
        )
        let other = Self.claimant(
            "other", settings: AgreedSettings(["gateway": "here", "retention": "24", "new": "1"]))
        let store = try Self.open(place, first)
        let connection = try test.session().connect()
        for claimant in [same, other] { try RelayNodes.announce(claimant, connection) }
        let own = try RelayNodes.disagreements(with: first, connection)
        #expect(own.count == 1)
        #expect(own.first?.contains("retention is 24 there and 720 here") == true, "\(own)")
        let watch = try StoreWatch(place, as: other)
        _ = try await watch.owner()
        #expect(watch.disagreements.count == 2)
        #expect(watch.disagreements.allSatisfy { $0.contains("retention is 720 there") })
        // The owner looks at the listed relays with every fifth renewal.
        let isTold = try await Turns.yield {
            try RelayNodes.announce(other, connection)
            return store.footprint.disagreements == own
        }
        #expect(isTold)
        #expect(
            try RelayStore.nodes(place).map(\.settings)
                == [first, same, other].map { $0.settings.map { AgreedSettings($0.values) } })
        try RelayNodes.leave(other, connection)
        #expect(try RelayNodes.disagreements(with: first, connection) == [])
        await store.close()
    }

    @Test func `a relay that stood by and ends is not listed as silent`() async throws {
        let place = try TestPlace().place()
        let store = try Self.open(place, Self.claimant("first"))
        let watch = try StoreWatch(place, as: Self.claimant("second"))
        // The relay is not listed yet.
        await watch.leave()
        _ = try await watch.owner()
        #expect(try RelayStore.nodes(place).contains { $0.name == "second" })
        await watch.leave()
        #expect(try !RelayStore.nodes(place).contains { $0.name == "second" })
        await store.close()
    }

    @Test func `a relay that would send to another gateway than the owner is refused`() async throws
    {
        let place = try TestPlace().place()
        let store = try Self.open(place, Self.claimant("first", settings: Self.settings))
        let elsewhere = AgreedSettings(["gateway": "there"], required: ["gateway"])
        let hasSaid = try await Turns.yield { try RelayStore.nodes(place).first?.settings != nil }
        #expect(hasSaid)
        let refusal = #expect(throws: StorageError.self) {
            try Self.open(place, Self.claimant("second", settings: elsewhere))
        }
        let said = refusal?.description ?? ""
        #expect(said.contains("first, which owns it"), "\(said)")
        #expect(said.contains("gateway is here there and there here"), "\(said)")
        // The refused relay was never listed as standing by.
        #expect(try RelayStore.nodes(place).map(\.name) == ["first"])
        for claimant in [Self.claimant("old"), Self.claimant("same", settings: Self.settings)] {
            let refusal = #expect(throws: StorageError.self) { try Self.open(place, claimant) }
            guard case .locked = refusal else {
                Issue.record("\(String(describing: refusal))")
                continue
            }
        }
        await store.close()
        await (try Self.open(place, Self.claimant("second", settings: elsewhere))).close()
    }

    /// During a rolling upgrade, an older version does so, which does not know of agreed settings.
    @Test func `a relay that does not publish its settings does not count as different`()
        async throws
    {
        let test = try TestPlace()
        let place = try test.place()
        let old = Self.claimant("old")
        let store = try Self.open(place, old)
        let connection = try test.session().connect()
        try connection.query(
            """
            INSERT INTO relayNode (session, name, version, since, seen, standby)
            VALUES ('belfry older', 'older', '1.0.0', clock_timestamp(), clock_timestamp(), NULL)
            """)
        let new = Self.claimant("new", settings: Self.settings)
        let refusal = #expect(throws: StorageError.self) { try Self.open(place, new) }
        guard case .locked = refusal else {
            Issue.record("\(String(describing: refusal))")
            return
        }
        #expect(try RelayNodes.disagreements(with: new, connection) == [])
        await store.close()
    }

    @Test func `a missing store has no relays`() throws {
        let place = try TestPlace().place()
        #expect(throws: place.missing) { try RelayStore.nodes(place) }
    }
}
