/// One message of the replication stream, which may contain one of the output plugin.
///
/// See PostgreSQL's documentation, "Streaming Replication Protocol".
package enum StreamMessage: Sendable, Hashable {
    /// A message of the log, in `bytes` from ``StreamMessage/dataStart`` on.
    ///
    /// A change begins at the position; a message of `pg_logical_emit_message` ends there.
    case data(at: PostgresPosition)
    /// A keepalive: everything that the server has up to `end` was sent.
    case keepalive(end: PostgresPosition, wantsAnswer: Bool)

    /// The offset at which the message of the log begins.
    static let dataStart = 25

    package init(_ bytes: [UInt8]) throws(MalformedMessage) {
        var scanner = MessageScanner(bytes)
        switch try scanner.byte() {
        case UInt8(ascii: "w"):
            guard bytes.count > Self.dataStart else { throw MalformedMessage("ends too early") }
            self = .data(at: try scanner.position())
        case UInt8(ascii: "k"):
            let end = try scanner.position()
            _ = try scanner.int64()
            self = .keepalive(end: end, wantsAnswer: try scanner.byte() == 1)
        case let kind: throw MalformedMessage("is of the unknown kind \(kind)")
        }
    }

    /// Encodes the follower's status: everything up to `confirmed` is durable elsewhere.
    ///
    /// The time in it is left out, because the server uses it only for statistics.
    package static func status(
        confirmed: PostgresPosition, wantsAnswer: Bool = false
    ) -> [UInt8] {
        var bytes: [UInt8] = [UInt8(ascii: "r")]
        for number in [confirmed.rawValue, confirmed.rawValue, confirmed.rawValue, 0] {
            for shift in stride(from: 56, through: 0, by: -8) {
                bytes.append(UInt8(truncatingIfNeeded: number >> UInt64(shift)))
            }
        }
        bytes.append(wantsAnswer ? 1 : 0)
        return bytes
    }
}
