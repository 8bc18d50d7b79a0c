import Foundation
import RelayTestKit

/// A port of the loopback interface that answers with the head of an answer, and with nothing more.
final class StallingServer: Sendable {
    private let listener: LoopbackPort
    var port: Int { listener.number }

    /// - Throws: ``LoopbackPort/NoneFree``.
    init() throws { listener = try LoopbackPort(Self.serve) }

    /// Answers what comes first, and keeps the connection until the other end closes it.
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
