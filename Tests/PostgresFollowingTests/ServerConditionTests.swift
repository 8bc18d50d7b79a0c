import Foundation
import PostgresFollowing
import PostgresLink
import RelayTestKit
import Testing

/// What the server is like: what it keeps for a slot, and how it proves who it is.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"),
    .timeLimit(.minutes(3)))
struct ServerConditionTests {
    @Test func `what the server keeps for a slot is warned of`() async throws {
        let server = try PostgresServer.shared()
        let name = try server.database("CREATE TABLE t (id int PRIMARY KEY)")
        try await Followed().follow(try server.settings(name)) { followed in
            await followed.until { $0.words.last == "following" }
        }
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

    @Test func `TLS is asked for as the URL says, and only who is certified is believed`()
        async throws
    {
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

    /// Gives a server a certificate that it signed itself, and others an authority that did not.
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
