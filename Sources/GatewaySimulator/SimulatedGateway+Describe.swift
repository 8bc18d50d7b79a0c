#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension SimulatedGateway {
    /// Returns a readable description of a push: its answer, its headers, and its payload with one
    /// member a line.
    ///
    /// The signature of the provider token is left out, so that the text cannot be used to push.
    /// The device token is shown, because the reader wants to know which device got the push.
    public static func describe(_ push: ReceivedPush) -> String {
        var lines = [
            "push \(push.number) on connection \(push.connection), stream \(push.stream): "
                + describe(push.answer)
        ]
        if let explanation = push.explanation { lines.append("  because: \(explanation)") }
        lines.append(contentsOf: push.headers.map { "  \($0.name): \(shown($0))" })
        if push.headers["apns-id"] != push.apnsID {
            lines.append("  (answered with apns-id: \(push.apnsID))")
        }
        let payload =
            JSONText.pretty(push.payload) ?? String(decoding: push.payload, as: UTF8.self)
        for line in payload.split(separator: "\n") { lines.append("  \(printable(line))") }
        return lines.joined(separator: "\n")
    }

    /// Returns an answer in a few words.
    public static func describe(_ answer: GatewayAnswer) -> String {
        switch answer {
        case .accept: "200, accepted"
        case .acceptLimitingStreams(let limit): "200, accepted; stream limit now \(limit)"
        case .refuse(let refusal): "\(refusal.status) \(printable(refusal.reason))"
        case .raw(let status, _, let body): "\(status) with a body of \(body.utf8.count) bytes"
        case .silence: "never answered"
        case .resetStream(let reset): "stream reset (\(reset.rawValue))"
        case .goAway(let goAway):
            "GOAWAY (\(goAway.errorCode.rawValue), last stream: \(goAway.lastStream.rawValue), "
                + "then: \(goAway.ending.rawValue))"
        case .closeConnection(let end): "connection closed (\(end.rawValue))"
        case .freezeConnection: "connection frozen"
        }
    }

    private static func shown(_ header: HeaderField) -> String {
        guard header.name == "authorization", let dot = header.value.lastIndex(of: ".") else {
            return printable(header.value)
        }
        return printable(header.value[...dot]) + "…"
    }

    /// Replaces control characters in `text`, which a terminal would interpret.
    private static func printable(_ text: some StringProtocol) -> String {
        var printable = ""
        for scalar in text.unicodeScalars {
            let isControl = scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value)
            printable.unicodeScalars.append(isControl ? "\u{FFFD}" : scalar)
        }
        return printable
    }
}
