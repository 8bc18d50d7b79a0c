import PostgresFollowing
import PostgresLink
import RelayTestKit
import Testing

/// Answers that no real PostgreSQL gives are reported, and do not block the relay.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"),
    .timeLimit(.minutes(5)))
struct OddServerTests {
    private func connection(to server: OddServer) throws -> PostgresConnection {
        let start = ContinuousClock.now
        return try PostgresConnection(
            [
                "host": "127.0.0.1", "port": "\(server.port)", "user": "u", "dbname": "d",
                "sslmode": "disable", "gssencmode": "disable", "connect_timeout": "60",
            ],
            wake: try #require(PostgresWake()), watch: { start.duration(to: .now) },
            isStopped: { false })
    }

    /// libpq reports such a copy each time it is asked for a result.
    @Test(arguments: ["G", "H"] as [Character])
    func `a server that starts copies without a request is given up`(
        kind: Character
    ) throws {
        let server = try OddServer(OddServer.message(kind, [0, 0, 0]))
        let one = try connection(to: server)
        let refused = #expect(throws: PostgresError.self) { _ = try one.query("SELECT 1") }
        #expect(refused?.message == "the server answers with data that was not asked for")
        let other = try connection(to: server)
        try other.beginRows("SELECT 1")
        #expect(throws: PostgresError.self) { _ = try other.nextRow() }
        // A pipeline sends a query when it begins.
        let third = try connection(to: server)
        #expect(throws: PostgresError.self) {
            _ = try PostgresPipeline(third, patience: .seconds(600))
        }
    }

    @Test func `endless answers are given up`() throws {
        let server = try OddServer(OddServer.done, hasNoEnd: true)
        let connection = try connection(to: server)
        let refused = #expect(throws: PostgresError.self) { _ = try connection.query("SELECT 1") }
        #expect(refused?.message == "the server sends answers without end")
    }

    @Test func `endless rows are given up before they fill the memory`() throws {
        // One column without a name, and a row with a value of a kilobyte.
        let column = Array(repeating: UInt8(0), count: 19)
        let value = OddServer.number(1024) + Array(repeating: UInt8(ascii: "x"), count: 1024)
        let row = OddServer.message("D", [0, 1] + value)
        let server = try OddServer(
            OddServer.message("T", [0, 1] + column) + row + row, hasNoEnd: true)
        let connection = try connection(to: server)
        let refused = #expect(throws: PostgresError.self) {
            _ = try connection.query("SELECT 1", atMost: 100_000)
        }
        #expect(refused?.message == "the server's answer is too long")
    }

    @Test func `unsolicited notifications are recognised and reported once`() throws {
        let notification = OddServer.message(
            "A", OddServer.number(7) + Array("channel\u{0}payload\u{0}".utf8))
        let many = Array(repeating: notification, count: 2000).flatMap { $0 }
        let server = try OddServer(many + OddServer.done + many + OddServer.ready)
        let connection = try connection(to: server)
        #expect(!connection.takeNotifications())
        try connection.query("SET x = y")
        let isFirst = connection.takeNotifications()
        let isSecond = connection.takeNotifications()
        #expect(isFirst && !isSecond)
    }

    @Test func `a server's description of itself is limited in messages`() {
        let level = String(repeating: "replica", count: 20_000)
        #expect(FollowProblem.walLevel(level).advice.utf8.count < 2000)
        #expect(FollowProblem.walLevel("replica").advice.hasSuffix("restart the server."))
    }

    @Test func `a server's message is truncated by scalars`() {
        let letter = "e" + String(repeating: "\u{301}", count: 100_000)
        #expect(PostgresError.line(letter + "\n").unicodeScalars.count == 300)
        #expect(PostgresError(connecting: letter).message.unicodeScalars.count == 300)
    }
}
