import Foundation
import PostgresFollowing
import PostgresLink
import RelayTestKit
import Testing

/// A server that accepts connections and falls silent after a certain phase of the handshake.
private final class SilentServer: Sendable {
    /// The last phase that the server completes.
    enum Phase: String, Sendable, CaseIterable {
        case connection, questionForTLS, promiseOfTLS, role, password, entry
    }

    private let listener: LoopbackPort
    var port: Int { listener.number }

    init(after phase: Phase) throws {
        listener = try LoopbackPort { connection in
            SilentServer.begin(connection, phase)
            // Reads until the client closes the connection.
            var bytes = [UInt8](repeating: 0, count: 1024)
            while recv(connection, &bytes, bytes.count, 0) > 0 {}
        }
    }

    private static func begin(_ connection: Int32, _ phase: Phase) {
        guard phase != .connection, read(8, from: connection) != nil, phase != .questionForTLS
        else { return }
        guard phase != .promiseOfTLS else { return write(Array("S".utf8), to: connection) }
        write(Array("N".utf8), to: connection)
        guard let start = read(4, from: connection),
            read(start.reduce(0) { $0 << 8 | Int($1) } - 4, from: connection) != nil
        else { return }
        switch phase {
        case .password:
            let salted = OddServer.number(5) + Array("salt".utf8)
            write(OddServer.message("R", salted), to: connection)
        case .entry: write(OddServer.message("R", OddServer.number(0)), to: connection)
        case .connection, .questionForTLS, .promiseOfTLS, .role: break
        }
    }

    private static func read(_ count: Int, from connection: Int32) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: max(count, 1))
        return recv(connection, &bytes, count, Int32(MSG_WAITALL)) == count
            ? Array(bytes.prefix(count)) : nil
    }

    private static func write(_ bytes: [UInt8], to connection: Int32) {
        _ = bytes.withUnsafeBytes {
            send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
    }
}

/// The time limit for connecting and logging in to a server.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"),
    .timeLimit(.minutes(5)))
struct ConnectTimeTests {
    private func connection(_ text: String) throws -> PostgresConnection {
        let start = ContinuousClock.now
        var parameters = try PostgresTarget(text).parameters(
            isReplication: false, authorities: nil)
        // Overrides a password that the machine may have configured.
        parameters["password"] = "none"
        return try PostgresConnection(
            parameters, wake: try #require(PostgresWake()), watch: { start.duration(to: .now) },
            isStopped: { false })
    }

    @Test(arguments: SilentServer.Phase.allCases.map(\.rawValue))
    func `a silent server is given up, and the next host is tried`(phase: String) throws {
        let phase = try #require(SilentServer.Phase(rawValue: phase))
        let silent = try SilentServer(after: phase)
        let start = ContinuousClock.now
        let refused = #expect(throws: PostgresError.self) {
            _ = try connection(
                "host=127.0.0.1 port=\(silent.port) user=u dbname=d connect_timeout=2")
        }
        #expect(refused?.refusal == .unreachable)
        #expect(refused?.message.hasSuffix("timeout expired") == true, "\(refused?.message ?? "")")
        let advice = FollowProblem.unreachable(refused?.message ?? "").advice
        #expect(advice.contains("whether the server hangs"), "\(advice)")
        let server = try PostgresServer.shared()
        let other = try connection(
            "host=127.0.0.1,\(server.folder) port=\(silent.port),5432 user=postgres "
                + "dbname=postgres connect_timeout=2")
        let answer = try other.query("SELECT 1")
        #expect(answer == [["1"]])
        // Two attempts of two seconds, with ample time for a busy machine.
        #expect(start.duration(to: .now) < .seconds(60))
    }

    @Test func `connecting always has a time limit`() {
        let said = [nil, "3", " 7 ", "0", "-1", "3600"]
        #expect(said.map(PostgresConnection.timeout) == ["5", "3", "7", "60", "60", "60"])
    }
}
