extension ReasonTable {
    /// The table in Markdown, as the documentation prints it.
    package var markdown: String {
        let header = [
            "| status | reason | meaning | reaction | connection | alarm |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        let lines = rows.sorted { ($0.status, $0.reason) < ($1.status, $1.reason) }.map { row in
            let reaction =
                [row.reaction.words] + (row.whenRepeated.map { ["again: \($0.words)"] } ?? [])
            return "| \(row.status) | \(row.reason) | \(row.meaning) | "
                + "\(reaction.joined(separator: "; ")) | \(row.connection.rawValue) | "
                + "\(row.urgency == .alarm ? "yes" : "no") |"
        }
        return (header + lines).joined(separator: "\n")
    }
}

extension GatewayReaction {
    /// The reaction in words, for tables.
    package var words: String {
        switch self {
        case .deliver: "delivered"
        case .retry(_, .delivery): "retry with back-off"
        case .retry(_, .device): "retry, the device waits"
        case .retry(_, .gateway): "retry, everything for the gateway waits"
        case .retryOnFreshConnection: "retry on a fresh connection"
        case .renewProviderToken: "retry with a new provider token"
        case .forgetDeviceToken(.dead):
            "forget the device token, unless it was registered after the timestamp"
        case .forgetDeviceToken(.unknownToGateway):
            "forget the device token; if it is many of a topic's, pause the topic instead"
        case .deadLetter: "dead letter"
        case .pauseTopic: "pause the topic"
        case .pauseContainer: "pause the container"
        }
    }
}
