import Foundation
import RelayTestKit

/// A server that claims to be PostgreSQL on a loopback port.
///
/// It lets every client in, and answers every query with the same bytes.
final class OddServer: Sendable {
    private let listener: LoopbackPort
    var port: Int { listener.number }

    /// Starts the server on a free port.
    ///
    /// - Parameters:
    ///   - answer: The answer to each query.
    ///   - hasNoEnd: Whether the server repeats the answer endlessly.
    /// - Throws: ``LoopbackPort/NoneFree``.
    init(_ answer: [UInt8], hasNoEnd: Bool = false) throws {
        listener = try LoopbackPort { OddServer.serve($0, answer, hasNoEnd) }
    }

    /// Returns a message of PostgreSQL's protocol.
    static func message(_ kind: Character, _ body: [UInt8] = []) -> [UInt8] {
        [kind.asciiValue ?? 0] + number(UInt32(body.count + 4)) + body
    }

    /// Returns a number as four bytes in network order.
    static func number(_ value: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> UInt32($0)) }
    }

    /// The message that a statement is complete.
    static let done = message("C", Array("SET\u{0}".utf8))
    /// The message that the server is ready for the next query.
    static let ready = message("Z", Array("I".utf8))

    private static func serve(_ connection: Int32, _ answer: [UInt8], _ hasNoEnd: Bool) {
        guard let start = read(4, from: connection),
            read(length(start) - 4, from: connection) != nil,
            write(message("R", number(0)) + ready, to: connection)
        else { return }
        while let kind = read(1, from: connection), kind != Array("X".utf8),
            let count = read(4, from: connection),
            read(length(count) - 4, from: connection) != nil
        {
            // Answers a simple query, or the `Sync` that ends an extended one.
            guard kind == Array("Q".utf8) || kind == Array("S".utf8) else { continue }
            repeat {
                guard write(answer, to: connection) else { return }
            } while hasNoEnd
        }
    }

    private static func length(_ bytes: [UInt8]) -> Int {
        bytes.reduce(0) { $0 << 8 | Int($1) }
    }

    private static func read(_ count: Int, from connection: Int32) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: max(count, 0))
        guard count > 0 else { return bytes }
        return recv(connection, &bytes, count, Int32(MSG_WAITALL)) == count ? bytes : nil
    }

    private static func write(_ bytes: [UInt8], to connection: Int32) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let sent = rest.withUnsafeBytes {
                send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard sent > 0 else { return false }
            rest = rest.dropFirst(sent)
        }
        return true
    }
}
