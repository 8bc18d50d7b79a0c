import NIOCore
import RelayTestKit
import Testing

@testable import RelayServer

/// A body that arrives byte by byte costs the other connections of its event loop little.
@Suite(.timeLimit(.minutes(15))) struct SmallPartsTests {
    private static func texts(_ parts: [ByteBuffer]) -> [String] {
        parts.map { String(buffer: $0) }
    }

    @Test func `small parts are joined and stay in order with long ones`() {
        var parts = SmallParts()
        #expect(parts.add(ByteBuffer(string: "a")).isEmpty)
        #expect(parts.add(ByteBuffer(string: "b")).isEmpty)
        #expect(Self.texts(parts.take()) == ["ab"])
        #expect(parts.take().isEmpty)
        #expect(parts.add(ByteBuffer(string: "c")).isEmpty)
        let long = String(repeating: "x", count: 2000)
        #expect(Self.texts(parts.add(ByteBuffer(string: long))) == ["c", long])
        #expect(Self.texts(parts.add(ByteBuffer(string: long))) == [long])
        // No more than this waits for the end of a read.
        var count = 0
        while parts.add(ByteBuffer(string: String(repeating: "y", count: 1000))).isEmpty {
            count += 1
        }
        #expect((60..<70).contains(count))
    }

    @Test func `after very many parts reading pauses for a while`() {
        var parts = SmallParts()
        let byte = ByteBuffer(string: "a")
        for _ in 0..<256 { _ = parts.add(byte) }
        #expect(parts.pauseAfterReading() == nil)
        for _ in 0..<10_000 { _ = parts.add(byte) }
        #expect(parts.pauseAfterReading() == .milliseconds(200))
        #expect(parts.pauseAfterReading() == nil)
    }

    @Test func `a body of tiny chunks is read completely`() async throws {
        try await RunningRelay.with { relay in
            let port = try await relay.relay.ports.port(of: "admin")
            let connection = try await RawConnection.open(port)
            let body =
                #"{"label":"byte by byte","#
                + String(repeating: " ", count: 3000) + #""access":"read"}"#
            try await connection.send(
                "POST /admin/1/tokens HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n"
                    + "Authorization: Bearer \(RelayClient.adminToken)\r\n"
                    + "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + body.map { "1\r\n\($0)\r\n" }.joined() + "0\r\n\r\n")
            let answer = await connection.hearAll()
            #expect(answer.hasPrefix("HTTP/1.1 201"), "\(answer)")
            #expect(answer.contains("byte by byte"), "\(answer)")
        }
    }
}
