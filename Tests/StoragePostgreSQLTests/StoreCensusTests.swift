import PostgresLink
import RelayTestKit
import Storage
import StorageSQL
import Testing

@testable import StoragePostgreSQL

/// The relays that are seen of several stores in one database.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
struct StoreCensusTests {
    /// Returns two schemas of one database, in ascending order.
    private static func places() throws -> [TestPlace] {
        try [TestPlace(), TestPlace()].sorted { $0.schema < $1.schema }
    }

    private static func claimant(
        _ name: String, on machine: String?, _ stores: [String]
    ) -> StoreClaimant {
        StoreClaimant(
            name: name, identity: (0..<16).map { _ in .random(in: 0...255) }, version: "1.2.3",
            machine: machine, stores: stores)
    }

    private static func open(
        _ place: TestPlace, _ claimant: StoreClaimant, _ census: StoreCensus? = nil
    ) throws -> RelayStore {
        try RelayStore.open(
            try place.place(), as: claimant, settings: .forTests, census: census)
    }

    @Test func `relays of all stores are seen with their machines and their states`()
        async throws
    {
        let places = try Self.places()
        let schemas = places.map(\.schema)
        let connection = try places[0].session().connect()
        // A store that does not exist yet has no relays.
        _ = try RelayStore.migrate(try places[0].place())
        #expect(try StoreView.look(at: schemas, connection).relays == [])
        let census = StoreCensus(of: schemas)
        let owners = [
            Self.claimant("n0", on: "north", schemas), Self.claimant("n1", on: "north", schemas),
        ]
        let stores = [
            try Self.open(places[0], owners[0], census), try Self.open(places[1], owners[1]),
        ]
        let (warm, loading) = (
            Self.claimant("s0", on: "south", schemas), Self.claimant("s1", on: "south", schemas)
        )
        let second = try places[1].session().connect()
        // The owners list themselves with their first beat.
        for place in places {
            try await place.server.wait(
                for: "1",
                of: "SELECT count(*) FROM \(place.schema).relayNode WHERE machine = 'north'")
        }
        try RelayNodes.announce(warm, standby: .warm, connection)
        try RelayNodes.announce(loading, standby: .loading, second)
        let list = schemas.joined(separator: ",")
        let expected = StoreView(
            of: schemas,
            [
                .init(
                    schema: schemas[0], name: "n0", machine: "north", stores: list, isOwner: true),
                .init(
                    schema: schemas[0], name: "s0", machine: "south", stores: list, isWarm: true),
                .init(
                    schema: schemas[1], name: "n1", machine: "north", stores: list, isOwner: true),
                .init(schema: schemas[1], name: "s1", machine: "south", stores: list),
            ])
        let view = try StoreView.look(at: schemas.reversed(), connection)
        #expect(view == expected)
        #expect(view.hindrance == nil)
        #expect(schemas.map { view.machine(for: $0) } == ["south", "north"])
        #expect(schemas.map { view.owner(of: $0) } == ["north", "north"])
        // The beat of a lease looks at the list too.
        let isSeen = try await Turns.yield {
            try RelayNodes.announce(warm, standby: .warm, connection)
            try RelayNodes.announce(loading, standby: .loading, second)
            return census.sight.view == expected && census.sight.looks > 1
        }
        #expect(isSeen)
        #expect(try RelayStore.view(from: try places[1].place())?.schemas == schemas)
        // A silent relay does not count, and a store whose lease was given back has no owner.
        try connection.query(
            "UPDATE relayNode SET seen = clock_timestamp() - interval '4 seconds' WHERE name = 's0'"
        )
        await stores[1].close()
        let later = try StoreView.look(at: schemas, connection)
        #expect(!later.relays.contains { $0.name == "s0" || $0.name == "n1" })
        #expect(later.isOwned(schemas[0]) && !later.isOwned(schemas[1]))
        await stores[0].close()
    }

    @Test func `an older relay and one that takes no part in the spread are named`() throws {
        let places = try Self.places()
        let schemas = places.map(\.schema)
        _ = try RelayStore.migrate(try places[0].place())
        let connection = try places[0].session().connect()
        try RelayNodes.announce(Self.claimant("new", on: "north", schemas), connection)
        #expect(try StoreView.look(at: schemas, connection).hindrance == nil)
        let lazy = Self.claimant("off", on: "north", [])
        try RelayNodes.announce(lazy, connection)
        let off = try StoreView.look(at: schemas, connection)
        #expect(off.hindrance?.hasPrefix("off of schema \(schemas[0]) takes no part") == true)
        #expect(off.machine(for: schemas[0]) == nil)
        try RelayNodes.leave(lazy, connection)
        // An older version writes the row without a machine.
        try connection.query(
            """
            INSERT INTO relayNode (session, name, version, since, seen, standby, settings)
            VALUES ('belfry older', 'old', '1.0.0', clock_timestamp(), clock_timestamp(), 'warm',
                NULL)
            """)
        let older = try StoreView.look(at: schemas, connection)
        #expect(older.hindrance?.hasPrefix("old of schema \(schemas[0]) does not say") == true)
    }

    @Test func `a store that is being moved does not hinder the others`() throws {
        let places = try Self.places()
        for place in places { _ = try RelayStore.migrate(try place.place()) }
        let connection = try places[0].session().connect()
        let move = StoreClaimant(
            name: "north", identity: (0..<16).map { _ in .random(in: 0...255) }, isMove: true)
        #expect(try Ownership.claim(move, connection) == .owned(epoch: 1))
        let view = try StoreView.look(at: places.map(\.schema), connection)
        #expect(view.relays == [] && view.hindrance == nil)
    }

    @Test func `a store that cannot be read gives no view`() throws {
        let places = try Self.places()
        let schemas = places.map(\.schema)
        for place in places { _ = try RelayStore.migrate(try place.place()) }
        let connection = try places[0].session().connect()
        let census = StoreCensus(of: schemas)
        #expect(try census.look(connection) != nil)
        let migrating = try places[1].session().connect()
        try migrating.query("SET idle_in_transaction_session_timeout = 0")
        try migrating.query("BEGIN; LOCK TABLE relayNode IN ACCESS EXCLUSIVE MODE")
        #expect(try census.look(connection) == nil)
        #expect(census.sight.view == nil && census.sight.looks == 2)
        #expect(census.sight.failure?.contains("lock timeout") == true)
        try migrating.query("ROLLBACK; ALTER TABLE relayNode DROP COLUMN machine")
        #expect(try census.look(connection) == nil)
        // The lock timeout on the connection is restored.
        #expect(try connection.query("SELECT current_setting('lock_timeout')") == [["5s"]])
        try migrating.query("ALTER TABLE relayNode ADD COLUMN machine text")
        #expect(try census.look(connection) != nil)
    }
}
