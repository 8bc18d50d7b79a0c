import Migrations
import PostgresLink
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import Testing

@testable import StoragePostgreSQL

/// Servers that take another server's place, and owners that a server no longer knows.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
struct FailoverTests {
    @Test func `a former primary that is back is abandoned for the promoted server`()
        async throws
    {
        let former = try PostgresServer(["fsync=on"])
        let promoted = try PostgresServer(["fsync=on"], copyOf: former)
        let hosts = "\(former.folder),\(promoted.folder)"
        func session() throws -> PostgresSession {
            let place = try PostgresPlace(url: "host=\(hosts) user=postgres dbname=postgres")
            return PostgresSession(place: place, watch: { .zero }, name: "belfry test")
        }
        let before = try session().connect()
        #expect(try session().isCurrent(before))
        try promoted.sql("SELECT pg_promote()")
        // The former primary still runs and is named first. A relay that is connected to it must
        // notice.
        try session().lookAtHosts()
        #expect(try !session().isCurrent(before))
        let after = try session().connect()
        let (old, new) = (try #require(before.timeline), try #require(after.timeline))
        #expect(old.cluster == new.cluster && old.number < new.number)
        #expect(try session().isCurrent(after))
        promoted.end()
        #expect(
            try await Turns.yield {
                do {
                    _ = try session().connect()
                    return false
                } catch let StorageError.inaccessible(_, reason) {
                    return reason == PostgresSession.formerPrimary
                }
            })
        former.end()
    }

    @Test func `a standby is refused as such whatever the URL asks for`() throws {
        let primary = try PostgresServer(["fsync=on"])
        let standby = try PostgresServer(["fsync=on"], copyOf: primary)
        defer {
            standby.end()
            primary.end()
        }
        for wanted in ["read-write", "primary", "any"] {
            let place = try PostgresPlace(
                url: "host=\(standby.folder) user=postgres dbname=postgres "
                    + "target_session_attrs=\(wanted)")
            let session = PostgresSession(place: place, watch: { .zero }, name: "belfry test")
            let refusal = #expect(throws: StorageError.self) { _ = try session.connect() }
            #expect(refusal?.description.contains("name the primary") == true, "\(wanted)")
        }
    }

    @Test func `if two servers were promoted from one, neither is used`() async throws {
        let former = try PostgresServer(["fsync=on"])
        let copies = try (0..<2).map { _ in
            try PostgresServer(["fsync=on"], copyOf: former)
        }
        let hosts = ([former] + copies).map(\.folder).joined(separator: ",")
        func session() throws -> PostgresSession {
            let place = try PostgresPlace(url: "host=\(hosts) user=postgres dbname=postgres")
            return PostgresSession(place: place, watch: { .zero }, name: "belfry test")
        }
        #expect(try session().connect().timeline != nil)
        for copy in copies { try copy.sql("SELECT pg_promote()") }
        func reason() throws -> String? {
            do {
                _ = try session().connect()
                return nil
            } catch let StorageError.inaccessible(_, reason) {
                return reason
            }
        }
        #expect(try reason() == PostgresSession.forked)
        // A session that is already connected learns it too, and so does one that only asks later.
        try session().lookAtHosts()
        #expect(try reason() == PostgresSession.forked)
        copies[1].end()
        #expect(try await Turns.yield { try reason() == nil })
        for server in [copies[0], former] { server.end() }
    }

    @Test func `histories are distinguished by cluster, timeline and its beginning`() {
        let one = ServerTimeline(cluster: "a", number: 2, begun: "1")
        #expect(!one.isForked(from: one))
        #expect(one.isForked(from: ServerTimeline(cluster: "a", number: 2, begun: "2")))
        #expect(!one.isForked(from: ServerTimeline(cluster: "a", number: 3, begun: "2")))
        #expect(!one.isForked(from: ServerTimeline(cluster: "b", number: 2, begun: "2")))
    }

    @Test func `another cluster at the same address starts a new history`() throws {
        let place = try PostgresPlace(url: "host=/nowhere-\(UInt64.random(in: 0...UInt64.max))")
        let seen = SeenTimeline.of(place.target)
        let second = ServerTimeline(cluster: "a", number: 2)
        #expect(seen.goOn(with: second) && seen === SeenTimeline.of(place.target))
        let first = ServerTimeline(cluster: "a", number: 1)
        #expect(seen.isPast(first) && !seen.goOn(with: first))
        let tenth = ServerTimeline(cluster: "a", number: 10)
        #expect(seen.isNews(tenth) && !seen.isPast(tenth))
        let upgraded = ServerTimeline(cluster: "b", number: 1)
        #expect(!seen.isPast(upgraded) && !seen.isNews(upgraded) && seen.goOn(with: upgraded))
    }

