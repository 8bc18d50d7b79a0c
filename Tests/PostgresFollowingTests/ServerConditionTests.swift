import ChangeSources
import Foundation
import PostgresFollowing
import PostgresLink
import RelayTestKit
import Testing

/// Conditions of the server: the log that it retains for a slot, its settings, and its certificate.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"),
    .timeLimit(.minutes(15)))
struct ServerConditionTests {
    @Test func `a log that the server retains for a slot is warned about`() async throws {
        let server = try PostgresServer(["wal_level=logical"])
        defer { server.end() }
        let name = try server.database("CREATE TABLE t (id int PRIMARY KEY)")
        try await Followed().follow(try server.settings(name)) { followed in
            await followed.until { $0.words.last == "following" }
        }
        // The server retains its log for an open transaction, whatever is confirmed meanwhile.
        let session = try PostgresSession(server, name)
        try session.run("BEGIN; SELECT pg_current_xact_id()")
        defer { session.end() }
        try server.sql("SELECT pg_logical_emit_message(false, 'x', repeat('x', 3000000))")
        let settings = try server.settings(name) { $0.retainedWarning = 1_048_576 }
        let follower = try Followed().follower(settings)
        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await follower.run() }
            _ = await Turns.yield { follower.status.warning != nil }
            group.cancelAll()
        }
        let status = follower.status
        #expect(
            status.warning?.hasPrefix("The server keeps ") == true
                && status.warning?.contains("of its log for the slot") == true)
        #expect(status.word == "lagging" && status.sentence == status.warning)
    }

    @Test(arguments: [false, true])
    func `a table that is named later and not followed is reported`(outbox: Bool) async throws {
        let server = try outbox ? PostgresServer.plain() : PostgresServer.shared()
        let name = try server.database(
            "CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE more (id int PRIMARY KEY)")
        func settings(_ tables: [String], makes: Bool) throws -> FollowSettings {
            try outbox
                ? server.outbox(name, tables) { $0.makes = makes }
                : server.settings(name) {
                    $0.tables = tables
                    $0.makes = makes
                }
        }
        try await Followed().follow(try settings(["public.t"], makes: true)) { followed in
            await followed.until { $0.words.last == "following" }
        }
        let follower = try Followed().follower(
            try settings(["public.t", "public.more"], makes: !outbox))
        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await follower.run() }
            _ = await Turns.yield { follower.status.warning != nil }
            group.cancelAll()
        }
        let sentence = follower.status.sentence
        #expect(
            sentence.contains("(public.more), so their changes are not reported"), "\(sentence)")
        #expect(follower.status.word == "lagging")
    }

    @Test func `operations that a publication leaves out are reported`() async throws {
        let server = try PostgresServer.shared()
        let name = try server.database(
            "CREATE TABLE t (id int PRIMARY KEY); "
                + "CREATE PUBLICATION belfry FOR TABLE t WITH (publish = 'insert')")
        let follower = try Followed().follower(try server.settings(name))
        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await follower.run() }
            _ = await Turns.yield { !follower.status.operationsLeftOut.isEmpty }
            _ = await Turns.yield { follower.status.state == .following }
            group.cancelAll()
        }
        let status = follower.status
        #expect(status.operationsLeftOut == ["UPDATE", "DELETE"])
        #expect(status.word == "following")
        #expect(status.sentence.hasPrefix("Following. The publication leaves out UPDATE and "))
    }

    /// Removes a table from what is followed, changes it, and adds it again.
    ///
    /// The change in between is skipped silently.
    private static func takeOutAndPutBack(
        _ server: PostgresServer, _ name: String, outbox: Bool = false
    ) throws {
        let (out, back) =
            outbox
            ? (
                "DROP TRIGGER belfry_outbox ON t",
                "CREATE TRIGGER belfry_outbox AFTER INSERT OR UPDATE OR DELETE ON t "
                    + "FOR EACH ROW EXECUTE FUNCTION belfry.note_change()"
            )
            : (
                "ALTER PUBLICATION belfry DROP TABLE t", "ALTER PUBLICATION belfry ADD TABLE t"
            )
        // Three transactions: in a single one nothing would be skipped.
        for statement in [out, "INSERT INTO t VALUES (1)", back] {
            try server.sql(statement, in: name)
        }
    }

    @Test(arguments: [false, true])
    func `a table that was taken out and put back is reported`(
        outbox: Bool
    ) async throws {
        let server = try outbox ? PostgresServer.plain() : PostgresServer.shared()
        let name = try server.database(
            "CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE more (id int PRIMARY KEY)")
        let followed = Followed()
        let tables = ["public.t", "public.more"]
        let settings =
            try outbox
            ? server.outbox(name, tables) : server.settings(name) { $0.tables = tables }
        let status = try await followed.run(settings) { follower in
            await followed.until { $0.words.last == "following" }
            // The next row arrives, so the follower has examined the tables.
            try server.sql("INSERT INTO more VALUES (1)", in: name)
            await followed.until { !$0.rows.isEmpty }
            try Self.takeOutAndPutBack(server, name, outbox: outbox)
            try server.sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    + "WHERE datname = '\(name)' AND pid <> pg_backend_pid()")
            // The status word is not enough: in between, the status says that the table is not
            // followed.
            _ = await Turns.yield { follower.status.sentence.contains("in between is missing") }
            return follower.status
        }
        #expect(Set(followed.seen.rows.map(\.table)) == ["more"])
        #expect(status.tablesPutBack == ["public.t"])
        #expect(
            status.sentence.contains("(public.t): what was changed in between is missing"),
            "\(status.sentence)")
    }

    @Test func `a table that was put back before the start is reported`()
        async throws
    {
        let server = try PostgresServer.shared()
        let name = try server.database(
            "CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE more (id int PRIMARY KEY)")
        let settings = try server.settings(name) { $0.tables = ["public.t", "public.more"] }
        try await Followed().follow(settings) { followed in
            await followed.until { $0.words.last == "following" }
        }
        try Self.takeOutAndPutBack(server, name)
        let followed = Followed()
        let status = try await followed.run(settings) { follower in
            await followed.until { $0.words.last == "following" }
            return follower.status
        }
        #expect(status.tablesNew.contains("public.t"))
        #expect(
            status.sentence.contains("what was changed while they were not in it is missing"),
            "\(status.sentence)")
    }

    /// Creating a slot waits for open transactions, however long they take.
    @Test(arguments: [
        ("BEGIN; INSERT INTO t VALUES (1)", "COMMIT", "role postgres, psql"),
        (
            "BEGIN; INSERT INTO t VALUES (1); PREPARE TRANSACTION 'left'", "COMMIT PREPARED 'left'",
            "(prepared transaction left)"
        ),
    ])
    func `a transaction that delays the creation of a slot is named`(
        open: String, end: String, named: String
    ) async throws {
        // A server of its own: the slot would also wait for other tests' transactions, and theirs
        // for these.
        let server = try PostgresServer(["wal_level=logical", "max_prepared_transactions=1"])
        defer { server.end() }
        let name = try server.database("CREATE TABLE t (id int PRIMARY KEY)")
        let followed = Followed()
        let follower = try followed.follower(try server.settings(name), clock: HurriedClock())
        let session = try PostgresSession(server, name)
        try session.run(open)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await follower.run() }
            _ = await Turns.yield { follower.status.warning != nil }
            let status = follower.status
            #expect(status.word == "connecting")
            #expect(status.sentence.contains(named), "\(status.sentence)")
            try session.run(end)
            await followed.until { $0.words.last == "following" }
            #expect(follower.status.warning == nil)
            group.cancelAll()
        }
        session.end()
    }

    /// Such settings are meant for people who work with the database.
    ///
    /// Some would end a waiting connection, some prevent the creation of a slot, and some change
    /// what is sent.
    @Test(arguments: [false, true])
    func `a database's own session settings do not apply to following`(
        byOutbox: Bool
    ) async throws {
        let server = try PostgresServer.shared()
        let name = try server.database(
            "CREATE TABLE t (id int PRIMARY KEY, r regclass, at timestamptz, d interval)")
        for setting in [
            "default_transaction_read_only = on", "default_transaction_deferrable = on",
            "default_transaction_isolation = serializable", "idle_session_timeout = '1s'",
            "idle_in_transaction_session_timeout = '1s'", "statement_timeout = '9s'",
            "lock_timeout = '9s'", "quote_all_identifiers = on", "datestyle = 'German'",
            "intervalstyle = 'sql_standard'", "standard_conforming_strings = off",
            "timezone = 'Asia/Kolkata'",
        ] {
            try server.sql("ALTER DATABASE \(name) SET \(setting)")
        }
        let settings = try byOutbox ? server.outbox(name) : server.settings(name)
        let (rows, words) = try await Followed().follow(settings) { followed in
            await followed.until { $0.words.last == "following" }
            // Longer than the database lets a session be idle.
            try server.sql("SELECT pg_sleep(2)")
            try server.sql(
                """
                SET transaction_read_only = off; SET quote_all_identifiers = off;
                INSERT INTO t VALUES (1, 't', '2020-01-01 00:00+00', '1 day 01:00')
                """, in: name)
            await followed.until { !$0.rows.isEmpty }
            return (followed.seen.rows, followed.seen.words)
        }
        #expect(
            rows.map(line) == [
                #"create t[id] - {"at":{"$ts":[1577836800,0]},"d":"1 day 01:00:00","id":1,"#
                    + #""r":"public.t"}"#
            ])
        #expect(words.filter { $0 != "connecting" && $0 != "snapshot" } == ["following"])
    }

    /// For such a database the server sends texts unconverted, as the bytes that it stores.
    @Test(arguments: [false, true])
    func `texts of a database without an encoding are bytes unless they are UTF-8`(
        byOutbox: Bool
    ) async throws {
        let server = try PostgresServer.shared()
        let name = "ascii_\(byOutbox ? "outbox" : "slot")"
        try server.sql(
            "CREATE DATABASE \(name) ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' "
                + "TEMPLATE template0")
        try server.sql(
            #"""
            CREATE TABLE t (id text PRIMARY KEY, v text, l text[]);
            INSERT INTO t VALUES (E'\351', E'caf\351', ARRAY[E'\351', E'\303\251'])
            """#, in: name)
        let settings = try byOutbox ? server.outbox(name) : server.settings(name)
        let rows = try await Followed().follow(settings) { followed in
            await followed.until { $0.words.last == "following" }
            try server.sql(#"UPDATE t SET v = E'caf\303\251'; DELETE FROM t"#, in: name)
            await followed.until { $0.rows.count == 3 }
            return followed.seen.rows
        }
        func row(_ text: String) -> String {
            #"{"id":{"$bytes":"6Q=="},"l":[{"$bytes":"6Q=="},"é"],"v":\#(text)}"#
        }
        let (before, after) = (row(#"{"$bytes":"Y2Fm6Q=="}"#), row(#""café""#))
        #expect(
            rows.map(line) == [
                "create t[id] - \(before) snapshot",
                "update t[id] \(byOutbox ? before : "-") \(after)",
                "delete t[id] " + (byOutbox ? after : #"~{"id":{"$bytes":"6Q=="}}"#) + " -",
            ])
    }

    @Test func `altering a published table does not block others' changes`()
        async throws
    {
        let server = try PostgresServer.shared()
        let name = try server.database(
            """
            CREATE TABLE t (id int PRIMARY KEY);
            CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY LIST (id);
            CREATE TABLE part PARTITION OF parts FOR VALUES IN (1)
            """)
        let settings = try server.settings(name) { $0.tables = ["public.t", "public.parts"] }
        try await Followed().follow(settings) { followed in
            await followed.until { $0.words.last == "following" }
        }
        let session = try PostgresSession(server, name)
        try session.run("BEGIN; LOCK TABLE part IN ACCESS EXCLUSIVE MODE")
        try server.sql("INSERT INTO t VALUES (1)", in: name)
        let seen = try await Followed().follow(settings) { followed in
            await followed.until { !$0.rows.isEmpty || $0.words.contains("unreachable") }
            return followed.seen
        }
        session.end()
        #expect(seen.rows.map(line) == [#"create t[id] - {"id":1}"#])
        #expect(!seen.words.contains("unreachable"))
    }

    /// The server may be skipping a large transaction of which nothing is published.
    ///
    /// A new connection would begin with that transaction again, each time.
    @Test func `a server that is silent for long but alive is waited for`() async throws {
        let server = try PostgresServer(["wal_level=logical", "wal_sender_timeout=0"])
        defer { server.end() }
        let name = try server.database("CREATE TABLE t (id int PRIMARY KEY)")
        let followed = Followed()
        let follower = try followed.follower(try server.settings(name), clock: HurriedClock())
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await follower.run() }
            await followed.until { $0.words.last == "following" }
            let sender = try server.sql(
                "SELECT active_pid FROM pg_replication_slots WHERE slot_name = '\(name)'")
            try PostgresServer.run(["kill", "-STOP", sender])
            // Twice as long as a server may be silent, on the follower's clock.
            try server.sql("SELECT pg_sleep(2)")
            try PostgresServer.run(["kill", "-CONT", sender])
            try server.sql("INSERT INTO t VALUES (1)", in: name)
            await followed.until { !$0.rows.isEmpty }
            group.cancelAll()
        }
        #expect(!followed.seen.sentences.contains { $0.contains("the server is silent") })
    }

    /// Retrying cannot help.
    ///
    /// An operator must decide how to continue without the text.
    @Test(arguments: [false, true])
    func `a text that cannot be converted to UTF-8 is reported with a way to continue`(
        byOutbox: Bool
    ) async throws {
        let server = try PostgresServer.shared()
        let name = "windows_\(byOutbox ? "outbox" : "slot")"
        try server.sql(
            "CREATE DATABASE \(name) ENCODING 'WIN1252' LC_COLLATE 'C' LC_CTYPE 'C' "
                + "TEMPLATE template0")
        try server.sql("CREATE TABLE t (id int PRIMARY KEY, v text)", in: name)
        let settings = try byOutbox ? server.outbox(name) : server.settings(name)
        try await Followed().follow(settings) { followed in
            await followed.until { $0.words.last == "following" }
            // In this encoding only the second one is a character.
            try server.sql("INSERT INTO t VALUES (1, chr(129))", in: name)
            try server.sql("INSERT INTO t VALUES (2, chr(233))", in: name)
            await followed.until { $0.words.contains("rowRefused") }
            let said = followed.seen.sentences.first { $0.contains("(22P05)") }
            #expect(said?.contains("belfry.outbox") == true)
            guard byOutbox else { return }
            try server.sql(
                "DELETE FROM belfry.outbox WHERE position(chr(129) in after) > 0", in: name)
            await followed.until { !$0.rows.isEmpty }
            #expect(followed.seen.rows.map(line) == [#"create t[id] - {"id":2,"v":"é"}"#])
        }
    }

    @Test func `a row filter that fails is reported with a way to continue`()
        async throws
    {
        let server = try PostgresServer.shared()
        let name = try server.database(
            """
            CREATE TABLE t (id int PRIMARY KEY, n int);
            CREATE PUBLICATION belfry FOR TABLE t WHERE (10 / n > 1)
            """)
        try await Followed().follow(try server.settings(name)) { followed in
            await followed.until { $0.words.last == "following" }
            try server.sql("INSERT INTO t VALUES (1, 0)", in: name)
            await followed.until { $0.words.contains("rowRefused") }
            let said = followed.seen.sentences.first { $0.contains("(22012)") }
            #expect(said?.contains("pg_drop_replication_slot") == true)
        }
    }

    @Test(.enabled(if: PostgresServer.speaksTLS, "this PostgreSQL was built without TLS"))
    func `TLS is used as the URL says, and only certified servers are trusted`() async throws {
        let port = try LoopbackSocket().port
        let server = try PostgresServer(
            ["wal_level=logical", "ssl=on", "listen_addresses=127.0.0.1"], port: port,
            prepare: Self.certify)
        try server.sql(
            "CREATE ROLE me LOGIN SUPERUSER PASSWORD 'secret'; CREATE TABLE t (id int PRIMARY KEY)")
        let passwords = server.folder + "/passwords"
        try Data("*:*:*:*:secret\n".utf8).write(to: URL(filePath: passwords))
        try PostgresServer.run(["chmod", "600", passwords])
        func settings(_ host: String, authority: String) throws -> FollowSettings {
            let target = try PostgresTarget(
                "host=\(host) hostaddr=127.0.0.1 port=\(port) user=me dbname=postgres "
                    + "passfile=\(passwords) sslmode=verify-full "
                    + "sslrootcert=\(server.folder)/\(authority)")
            return try server.settings("postgres") { $0.target = target }
        }
        for (host, authority, reason) in [
            ("localhost", "other.pem", "certificate verify failed"),
            ("db.example", "server.pem", "does not match host name \"db.example\""),
            ("localhost", "none.pem", "none.pem\" does not exist"),
        ] {
            let wrong = try await Followed().problem(try settings(host, authority: authority))
            #expect(wrong?.code == "untrusted")
            let advice = wrong?.advice ?? ""
            #expect(advice.contains(reason) && advice.contains("sslrootcert"), "\(advice)")
        }
        try await Followed().follow(try settings("localhost", authority: "server.pem")) {
            followed in
            await followed.until { $0.words.last == "following" }
            let secured = try server.sql(
                """
                SELECT bool_and(ssl), count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
                WHERE application_name = 'belfry'
                """)
            #expect(secured == "t|2")
        }
    }

    /// Creates a self-signed certificate for a server, and an unrelated authority.
    private static func certify(_ folder: String) throws {
        for name in ["other", "server"] {
            try PostgresServer.run([
                "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                "-addext", "subjectAltName=DNS:localhost", "-keyout", "\(folder)/\(name).key",
                "-out", "\(folder)/\(name).pem",
            ])
        }
        for (from, to) in [("server.key", "server.key"), ("server.pem", "server.crt")] {
            try PostgresServer.run(["cp", "\(folder)/\(from)", "\(folder)/data/\(to)"])
        }
        try PostgresServer.run(["chmod", "600", "\(folder)/data/server.key"])
        if getuid() == 0 { try PostgresServer.run(["chown", "-R", "postgres", folder]) }
    }
}
