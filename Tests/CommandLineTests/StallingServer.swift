import Foundation
import RelayTestKit

/// A loopback server that answers each request with the head of a response and then stalls.
final class StallingServer: Sendable {
    private let listener: LoopbackPort
    var port: Int { listener.number }

    /// Starts the server on a free port.
    ///
    /// - Throws: ``LoopbackPort/NoneFree``.
    init() throws { listener = try LoopbackPort(Self.serve) }

    /// Answers the first request, and keeps the connection open until the client closes it.
    private static func serve(_ connection: Int32) {
        let count = 65_536
        var bytes = [UInt8](repeating: 0, count: count)
        let head = Array("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{".utf8)
        if recv(connection, &bytes, count, 0) > 0 {
            _ = send(connection, head, head.count, Int32(MSG_NOSIGNAL))
            while recv(connection, &bytes, count, 0) > 0 {}
        }
    }
}
