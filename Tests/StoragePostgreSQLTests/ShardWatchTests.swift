import PostgresLink
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import Synchronization
import Testing

@testable import StoragePostgreSQL

/// What relays see of the shards of a service.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
struct ShardWatchTests {
    private final class Order: Sendable {
        private let list = Mutex<[String]>([])
        var names: [String] { list.withLock { $0 } }
        func add(_ name: String) { list.withLock { $0.append(name) } }
    }

    private static func claimant(_ name: String) -> StoreClaimant {
        StoreClaimant(
            name: name, identity: (0..<16).map { _ in .random(in: 0...255) }, version: "1",
            endpoint: StoreEndpoint(address: "127.0.0.1:1", pass: "secret"))
    }

    private static func key(_ name: String) -> ContainerKey {
        ContainerKey(container: Fixtures.identifier(name), environment: .development)
    }

    private static func save(_ name: String, in store: RelayStore) async throws {
        let settings = ContainerSettings(key: key(name), topics: ["x"])
        try await store.save(settings, at: Timestamp(seconds: 1))
    }

    @Test func `owners and containers of shards are seen, and schemas that are no shards`()
        async throws
    {
        let (test, other, foreign) = (try TestPlace(), try TestPlace(), try TestPlace())
        let (here, old) = (try TestPlace(), try TestPlace())
        _ = try test.server.sql(
            "CREATE SCHEMA \(foreign.schema); CREATE TABLE \(foreign.schema).x ()")
        _ = try RelayStore.migrate(try old.place())
        _ = try test.server.sql("ALTER TABLE \(old.schema).ownership DROP COLUMN pass")
        let schemas = [test, other, foreign, here, old].map(\.schema)
        let watch = try ShardWatch(try test.place(), schemas: schemas)
        var seen = try await watch.look()
        #expect(seen.map(\.schema) == schemas)
        #expect(seen.map(\.state) == [.absent, .absent, .foreign, .absent, .otherVersion])
        #expect(seen.map { $0.doubt == nil } == [true, true, true, true, false])
        let store = try RelayStore.open(
            try test.place(), as: Self.claimant("one"), settings: .forTests)
        _ = try RelayStore.migrate(try here.place())
        try await Self.save("first", in: store)
        // A missing schema is looked for once a second.
        while seen[0].state == .absent { seen = try await watch.look() }
        guard case .owned(let owner) = seen[0].state else {
            Issue.record("\(seen[0].state)")
            return
        }
        #expect(owner.name == "one" && owner.epoch == 1 && owner.endpoint?.pass == "secret")
        #expect(seen[0].containers == [Self.key("first")])
        while seen[3].state == .absent { seen = try await watch.look() }
        #expect(seen[3].state == .unowned && seen[3].doubt == nil)
        let revision = seen[0].revision
        #expect(try await watch.look()[0].revision == revision)
        try await Self.save("second", in: store)
        seen = try await watch.look()
        #expect(Set(seen[0].containers) == [Self.key("first"), Self.key("second")])
        #expect(seen[0].revision != revision)
        // Each container is seen once, also when the numbers get another digit.
        for number in 3...12 {
            try await Self.save("c\(number)", in: store)
            seen = try await watch.look()
            #expect(seen[0].containers.count == number)
            #expect(Set(seen[0].containers).count == number)
        }
        await store.close()
        #expect(try await watch.look()[0].state == .unowned)
    }

    @Test func `a shard whose name is an SQL keyword is seen like others`() async throws {
        let test = try TestPlace()
        let schemas = ["null", "default", test.schema]
        for schema in schemas {
            _ = try RelayStore.migrate(try PostgresPlace(url: test.server.url(), schema: schema))
        }
        let watch = try ShardWatch(try test.place(), schemas: schemas)
        #expect(try await watch.look().map(\.state) == [.unowned, .unowned, .unowned])
    }

    @Test func `many containers are seen at once, and a locked shard hides no other`()
        async throws
    {
        let (test, other) = (try TestPlace(), try TestPlace())
        for place in [test, other] {
            _ = try RelayStore.migrate(try place.place())
            _ = try place.server.sql(
                """
                INSERT INTO \(place.schema).container
                    (name, environment, topics, expirationSeconds, savedAt)
                SELECT 'c' || number, 'production', '[]', 0, 0 FROM generate_series(1, 2500) number
                """)
        }
        let watch = try ShardWatch(try test.place(), schemas: [test.schema, other.schema])
        let all = try await watch.look()
        #expect(all.map(\.containers.count) == [2500, 2500] && all.map(\.isRead) == [true, true])
        let connection = try other.session().connect()
        try connection.query("SET idle_in_transaction_session_timeout = 0")
        try connection.query("BEGIN")
        try connection.query("LOCK TABLE \(other.schema).ownership IN ACCESS EXCLUSIVE MODE")
        #expect(try await watch.look().map(\.schema) == [test.schema])
        try connection.query("ROLLBACK")
        #expect(try await watch.look().count == 2)
        // A dropped shard is absent, and one that is created again is empty.
        _ = try test.server.sql("DROP SCHEMA \(other.schema) CASCADE")
        _ = try await watch.look()
        var seen = try await watch.look()
        #expect(seen[1].state == .absent && seen[1].containers == [])
        _ = try RelayStore.migrate(try other.place())
        while seen[1].state == .absent { seen = try await watch.look() }
        #expect(seen[1].state == .unowned && seen[1].containers == [])
        #expect(seen[0].containers.count == 2500)
    }

