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
            self.reason = Self.printable(bytes)
            timestamp = nil
            return
        }
        let milliseconds = try? reader.integer("timestamp")
        self.reason = Self.printable(reason.utf8)
        timestamp = milliseconds.map { Timestamp(milliseconds: $0) }
    }

    /// The length from which a word that has a digit may be a device token or a part of a provider
    /// token.
    private static let tokenLength = 32

    /// Returns the beginning of `bytes` as ASCII, with a dot for every byte that could disturb a
    /// log or a terminal.
    ///
    /// The error page of a proxy may repeat the request. Words that may be tokens become `***`,
    /// because the text goes to the log.
    private static func printable(_ bytes: some Sequence<UInt8>) -> String {
        let text = bytes.map { (0x20..<0x7F).contains($0) ? $0 : 0x2E }
        var shown: [UInt8] = []
        var rest = text[...]
        while shown.count < excerptBytes, let first = rest.first {
            let word = rest.prefix(while: isOfToken)
            let mayBeToken = word.count >= tokenLength && word.contains { isDigit($0) }
            if word.isEmpty {
                shown.append(first)
                rest = rest.dropFirst()
            } else {
                shown += mayBeToken ? Array("***".utf8) : Array(word)
                rest = rest[word.endIndex...]
            }
        }
        return String(decoding: shown.prefix(excerptBytes), as: UTF8.self)
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }

    /// Whether `byte` may stand in hexadecimal digits, or in Base64 for URLs.
    private static func isOfToken(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "+"), UInt8(ascii: "="):
            true
        default: isDigit(byte)
        }
    }
}
