import PostgresLink
import Testing

/// What is told where none of several hosts is connected to.
struct HostErrorTests {
    private static func text(_ reasons: String...) -> String {
        zip("abc", reasons).map { host, reason in
            "connection to server at \"\(host)\" (10.0.0.5), port 5432 failed: \(reason)\n"
        }.joined()
    }

    private static let away = "Connection refused\n\tIs the server running on that host?"
    private static let reads = "session is read-only"
    private static let cut = "server closed the connection unexpectedly\n\tThis probably means"

    @Test(arguments: [
        (text(away, "FATAL:  password authentication failed for user \"x\""), "\"b\"", "password"),
        (text(away, reads, "FATAL:  sorry, too many clients already"), "\"c\"", "too many"),
        // The primary is away, and its standby is there.
        (text(reads, away), "\"b\"", "refused"), (text(away, reads), "\"a\"", "refused"),
        (text(away, cut), "\"b\"", "unexpectedly"), (text(reads, reads), "\"a\"", "read-only"),
        ("could not translate host name\n", "host name", "could not"), ("", "no reason", "given"),
    ])
    func `the host that says most is told of`(text: String, host: String, reason: String) {
        let told = PostgresError(connecting: text).message
        #expect(told.contains(host) && told.contains(reason), "\(told)")
        #expect(!told.contains("\n") && !told.contains("\t"))
    }
}
