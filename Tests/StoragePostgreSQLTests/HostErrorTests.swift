import PostgresLink
import Storage
import StoragePostgreSQL
import Testing

/// The error message if no connection to any of several hosts succeeds.
struct HostErrorTests {
    private static func text(_ reasons: String...) -> String {
        zip("abc", reasons).map { host, reason in
            "connection to server at \"\(host)\" (10.0.0.5), port 5432 failed: \(reason)\n"
        }.joined()
    }

    private static let away = "Connection refused\n\tIs the server running on that host?"
    private static let reads = "session is read-only"
    private static let closed = "FATAL:  database \"d\" is not currently accepting connections"
    private static let cut = "server closed the connection unexpectedly\n\tThis probably means"

    @Test(arguments: [
        (text(away, "FATAL:  password authentication failed for user \"x\""), "\"b\"", "password"),
        (text(away, reads, "FATAL:  sorry, too many clients already"), "\"c\"", "too many"),
        (text(away, closed), "\"b\"", "accepting"),
        // The primary is away, and its standby answers.
        (text(reads, away), "\"b\"", "refused"), (text(away, reads), "\"a\"", "refused"),
        (text(away, cut), "\"b\"", "unexpectedly"), (text(reads, reads), "\"a\"", "read-only"),
        ("could not translate host name\n", "host name", "could not"), ("", "no reason", "given"),
    ])
    func `the host with the most telling error is reported`(
        text: String, host: String, reason: String
    ) {
        let told = PostgresError(connecting: text).message
        #expect(told.contains(host) && told.contains(reason), "\(told)")
        #expect(!told.contains("\n") && !told.contains("\t"))
    }
}

/// Values in a database URL that can never work are refused when the settings are read.
struct WrongValueTests {
    @Test(arguments: [
        ("postgresql://belfry@h:geheim/relay", "a port must be"),
        ("postgresql://belfry@h:99999/relay", "a port must be"),
        ("host=h port=0", "a port must be"),
        ("postgresql://belfry@a:5432,b:x/relay", "a port must be"),
        ("postgresql://h/relay?connect_timeout=geheim", "connect_timeout must be"),
        ("postgresql://h/relay?sslmode=geheim", "sslmode must be one of"),
        ("postgresql://h/relay?target_session_attrs=geheim", "target_session_attrs must be one of"),
    ])
    func `an impossible value in a URL is reported`(text: String, reason: String) {
        let bad = #expect(throws: BadPostgresURL.self) { try PostgresTarget(text) }
        #expect(bad?.reason.contains(reason) == true)
        #expect(bad?.reason.contains("geheim") == false)
    }

    @Test(arguments: ["read-only", "standby", "prefer-standby"])
    func `a URL that wants a standby is refused`(wanted: String) {
        let bad = #expect(throws: StorageError.self) {
            try PostgresPlace(url: "postgresql://a,b/relay?target_session_attrs=\(wanted)")
        }
        #expect(bad?.description.contains("must be read-write, primary or any") == true)
    }

    @Test(arguments: ["host=h geheim", "host=h \u{301}geheim", "host=h \u{200D}geheim"])
    func `values that libpq would quote are not repeated`(text: String) {
        let bad = #expect(throws: BadPostgresURL.self) { try PostgresTarget(text) }
        #expect(bad?.reason.contains("geheim") == false, "\(bad?.reason ?? "")")
    }

    @Test(arguments: [
        "postgresql://belfry@a:5432,b:5433/relay", "postgresql://belfry@a,b/relay",
        "host=a,b port=5432", "host=a,b port=,5433", "postgresql:///relay?service=x",
        "postgresql://h/relay?sslmode=verify-full&connect_timeout=3",
        "postgresql://h/relay?target_session_attrs=primary",
    ])
    func `values that libpq accepts are accepted`(text: String) throws {
        _ = try PostgresTarget(text)
    }
}
