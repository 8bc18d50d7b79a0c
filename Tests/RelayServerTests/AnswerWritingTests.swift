import RelayModel
import RelayServer
import RelayTestKit
import Testing

/// How responses and requests appear on the connection.
@Suite(.serialized, .timeLimit(.minutes(15))) struct AnswerWritingTests {
    private static let close = "Host: relay\r\nConnection: close\r\n"

    private static func path(_ relay: RunningRelay, _ call: String) -> String {
        "/database/1/\(relay.container.key.container)/development/\(call)"
            + "?ckAPIToken=\(relay.container.apiToken)"
    }

    @Test func `head and body of a short response come in one packet`() async throws {
        try await RunningRelay.with { relay in
            let port = try await relay.relay.ports.port(of: "http")
            // A refusal with 421, which Node's fetch retries.
            let refused = try await RawConnection.open(port)
            try await refused.send(
                "GET \(Self.path(relay, "private/zones/list")) HTTP/1.1\r\nHost: relay\r\n\r\n")
            let refusal = await refused.hear(until: "\r\n\r\n")
            #expect(refusal.hasPrefix("HTTP/1.1 421"), "\(refusal)")
            #expect(refusal.hasSuffix("}"), "\(refusal)")
            // A held response, whose client is watched while the response is written.
            let page = try await relay.container.call(
                "tokens/create", ["apnsEnvironment": "development", "clientId": "page"],
                as: "alice", in: nil
            ).expect(200)
            let url = try #require(page["webcourierURL"]?.text.filter { $0 != "\"" })
            try await relay.container.save(.query("q"))
            let held = try await RawConnection.open(port)
            try await held.send(
                "GET \(url.dropFirst(relay.client.url.count)) HTTP/1.1\r\nHost: relay\r\n\r\n")
            try await relay.container.post(.change("create", "a1"))
            let notification = await held.hear(until: "\r\n\r\n")
            #expect(notification.hasPrefix("HTTP/1.1 200"), "\(notification)")
            #expect(notification.hasSuffix("}"), "\(notification)")
        }
    }

    @Test func `a client that expects 100 Continue gets it before its body is read`()
        async throws
    {
        try await RunningRelay.with { relay in
            let connection = try await RawConnection.open(
                try await relay.relay.ports.port(of: "http"))
            let body = JSONValue.change("create", "a1").text
            try await connection.send(
                "POST /changes/1/\(relay.container.key.container)/development/database HTTP/1.1\r\n"
                    + Self.close + "Expect: 100-continue\r\nContent-Length: \(body.utf8.count)"
                    + "\r\n\r\n")
            let goOn = await connection.hear(until: "\r\n\r\n")
            #expect(goOn == "HTTP/1.1 100 Continue\r\n\r\n")
            try await connection.send(body)
            let answer = await connection.hearAll()
            #expect(answer.hasPrefix("HTTP/1.1 200"), "\(answer)")
        }
    }

    @Test func `a request refused without its body gets no 100 Continue`() async throws {
        try await RunningRelay.with { relay in
            let connection = try await RawConnection.open(
                try await relay.relay.ports.port(of: "http"))
            try await connection.send(
                "POST \(Self.path(relay, "public/records/query")) HTTP/1.1\r\nHost: relay\r\n"
                    + "Expect: 100-continue\r\nContent-Length: 999999999\r\n\r\n")
            let answer = await connection.hear(until: "\r\n\r\n")
            #expect(answer.hasPrefix("HTTP/1.1 413"), "\(answer)")
            #expect(answer.contains("Connection: close"), "\(answer)")
            // The relay does close the connection.
            _ = await connection.hearAll()
        }
    }
}