    /// A server that lacks the end of the log may not know of a takeover.
    ///
    /// It then gives the next owner an epoch that was used before.
    @Test func `an owner with the same epoch is distinguished from another`() async throws {
        let test = try TestPlace()
        let store = try await Self.open(test)
        try test.server.sql("UPDATE \(test.schema).ownership SET owner = 'belfry other'")
        await #expect(throws: StorageError.closed("another relay owns the store now")) {
            _ = try await Self.append("second", to: store)
        }
        await store.close()
        // The lease now belongs to the other owner, so the store must not give it back.
        let owner = try test.server.sql("SELECT owner FROM \(test.schema).ownership")
        #expect(owner == "belfry other")
    }

    @Test func `a commit that is lost with a server is noticed`() async throws {
        let test = try TestPlace()
        let store = try await Self.open(test)
        _ = try await Self.append("first", to: store)
        // A standby may lack the commit although no entry of the log is missing.
        try test.server.sql("DELETE FROM \(test.schema).commitMark")
        try test.server.sql(
            """
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()
                AND application_name = (SELECT owner FROM \(test.schema).ownership)
            """)
        await #expect {
            _ = try await Self.append("second", to: store)
        } throws: { error in
            guard case StorageError.closed(let reason) = error else { return false }
            return reason.contains("lacks the last commit")
        }
        await store.close()
    }

    /// Somebody may empty the server's setting while the standby is away.
    @Test func `a server without the required standby is refused, even while it is in use`()
        async throws
    {
        let server = try PostgresServer(["fsync=on", "max_connections=40"])
        let standby = try PostgresServer(["fsync=on", "max_connections=40"], copyOf: server)
        defer {
            standby.end()
            server.end()
        }
        let place = try PostgresPlace(url: server.url(), schema: "relay", requiresStandby: true)
        func require(_ standbys: String) async throws {
            try server.sql("ALTER SYSTEM SET synchronous_standby_names = '\(standbys)'")
            try server.sql("SELECT pg_reload_conf()")
            try await server.wait(for: standbys, of: "SHOW synchronous_standby_names")
        }
        let refusal = #expect(throws: StorageError.self) {
            _ = try RelayStore.open(place, as: .forTests(), settings: .forTests)
        }
        let told = refusal?.description ?? ""
        #expect(told.contains("synchronous_standby_names is empty"), "\(told)")
        try await require("*")
        let store = try RelayStore.open(place, as: .forTests(), settings: .forTests)
        try await store.save(
            ContainerSettings(key: Sample.container, topics: []), at: Sample.moment(0))
        #expect(try await Self.append("first", to: store) == .appended(LogPosition(1)))
        try await require("")
        let isTold = await Turns.yield {
            store.shortage?.contains("storage.requireStandby") == true
        }
        #expect(isTold, "\(String(describing: store.shortage))")
        let unacknowledged = await #expect(throws: StorageError.self) {
            _ = try await Self.append("second", to: store)
        }
        #expect(unacknowledged?.passes == true)
        try await require("*")
        #expect(await Turns.yield { store.shortage == nil })
        #expect(try await Self.append("second", to: store) == .appended(LogPosition(2)))
        // A commit that waits for an absent standby returns when the setting is emptied. It is not
        // acknowledged before a standby has it.
        try await require("absent")
        let waiting = Task { try await Self.append("third", to: store) }
        try await server.wait(
            for: "1", of: "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
        try await require("")
        let isToldAgain = await Turns.yield {
            store.shortage?.contains("storage.requireStandby") == true
        }
        #expect(isToldAgain, "\(String(describing: store.shortage))")
        #expect(try await store.head() == LogPosition(2))
        try await require("*")
        #expect(try await waiting.value == .appended(LogPosition(3)))
        await store.close()
    }

    /// A newer version may add a column at its start, while this version owns the store and
    /// continues.
    @Test func `the owner continues when its tables get a column`() async throws {
        let test = try TestPlace()
        let store = try await Self.open(test)
        #expect(try await Self.append("first", to: store) == .appended(LogPosition(1)))
        #expect(try await store.containers().count == 1)
        let tables = try test.server.sql(
            """
            SELECT relname FROM pg_class
            WHERE relnamespace = '\(test.schema)'::regnamespace AND relkind = 'r'
            """)
        for table in tables.split(whereSeparator: \.isNewline) {
            try test.server.sql(
                "ALTER TABLE \(test.schema).\(String(table).quotedName) ADD COLUMN newer bigint")
        }
        #expect(try await store.containers().count == 1)
        #expect(try await Self.append("second", to: store) == .appended(LogPosition(2)))
        #expect(store.shortage == nil)
        await store.close()
    }

    @Test func `a reader of some seconds does not block a migration`()
        throws
    {
        let test = try TestPlace()
        let (connection, reading) = (try test.session().connect(), try test.session().connect())
        _ = try PostgresSchema(
            place: try test.place(), migrations: Migration.releasedOnPostgreSQL
        ).apply(connection, makesSchema: true)
        // Longer than a migration waits for a lock at a time; then the server ends the reader.
        try reading.query("SET idle_in_transaction_session_timeout = '4s'")
        try reading.query("BEGIN")
        try reading.query("LOCK TABLE auditEntry IN ACCESS SHARE MODE")
        let step = Migration(
            name: "widens", sql: "ALTER TABLE auditEntry ADD COLUMN newer bigint;", checksum: "0")
        let applied = try PostgresSchema(
            place: try test.place(), migrations: Migration.releasedOnPostgreSQL + [step]
        ).apply(connection, makesSchema: false)
        #expect(applied == ["widens"])
    }

    /// A process that is suspended during a migration blocks the others for a few seconds only.
    @Test func `a process that hangs during a migration is terminated`() throws {
        let test = try TestPlace()
        let connection = try test.session().connect()
        let question = "SELECT current_setting('idle_session_timeout') AS patience"
        let asking = Migration(
            name: "asks", sql: "CREATE TABLE told AS \(question);", checksum: "0")
        let schema = PostgresSchema(
            place: try test.place(), migrations: Migration.releasedOnPostgreSQL + [asking])
        _ = try schema.apply(connection, makesSchema: true)
        #expect(try connection.query("SELECT patience FROM told") == [["10s"]])
        #expect(try connection.query(question) == [["0"]])
    }

    private static func open(_ test: TestPlace) async throws -> RelayStore {
        let store = try await test.storeWithContainer()
        return store
    }

    private static func append(_ name: String, to store: RelayStore) async throws -> AppendOutcome?
    {
        try await store.append(
            [Sample.unkeyed(name)], container: Sample.container, source: Sample.source,
            at: Sample.moment(0)
        ).first
    }
}
