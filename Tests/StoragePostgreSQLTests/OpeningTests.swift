import Foundation
import Migrations
import PostgresLink
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import Synchronization
import Testing

@testable import StoragePostgreSQL

/// Reasons to refuse a store on a server, each provoked on a real server.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
struct OpeningTests {
    private static func reason(_ session: PostgresSession) -> String? {
        do {
            _ = try session.connect()
            return nil
        } catch {
            return error.description
        }
    }

    @Test func `a reader may take a minute, and a writer three seconds`()
        async throws
    {
        let session = try TestPlace().session()
        let question = "SHOW idle_in_transaction_session_timeout"
        let readers = try ServerReaders(session, count: 1)
        defer { readers.end() }
        #expect(try await readers.read { try String.fetchOne($0, sql: question) } == "1min")
        let writer = Database(try session.connectAgain())
        #expect(try String.fetchOne(writer, sql: question) == "3s")
    }

    /// These settings are meant for people who work with the database, and would end connections
    /// that wait.
    @Test func `a database's own session settings do not apply to the store`() throws {
        let place = try TestPlace()
        let name = try place.server.database()
        try place.server.sql("ALTER DATABASE \(name) SET idle_session_timeout = '1s'")
        let database = Database(try place.session(database: name).connectAgain())
        #expect(try String.fetchOne(database, sql: "SHOW idle_session_timeout") == "0")
    }

    @Test func `a missing role is reported`() throws {
        let reason = try #require(Self.reason(try TestPlace().session(role: "nobody_here")))
        #expect(reason.contains("does not let the role log in"))
        #expect(reason.contains("PGPASSFILE"))
    }

    @Test func `a missing database is reported`() throws {
        let reason = try #require(Self.reason(try TestPlace().session(database: "nowhere")))
        #expect(reason.contains("there is no such database"))
        // A command calls the place of the database "the URL", and not by a configuration key.
        #expect(reason.contains("in the URL") && !reason.contains("storage.url"))
    }

    /// Some set it while they copy or upgrade the database.
    @Test func `a database that takes no connections is reported`() throws {
        let place = try TestPlace()
        let name = try place.server.database()
        try place.server.sql("ALTER DATABASE \(name) WITH ALLOW_CONNECTIONS false")
        let reason = try #require(Self.reason(try place.session(database: name)))
        #expect(reason.contains("the database takes no connections"), "\(reason)")
        #expect(reason.contains("ALLOW_CONNECTIONS true") && !reason.contains("network"))
        try place.server.sql("ALTER DATABASE \(name) WITH ALLOW_CONNECTIONS true")
        #expect(Self.reason(try place.session(database: name)) == nil)
    }

    @Test func `a missing service is reported`() throws {
        let place = try PostgresPlace(url: "service=nowhere_at_all")
        let session = PostgresSession(place: place, watch: { .zero }, name: "belfry test")
        #expect(try #require(Self.reason(session)).contains("PGSERVICEFILE"))
        let missing = PostgresError(state: "", message: "service file \"/nowhere\" not found")
        #expect(missing.opening(place).description.contains("PGSERVICEFILE"))
    }

