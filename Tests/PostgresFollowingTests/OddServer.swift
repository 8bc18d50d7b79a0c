import Foundation
import RelayTestKit

/// What calls itself PostgreSQL on a port of the loopback interface: it lets everybody in, and
/// answers whatever it is asked with the same bytes.
final class OddServer: Sendable {
    private let listener: LoopbackPort
    var port: Int { listener.number }

    /// - Parameters:
    ///   - answer: what each question is answered with.
    ///   - hasNoEnd: whether it says that again and again.
    /// - Throws: ``LoopbackPort/NoneFree``.
    init(_ answer: [UInt8], hasNoEnd: Bool = false) throws {
        listener = try LoopbackPort { OddServer.serve($0, answer, hasNoEnd) }
    }

    /// A message of the protocol.
    static func message(_ kind: Character, _ body: [UInt8] = []) -> [UInt8] {
        [kind.asciiValue ?? 0] + number(UInt32(body.count + 4)) + body
    }

    /// A number of four bytes.
    static func number(_ value: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> UInt32($0)) }
    }

    /// That a statement is done.
    static let done = message("C", Array("SET\u{0}".utf8))
    /// That the next statement may come.
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
            // Of a statement with parameters, the last message is the one that asks.
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
