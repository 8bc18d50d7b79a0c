/// One message of the replication stream, around those of the output plugin (PostgreSQL's
/// documentation, "Streaming Replication Protocol").
package enum StreamMessage: Sendable, Hashable {
    /// A message of the log; `bytes` has it from ``StreamMessage/dataStart`` on. What it tells
    /// begins at `place`, and what `pg_logical_emit_message` wrote ends there.
    case data(at: PostgresPosition)
    /// A sign of life: all that the server has up to `end` was sent.
    case keepalive(end: PostgresPosition, wantsAnswer: Bool)

    /// Where the log's message begins in one of the stream's.
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

    /// What the follower says of itself: everything up to `confirmed` is durably elsewhere.
    ///
    /// The moment in it is of no use to the server but for its statistics, and is left out.
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