    @Test func `a server that is too old is reported with the oldest supported version`() throws {
        let old = try OldServer()
        let place = try PostgresPlace(url: "postgresql://belfry@127.0.0.1:\(old.port)/relay")
        let session = PostgresSession(place: place, watch: { .zero }, name: "belfry test")
        let reason = try #require(Self.reason(session))
        #expect(
            reason.contains("PostgreSQL 13, but 14 is the oldest supported version: upgrade it"),
            "\(reason)")
        #expect(throws: StorageError.self) { try RelayStore.migrate(place) }
        #expect(throws: StorageError.self) { try RelayStore.check(place) }
    }

    @Test func `a server that is away is reported as unreachable`() throws {
        let place = try PostgresPlace(url: "host=/nonexistent user=postgres dbname=postgres")
        let session = PostgresSession(place: place, watch: { .zero }, name: "belfry test")
        let reason = try #require(Self.reason(session))
        #expect(reason.contains("cannot be reached") && !reason.contains("hangs"))
        // One that takes the connection and says nothing looks like a network that does.
        let silent = PostgresError(state: "", message: "connection … failed: timeout expired")
        #expect(silent.opening(place).description.contains("whether the server hangs"))
    }

    /// Each attempt would take seconds for each host, and an end has a few of them.
    @Test func `an ending relay stops connecting in a network that drops everything`() throws {
        let place = try PostgresPlace(url: "host=/nonexistent user=postgres dbname=postgres")
        func session(_ step: Duration) -> PostgresSession {
            let looks = Mutex(0)
            return PostgresSession(
                place: place,
                watch: {
                    looks.withLock { looks in
                        looks += 1
                        return step * looks
                    }
                }, name: "belfry test")
        }
        let slow = session(.seconds(3))
        #expect(try #require(Self.reason(slow)).contains("No such file"))
        #expect(try #require(Self.reason(slow)).contains("No such file"))
        slow.expectEnd()
        #expect(try #require(Self.reason(slow)).contains("the relay is shutting down"))
        // A server that restarts refuses at once.
        let quick = session(.milliseconds(1))
        quick.expectEnd()
        for _ in 0..<2 { #expect(try #require(Self.reason(quick)).contains("No such file")) }
    }

    /// In a network that swallows everything each attempt takes seconds, and many may wait.
    @Test func `waiting readers fail together with the first failed connection`() async throws {
        let readings = 20
        let all = try #require(PostgresWake())
        let counts = Mutex((asked: 0, looks: 0))
        let session = PostgresSession(
            place: try PostgresPlace(url: "host=/nonexistent user=postgres dbname=postgres"),
            watch: {
                guard Thread.current.name == "belfry.postgres" else {
                    let asked = counts.withLock { counts in
                        counts.asked += 1
                        return counts.asked
                    }
                    if asked == readings { all.signal() }
                    return .zero
                }
                let looks = counts.withLock { counts in
                    counts.looks += 1
                    return counts.looks
                }
                // The first attempt lasts until all readers have asked.
                while looks == 1, counts.withLock({ $0.asked }) < readings {
                    all.wait(for: .seconds(1))
                }
                return .seconds(3 * looks)
            }, name: "belfry test")
        let readers = try ServerReaders(session, count: 1)
        defer { readers.end() }
        let refused = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<readings {
                group.addTask {
                    do {
                        return try await readers.read { _ in false }
                    } catch {
                        return (error as? PostgresError)?.verdict == .lost
                    }
                }
            }
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(refused == readings)
        // All looks at the clock belong to one attempt.
        #expect(counts.withLock { $0.looks } < 10)
    }

    /// A takeover's commit gets no answer, for example, if the synchronous standby is away.
    @Test func `a server without an answer is not reported as unreachable`() throws {
        let connection = try TestPlace().session().connect()
        let unanswered = #expect(throws: PostgresError.self) {
            try connection.query("SELECT pg_sleep(60)", within: .milliseconds(10))
        }
        let place = try TestPlace().place()
        let reason = try #require(unanswered).opening(place).description
        #expect(reason.contains("does not answer") && reason.contains("synchronous standby"))
        #expect(!reason.contains("cannot be reached"))
    }

    @Test func `a server that may lose acknowledged commits is refused`() throws {
        let server = try PostgresServer.shared()
        let place = try PostgresPlace(url: server.url())
        let session = PostgresSession(place: place, watch: { .zero }, name: "belfry test")
        #expect(try #require(Self.reason(session)).contains("fsync is off"))
    }

    @Test func `a read-only server is refused`() throws {
        let place = try TestPlace()
        let name = "d\(place.schema)"
        try place.server.sql("CREATE DATABASE \(name)")
        try place.server.sql("ALTER DATABASE \(name) SET default_transaction_read_only = on")
        let reason = try #require(Self.reason(try place.session(database: name)))
        #expect(reason.contains("the server is read-only"))
    }

    @Test func `a database with another encoding is refused`() throws {
        let place = try TestPlace()
        let name = "d\(place.schema)"
        try place.server.sql(
            "CREATE DATABASE \(name) ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' "
                + "TEMPLATE template0")
        let reason = try #require(Self.reason(try place.session(database: name)))
        #expect(reason.contains("UTF8 is needed"))
    }

    @Test func `a role without rights learns which one it lacks`() throws {
        let place = try TestPlace()
        let role = "r\(place.schema)"
        try place.server.sql("CREATE ROLE \(role) LOGIN")
        let connection = try place.session(role: role).connect()
        let schema = PostgresSchema(
            place: try place.place(role: role), migrations: [])
        let refusal = #expect(throws: PostgresError.self) {
            try schema.apply(connection, makesSchema: true)
        }
        let told = refusal?.opening(try place.place(role: role)).description ?? ""
        #expect(told.contains("the role lacks a privilege"))
    }

    @Test func `a role that may not use the schema is told so`() throws {
        let place = try TestPlace()
        _ = try RelayStore.migrate(try place.place())
        let role = "r\(place.schema)"
        try place.server.sql("CREATE ROLE \(role) LOGIN")
        let other = try place.place(role: role)
        let refusal = #expect(throws: StorageError.self) { try RelayStore.migrate(other) }
        let told = refusal?.description ?? ""
        #expect(told.contains("the role lacks a privilege"), "\(told)")
    }

    @Test func `a server without a free connection says so`() throws {
        let place = try TestPlace()
        let role = "r\(place.schema)"
        try place.server.sql("CREATE ROLE \(role) LOGIN CONNECTION LIMIT 1")
        let first = try place.session(role: role).connect()
        let reason = try #require(Self.reason(try place.session(role: role)))
        #expect(reason.contains("no connection left"))
        #expect(first.serverProcess != 0)
    }

    /// Creates a role that owns the schema of `place` and may open `limit` connections.
    private static func role(of place: TestPlace, limit: Int) throws -> String {
        let role = "r\(place.schema)"
        try place.server.sql("CREATE ROLE \(role) LOGIN CONNECTION LIMIT \(limit)")
        try place.server.sql("CREATE SCHEMA \(place.schema) AUTHORIZATION \(role)")
        return role
    }

    @Test func `a server with too few connections says how many are needed`() async throws {
        let test = try TestPlace()
        let role = try Self.role(of: test, limit: 3)
        let place = try test.place(role: role)
        let refusal = #expect(throws: StorageError.self) { try place.checkConnections() }
        let told = refusal?.description ?? ""
        #expect(told.contains("has 3 of the 7 connections left"), "\(told)")
        #expect(told.contains("raise max_connections"), "\(told)")
        let count = "SELECT count(*) FROM pg_stat_activity WHERE usename = '\(role)'"
        try await test.server.wait(for: "0", of: count)
        // Scans use connections of their own.
        var settings = StoreSettings.forTests
        settings.scanningReaders = 8
        let more = #expect(throws: StorageError.self) {
            try place.checkConnections(for: settings)
        }
        let toldOfMore = more?.description ?? ""
        #expect(toldOfMore.contains("has 3 of the 14 connections left"), "\(toldOfMore)")
        try await test.server.wait(for: "0", of: count)
        try test.server.sql("ALTER ROLE \(role) CONNECTION LIMIT 7")
        // A check closes its connections, so it can be repeated.
        for _ in 0..<3 {
            try place.checkConnections()
            try await test.server.wait(for: "0", of: count)
        }
    }

    @Test func `a store without a connection is not ready until it gets one`() async throws {
        let test = try TestPlace()
        let role = try Self.role(of: test, limit: 20)
        let store = try RelayStore.open(
            try test.place(role: role), as: .forTests(), settings: .forTests)
        #expect(store.shortage == nil)
        try test.server.sql("ALTER ROLE \(role) CONNECTION LIMIT 1")
        // The first connection to come back takes the only one that is left.
        try test.server.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '\(role)'")
        let isTold = await Turns.yield {
            _ = try? await store.backlog()
            return store.shortage == ConnectionShortage.sentence
        }
        #expect(isTold, "\(String(describing: store.shortage))")
        try test.server.sql("ALTER ROLE \(role) CONNECTION LIMIT 20")
        let isOver = await Turns.yield {
            _ = try? await store.backlog()
            return store.shortage == nil
        }
        #expect(isOver)
        await store.close()
    }

    /// Newer servers keep checksums unless they are told otherwise.
    @Test func `a server without checksums of its pages is reported as such`() async throws {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        let hasNone = try test.server.sql("SHOW data_checksums") == "off"
        #expect(store.advice?.contains("pg_checksums --enable") ?? false == hasNone)
        await store.close()
    }

    /// The right that the role loses, and the words that then say so.
    @Test(arguments: [
        ("ALL TABLES IN SCHEMA", "lacks a privilege"), ("SCHEMA", "cannot be found"),
    ])
    func `a revoked right is reported, and the store continues when it is granted again`(
        what: String, told: String
    ) async throws {
        let test = try TestPlace()
        let role = try Self.role(of: test, limit: 20)
        let store = try RelayStore.open(
            try test.place(role: role), as: .forTests(), settings: .forTests)
        let settings = ContainerSettings(key: Sample.container, topics: [])
        try await store.save(settings, at: Sample.moment(0))
        try test.server.sql("REVOKE ALL ON \(what) \(test.schema) FROM \(role)")
        let isTold = await Turns.yield { store.shortage?.contains(told) == true }
        #expect(isTold, "\(String(describing: store.shortage))")
        // A client that sends changes is asked to retry, and gets no internal error.
        let refusal = await #expect(throws: StorageError.self) {
            try await store.save(settings, at: Sample.moment(1))
        }
        guard case .unavailable(let reason)? = refusal else {
            Issue.record("\(String(describing: refusal))")
            return
        }
        #expect(reason.contains(told))
        let unread = await #expect(throws: StorageError.self) {
            _ = try await store.backlog()
        }
        #expect(unread?.passes == true)
        try test.server.sql("GRANT ALL ON \(what) \(test.schema) TO \(role)")
        #expect(await Turns.yield { store.shortage == nil })
        try await store.save(settings, at: Sample.moment(2))
        await store.close()
    }

    /// The lease does not need the table, but acknowledging a change does.
    @Test func `a revoked right to another table than the lease's is reported`() async throws {
        let test = try TestPlace()
        let role = try Self.role(of: test, limit: 20)
        let store = try RelayStore.open(
            try test.place(role: role), as: .forTests(), settings: .forTests)
        try test.server.sql("REVOKE INSERT ON \(test.schema).commitMark FROM \(role)")
        let told = "lacks a privilege: make it the owner of the schema, or grant it"
        let isTold = await Turns.yield { store.shortage?.contains(told) == true }
        #expect(isTold, "\(String(describing: store.shortage))")
        // Readiness is public.
        #expect(store.shortage?.contains("commitmark") == false)
        try test.server.sql("GRANT INSERT ON \(test.schema).commitMark TO \(role)")
        #expect(await Turns.yield { store.shortage == nil })
        await store.close()
    }

    /// A changed password has the same effect.
    @Test func `a role that is locked out is reported until it is let in`() async throws {
        let test = try TestPlace()
        let role = try Self.role(of: test, limit: 20)
        let store = try RelayStore.open(
            try test.place(role: role), as: .forTests(), settings: .forTests)
        try test.server.sql("ALTER ROLE \(role) NOLOGIN")
        try test.server.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '\(role)'")
        let isTold = await Turns.yield {
            store.shortage?.contains("does not let the role log in") == true
        }
        #expect(isTold, "\(String(describing: store.shortage))")
        // Readiness is public, so it must not repeat the server's words, which name the role.
        #expect(store.shortage?.contains(role) == false)
        try test.server.sql("ALTER ROLE \(role) LOGIN")
        #expect(await Turns.yield { store.shortage == nil })
        await store.close()
    }

    @Test(arguments: [
        ("postgresql://u:geheim@h/d", "belfry"), ("postgresql://h/d?options=-c", "belfry"),
        ("postgresql://h/d", "Belfry"), ("postgresql://h/d", "pg_x"), ("postgresql://h/d", "a b"),
        ("postgresql://h/d", ""), ("postgresql://h/d", String(repeating: "x", count: 64)),
    ])
    func `an unusable URL is refused without being repeated`(url: String, schema: String) {
        let refusal = #expect(throws: StorageError.self) {
            try PostgresPlace(url: url, schema: schema)
        }
        #expect(refusal?.description.contains("geheim") == false)
    }

    @Test(arguments: [
        "mysql://geheim@h/d", "mysql://geheim@h/d?sslmode=disable", "/var/lib/geheim.sqlite",
        "POSTGRESQL://geheim@h/d", "geheim", "",
    ])
    func `a text that is no URL of PostgreSQL is told how one begins`(text: String) {
        let refusal = #expect(throws: StorageError.self) { try PostgresPlace(url: text) }
        let sentence = refusal?.description ?? ""
        #expect(sentence.contains("begins with postgresql://"), "\(sentence)")
        #expect(!sentence.contains("geheim"))
    }

    @Test func `a database's address is distinguished from a file`() {
        for text in [
            "postgresql://h/d", "postgres://h/d", "mysql://h/d", "service=house",
            "host=/run dbname=relay", " user = belfry dbname=d", "password=geheim host=h",
            "postgresql:///?service=house",
        ] { #expect(PostgresPlace.isMeant(by: text), "\(text)") }
        for text in [
            "", "belfry.sqlite", "/var/lib/a=b.sqlite", "./service=house", "a=b", "C:/x", "://",
            "service", "day=2026.sqlite",
        ] { #expect(!PostgresPlace.isMeant(by: text), "\(text)") }
    }

    @Test func `a host that closes connections does not hide the next host`() throws {
        let place = try TestPlace()
        let closing = try ClosingSocket()
        func session(_ hosts: String) throws -> PostgresSession {
            let url = "\(hosts) user=postgres dbname=postgres"
            return PostgresSession(
                place: try PostgresPlace(url: url, schema: place.schema), watch: { .zero },
                name: "belfry test")
        }
        let both = "host=127.0.0.1,\(place.server.folder) port=\(closing.port),"
        let connection = try session(both).connect()
        #expect(connection.serverProcess != 0)
        let alone = try session("host=127.0.0.1 port=\(closing.port)")
        #expect(try #require(Self.reason(alone)).contains("cannot be reached"))
    }

    /// libpq reports on each host, and each address of a host, in the order in which it tried them.
    @Test func `a server's answer takes precedence over another host's silence`() throws {
        let folder = try TestPlace().server.folder
        let place = try PostgresPlace(
            url: "host=/nonexistent,\(folder) user=nobody_here dbname=postgres")
        let session = PostgresSession(place: place, watch: { .zero }, name: "belfry test")
        #expect(try #require(Self.reason(session)).contains("does not let the role log in"))
        let refused = "connection to server at \"a\" (::1), port 5432 failed: Connection refused"
        let text = "\(refused)\n\tIs the server running on that host?\n"
        #expect(PostgresError(connecting: text).message == refused)
        let cut = "server closed the connection unexpectedly"
        #expect(PostgresError(connecting: "\(text)\(cut)\n\tThis means\n").message == cut)
        #expect(PostgresError(connecting: "").refusal == .unreachable)
    }

    /// The server's certificate is verified, whether the URL or the environment names the server.
    @Test func `a server that the environment names does not count as local`() throws {
        let unnamed = try PostgresTarget("postgresql:///relay")
        #expect(unnamed.isLocal(beside: [:]))
        #expect(unnamed.isLocal(beside: ["host": "/run/postgresql"]))
        for name in ["host", "hostaddr", "service"] {
            #expect(!unnamed.isLocal(beside: [name: "10.0.0.5"]), "\(name)")
        }
        let named = try PostgresTarget("host=localhost dbname=relay")
        #expect(named.isLocal(beside: ["host": "10.0.0.5", "service": "house"]))
        // `hostaddr` takes precedence over `host`, wherever it comes from.
        #expect(!named.isLocal(beside: ["hostaddr": "10.0.0.5"]))
        for text in ["host=/run,db.example", "service=house", "hostaddr=10.0.0.5 host=localhost"] {
            let target = try PostgresTarget(text)
            #expect(!target.isLocal(beside: [:]), "\(text)")
        }
    }

    @Test func `each host of several is named with its port`() throws {
        let place = try PostgresPlace(url: "postgresql://u@a.example:5433,b.example/relay")
        #expect(place.description == "schema belfry of a.example:5433,b.example/relay")
        let same = try PostgresPlace(url: "host=a,b port=6000 dbname=relay")
        #expect(same.description == "schema belfry of a:6000,b:6000/relay")
        let service = try PostgresPlace(url: "service=house")
        #expect(service.description == "schema belfry of service house")
    }

    @Test func `the description of a place omits the user`() throws {
        let place = try PostgresPlace(
            url: "postgresql://someone@db.example.com:5433/relay", schema: "house")
        #expect(place.description == "schema house of db.example.com:5433/relay")
    }

    /// The version that began the move, and knows no newer schema, could not finish it otherwise.
    @Test func `a start does not migrate an incomplete move`() throws {
        let test = try TestPlace()
        let place = try test.place()
        let connection = try test.session().connect()
        let some = Array(Migration.releasedOnPostgreSQL.prefix(1))
        _ = try PostgresSchema(place: place, migrations: some)
            .apply(connection, makesSchema: true)
        try connection.query(
            """
            INSERT INTO storeMove VALUES (1, 'here', decode(repeat('00', 16), 'hex'), 'far', '',
                NULL, 0)
            """)
        let refusal = #expect(throws: StorageError.self) {
            try RelayStore.open(place, as: .forTests(), settings: .forTests)
        }
        #expect(refusal?.description.contains("run belfry move again to finish") == true)
        #expect(try connection.query("SELECT count(*) FROM migration") == [["1"]])
    }
}