    @Test func `containers are created one at a time, and only where they do not exist`()
        async throws
    {
        let (test, other) = (try TestPlace(), try TestPlace())
        let schemas = [test.schema, other.schema, "none"]
        let store = try RelayStore.open(
            try test.place(), as: Self.claimant("one"), settings: .forTests)
        _ = try RelayStore.migrate(try other.place())
        let (first, second) = (
            ContainerClaim(try test.place(), as: Self.claimant("one"), schemas: schemas),
            ContainerClaim(try other.place(), as: Self.claimant("two"), schemas: schemas)
        )
        let order = Order()
        let waiting = try await first.claiming(Self.key("a")) { _ in
            let waiting = Task {
                try await second.claiming(Self.key("b")) { _ in order.add("second") }
            }
            try await test.server.wait(
                for: "t",
                of: """
                    SELECT EXISTS (
                        SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)
                    """)
            order.add("first")
            try await Self.save("a", in: store)
            return waiting
        }
        try await waiting.value
        #expect(order.names == ["first", "second"])
        await #expect(throws: ContainerClaim.Taken.self) {
            try await second.claiming(Self.key("a")) { _ in
                Issue.record("it is there")
            }
        }
        await store.close()
    }

    @Test func `a store that was moved away is recognised`() async throws {
        let (test, other) = (try TestPlace(), try TestPlace())
        for place in [test, other] { _ = try RelayStore.migrate(try place.place()) }
        _ = try test.server.sql(
            """
            INSERT INTO \(other.schema).storeMove
                (id, direction, identity, place, tableName, lastKey, rowCount)
            VALUES (1, 'away', decode(repeat('00', 16), 'hex'), 'elsewhere', '', NULL, 0)
            """)
        let schemas = [test.schema, other.schema]
        let watch = try ShardWatch(try test.place(), schemas: schemas)
        #expect(try await watch.look().map(\.isMovedAway) == [false, true])
        // A running watch asks only after some seconds whether the move was cancelled, so this uses
        // a new one.
        _ = try test.server.sql("DELETE FROM \(other.schema).storeMove")
        let later = try ShardWatch(try test.place(), schemas: schemas)
        #expect(try await later.look().map(\.isMovedAway) == [false, false])
    }

    @Test func `creating a container fails as unavailable while the database is away`() async throws
    {
        let place = try PostgresPlace(url: "postgresql://postgres@127.0.0.1:1/none")
        let claim = ContainerClaim(place, as: Self.claimant("one"), schemas: ["a", "b"])
        do {
            try await claim.claiming(Self.key("a")) { _ in }
            Issue.record("it is away")
        } catch StorageError.unavailable {
            // The client gets 503, and not 500.
        }
    }

    @Test func `simultaneous creations of containers use few connections`() async throws {
        let test = try TestPlace()
        // The lock is one for each database, and no other test uses this database.
        let name = try test.server.database()
        let place = try test.place(database: name)
        _ = try RelayStore.migrate(place)
        let claimant = Self.claimant("one")
        let claim = ContainerClaim(place, as: claimant, schemas: [test.schema])
        let holder = try test.session(database: name).connect()
        try holder.query("SELECT pg_advisory_lock(hashtextextended('belfry containers', 0))")
        let claims = (0..<8).map { number in
            Task { try? await claim.claiming(Self.key("c\(number)")) { _ in } }
        }
        let sessions = """
            FROM pg_stat_activity WHERE application_name = '\(claimant.sessionName)'
            """
        try await test.server.wait(for: "t", of: "SELECT count(*) >= 2 \(sessions)")
        let stays = await Turns.keeps {
            let rows = try? holder.query("SELECT count(*) \(sessions)")
            // Two wait for the lock; two more may be about to close.
            return rows?.first?[0].flatMap { Int($0) } ?? .max <= 4
        }
        #expect(stays)
        try holder.query("SELECT pg_advisory_unlock_all()")
        for one in claims { _ = await one.value }
    }

    /// A suspended process may wake up when another one has created the container.
    @Test func `a process that hangs while it creates a container loses its turn`() async throws {
        let (test, other) = (try TestPlace(), try TestPlace())
        let schemas = [test.schema, other.schema]
        let store = try RelayStore.open(
            try test.place(), as: Self.claimant("one"), settings: .forTests)
        _ = try RelayStore.migrate(try other.place())
        let hanging = ContainerClaim.Patience(beat: .seconds(60), silence: .seconds(1))
        let first = ContainerClaim(
            try test.place(), as: Self.claimant("one"), schemas: schemas, hanging)
        let second = ContainerClaim(
            try other.place(), as: Self.claimant("two"), schemas: schemas)
        let order = Order()
        let settings = ContainerSettings(key: Self.key("a"), topics: ["x"])
        await #expect(throws: StorageError.self) {
            try await first.claiming(settings.key) { check in
                try await second.claiming(settings.key) { _ in order.add("second") }
                try await store.save(settings, at: Timestamp(seconds: 1), checking: check)
            }
        }
        #expect(order.names == ["second"])
        #expect(try await store.containers().isEmpty)
        await store.close()
    }
}
