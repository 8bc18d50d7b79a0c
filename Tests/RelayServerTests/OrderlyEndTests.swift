import RelayModel
import RelayServer
import RelayTestKit
import Testing

/// An orderly end waits for clients in the middle of a request, but not for ever.
@Suite(.serialized, .timeLimit(.minutes(15))) struct OrderlyEndTests {
    /// A connection on which half of a change has arrived.
    private struct HalfChange {
        let connection: RawConnection
        let rest: String
        let port: Int

        /// Sends a whole request and half of another one.
        ///
        /// When the first is answered, the relay has seen the second.
        static func begin(_ relay: RunningRelay, port: Int) async throws -> HalfChange {
            let connection = try await RawConnection.open(port)
            let body = JSONValue.change("create", "half").text
            let head = """
                POST /changes/1/\(relay.container.key.container)/development/database HTTP/1.1\r
                Host: relay\r
                Content-Type: application/json\r
                Content-Length: \(body.utf8.count)\r
                \r

                """
            let half = body.prefix(body.count / 2)
            try await connection.send(
                "GET /healthz HTTP/1.1\r\nHost: relay\r\n\r\n" + head + half)
            let answer = await connection.hear(until: "\"status\"")
            #expect(answer.hasPrefix("HTTP/1.1 200"))
            return HalfChange(
                connection: connection, rest: String(body.dropFirst(half.count)), port: port)
        }

        /// Waits until the listener is closed.
        func waitUntilNobodyElseIsServed() async {
            while let other = try? await RawConnection.open(port) {
                // The listener closes a connection that it has accepted.
                _ = await other.hearAll()
            }
        }
    }

    @Test func `a client in the middle of a request is cut off after the grace period`()
        async throws
    {
        let (halves, half) = AsyncStream.makeStream(of: HalfChange.self)
        try await RunningRelay.with(["--shutdown-grace-seconds", "0"]) { relay in
            let port = try await relay.relay.ports.port(of: "http")
            half.yield(try await HalfChange.begin(relay, port: port))
            half.finish()
        }
        // The relay has ended, although the rest was never sent.
        for await each in halves {
            let answer = await each.connection.hearAll()
            #expect(!answer.contains("HTTP/1.1 200"))
        }
    }

    @Test func `a request that arrives within the grace period is answered`() async throws {
        let (halves, half) = AsyncStream.makeStream(of: HalfChange.self)
        async let life: Void = RunningRelay.with(["--shutdown-grace-seconds", "3600"]) { relay in
            let port = try await relay.relay.ports.port(of: "http")
            half.yield(try await HalfChange.begin(relay, port: port))
            half.finish()
        }
        for await each in halves {
            await each.waitUntilNobodyElseIsServed()
            try await each.connection.send(each.rest)
            let answer = await each.connection.hearAll()
            #expect(answer.hasPrefix("HTTP/1.1 200"))
        }
        try await life
    }

    @Test func `a held live poll is answered and does not delay an end`() async throws {
        let (polls, poll) = AsyncStream.makeStream(of: RawConnection.self)
        // Less than the poll's hold, and long enough for a busy machine.
        try await RunningRelay.with(["--shutdown-grace-seconds", "20"]) { relay in
            let body = #"""
                {"wait":25,"set":{"version":1,"queries":[
                    {"id":"a","kind":"changes","recordType":"Artwork"}]}}
                """#
            // When the first request is answered, the poll has arrived.
            let connection = try await RawConnection.posting(
                body, to: "poll", of: relay,
                behind: "GET /healthz HTTP/1.1\r\nHost: relay\r\n\r\n")
            _ = await connection.hear(until: "\"status\"")
            poll.yield(connection)
            poll.finish()
        }
        for await each in polls {
            let answer = await each.hearAll()
            #expect(answer.contains("HTTP/1.1 200") && answer.contains("\"at\""), "\(answer)")
        }
    }

    @Test func `a stream that is not read does not delay an end`() async throws {
        let (streams, stream) = AsyncStream.makeStream(of: RawConnection.self)
        try await RunningRelay.with(["--shutdown-grace-seconds", "3600"]) { relay in
            let body = #"{"set":{"version":1,"queries":[{"kind":"changes","recordType":"Big"}]}}"#
            let connection = try await RawConnection.posting(body, to: "stream", of: relay)
            _ = await connection.hear(until: "\"complete\"")
            try await connection.pause()
            // More than the operating system buffers for a connection.
            let text = String(repeating: "x", count: 3000)
            for round in 0..<24 {
                let changes = (0..<160).map { number in
                    #"{"operation":"create","recordType":"Big","recordName":"b\#(round)-\#(number)","#
                        + #""after":{"text":"\#(text)"}}"#
                }
                _ = try await relay.client.call(
                    "POST", "/changes/1/\(relay.container.key)/database",
                    headers: ["Content-Type": "application/json"],
                    body: "[\(changes.joined(separator: ","))]"
                ).expect(200)
            }
            // The connection stays open until the relay has ended.
            stream.yield(connection)
            stream.finish()
        }
        for await each in streams { try? await each.close() }
    }

    @Test(arguments: ["Content-Length: 1000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n3e8\r\n"])
    func `a truncated body is refused and not stored`(
        length: String
    ) async throws {
        try await RunningRelay.with { relay in
            let connection = try await RawConnection.open(await relay.relay.ports.port(of: "http"))
            try await connection.send(
                "POST /changes/1/\(relay.container.key.container)/development/database HTTP/1.1\r\n"
                    + "Host: relay\r\nContent-Type: application/json\r\n\(length)"
                    + JSONValue.change("create", "half").text)
            try await connection.finish()
            let answer = await connection.hearAll()
            #expect(answer.hasPrefix("HTTP/1.1 400"))
            #expect(answer.contains("the body was cut off"))
            let changes = try await relay.client.administer(
                "GET", "containers/\(relay.container.key.container)/development/changes")
            #expect(changes["changes"] == [])
        }
    }
}
