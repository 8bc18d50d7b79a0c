import Foundation
import RelayTestKit

/// A loopback port at which a server says that it is PostgreSQL 13.
///
/// It refuses TLS, lets everybody in, and answers each question with one row, `off`: it can be
/// written to.
final class OldServer: Sendable {
    private let listener: LoopbackPort
    var port: Int { listener.number }

    /// Opens a free port.
    ///
    /// - Throws: ``LoopbackPort/NoneFree``.
    init() throws { listener = try LoopbackPort { OldServer.serve($0) } }

    private static func serve(_ connection: Int32) {
        // The client waits for each answer, so what it sends comes in one piece.
        guard receives(from: connection) else { return }
        write(Array("N".utf8), to: connection)
        guard receives(from: connection) else { return }
        write(
            message("R", [0, 0, 0, 0])
                + message("S", Array("server_version\u{0}13.4\u{0}".utf8))
                + message("S", Array("client_encoding\u{0}UTF8\u{0}".utf8)) + ready,
            to: connection)
        while receives(from: connection) {
            write(
                message("T", column) + message("D", [0, 1, 0, 0, 0, 3] + Array("off".utf8))
                    + message("C", Array("SELECT 1\u{0}".utf8)) + ready,
                to: connection)
        }
    }

    private static let ready = message("Z", Array("I".utf8))
    /// One column of texts, by the name `x`.
    private static let column: [UInt8] =
        [0, 1] + Array("x\u{0}".utf8) + [0, 0, 0, 0, 0, 0, 0, 0, 0, 25]
        + [255, 255, 255, 255, 255, 255, 0, 0]

    private static func message(_ kind: Character, _ body: [UInt8]) -> [UInt8] {
        let length = UInt32(body.count + 4)
        return [kind.asciiValue ?? 0]
            + [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: length >> UInt32($0)) } + body
    }

    private static func receives(from connection: Int32) -> Bool {
        var bytes = [UInt8](repeating: 0, count: 4096)
        return recv(connection, &bytes, bytes.count, 0) > 0
    }

    private static func write(_ bytes: [UInt8], to connection: Int32) {
        _ = bytes.withUnsafeBytes {
            send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
    }
}
