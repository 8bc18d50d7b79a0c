import RelayModel
import RelayTestKit
import Testing

@testable import RelayServer

/// Long answers that clients do not take have a bound in memory, on real sockets.
@Suite(.serialized, .timeLimit(.minutes(15))) struct UntakenAnswerScenarioTests {
    /// The bytes of answers that may be untaken; three answers fit.
    private static let most = 16 << 20
    /// The bytes of one answer, at least; some of them fit into the system's buffers.
    private static let answerBytes = 4_500_000

    /// Creates a record of 900 kB, of which an answer shows five at most.
    private static func fill(_ relay: RunningRelay) async throws {
        let text = String(repeating: "x", count: 900_000)
        let record: JSONObject = [
            "recordName": "r", "recordType": "Art", "fields": ["t": ["value": .string(text)]],
        ]
        let reply = try await relay.container.call(
            "records/modify",
            ["operations": [["operationType": "create", "record": .object(record)]]],
            as: "alice", in: "private"
        ).expect(200)
        #expect(!reply.text.contains("serverErrorCode"))
    }

    /// Asks for long answers on a new connection, and reads nothing.
    private static func ask(
        _ count: Int, of relay: RunningRelay, from address: String
    ) async throws -> RawConnection {
        let names: JSONValue = .array(Array(repeating: ["recordName": "r"], count: 5))
        let body = JSONValue.object(["records": names]).text
        let target = relay.container.target(of: "records/lookup", as: "alice", in: "private")
        let port = try await relay.relay.ports.port(of: "http")
        let connection = try await RawConnection.open(port, from: address)
        try await connection.pause()
        for left in (0..<count).reversed() {
            try await connection.send(
                "POST \(target) HTTP/1.1\r\nHost: relay\r\n"
                    + (left == 0 ? "Connection: close\r\n" : "")
                    + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
        }
        return connection
    }

    /// Returns the number that a metric shows now; 0 if it shows none.
    private static func number(_ name: String, _ relay: RunningRelay) async throws -> Int {
        let lines = try await relay.metrics().split(separator: "\n")
        let line = lines.first { $0.hasPrefix("\(name) ") }
        return line.flatMap { Double($0.dropFirst(name.count + 1)) }.map { Int($0) } ?? 0
    }

    private static func untaken(_ relay: RunningRelay) async throws -> Int {
        let bytes = try await number(#"belfry_untaken_answer_bytes{listener="http"}"#, relay)
        #expect(bytes <= most)
        return bytes
    }

    private static func ended(_ relay: RunningRelay) async throws -> Int {
        try await number(
            #"belfry_connections_too_slow_total{listener="http",waiting="answer"}"#, relay)
    }

    @Test func `answers that nobody takes are bounded, and a slow client gets its own`()
        async throws
    {
        try await RunningRelay.with(["--http-body-megabytes", "\(Self.most >> 20)"]) { relay in
            try await Self.fill(relay)
            let slow = try await Self.ask(1, of: relay, from: "127.0.0.1")
            var greedy: [RawConnection] = []
            for _ in 0..<8 {
                greedy.append(try await Self.ask(3, of: relay, from: "127.0.0.2"))
            }
            let isBounded = try await Turns.yield {
                _ = try await Self.untaken(relay)
                return try await Self.ended(relay) >= 5
            }
            #expect(isBounded)
            try await slow.resume()
            let answer = await slow.hearAll()
            #expect(answer.hasPrefix("HTTP/1.1 200"))
            #expect(answer.utf8.count > Self.answerBytes)

            for connection in greedy { try? await connection.close() }
            #expect(try await Turns.yield { try await Self.untaken(relay) == 0 })
            let ended = try await Self.ended(relay)
            // There is room again for as many as before.
            var later: [RawConnection] = []
            for _ in 0..<3 {
                later.append(try await Self.ask(2, of: relay, from: "127.0.0.2"))
            }
            #expect(
                try await Turns.yield {
                    try await Self.untaken(relay) >= 3 * Self.answerBytes
                })
            for connection in later {
                try await connection.resume()
                #expect(await connection.hearAll().utf8.count > 2 * Self.answerBytes)
            }
            #expect(try await Self.ended(relay) == ended)
            #expect(try await Turns.yield { try await Self.untaken(relay) == 0 })
        }
    }
}
