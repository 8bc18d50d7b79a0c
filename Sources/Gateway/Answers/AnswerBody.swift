import RelayModel

/// The body of an answer, as far as it can be read (APNs: `{"reason": "…", "timestamp":
/// 1700000000000}`).
///
/// The body may be truncated or come from a proxy, so nothing about it is trusted.
struct AnswerBody: Sendable, Hashable {
    /// The gateway's reason, or the beginning of a body that is something else.
    var reason: String
    /// The time when the device token died.
    var timestamp: Timestamp?

    /// The number of bytes of a foreign body that are kept for a human reader.
    static let excerptBytes = 200

    /// Parses the bytes of a body.
    init(reading bytes: [UInt8]) {
        guard let value = try? JSONValue(parsing: bytes), let reader = try? JSONReader(value),
            let reason = try? reader.string("reason")
        else {
            self.reason = Self.printable(bytes.prefix(Self.excerptBytes))
            timestamp = nil
            return
        }
        let milliseconds = try? reader.integer("timestamp")
        self.reason = Self.printable(reason.utf8.prefix(Self.excerptBytes))
        timestamp = milliseconds.map { Timestamp(milliseconds: $0) }
    }

    /// Returns `bytes` as ASCII, with a dot for every byte that could disturb a log or a terminal.
    private static func printable(_ bytes: some Sequence<UInt8>) -> String {
        String(decoding: bytes.map { (0x20..<0x7F).contains($0) ? $0 : 0x2E }, as: UTF8.self)
    }
}
