import RelayModel

/// Whether a connection may be used after an answer.
package enum ConnectionVerdict: String, Sendable, Hashable, CaseIterable {
    /// The connection takes further requests.
    case keep
    /// The connection finishes its open requests and takes no new ones.
    case retire
}

/// One possible answer of a gateway, and what follows from it.
package struct ReasonRow: Sendable, Hashable {
    /// The HTTP status.
    package let status: Int
    /// The gateway's reason.
    package let reason: String
    /// The meaning in one sentence, for a human reader.
    package let meaning: String
    /// The reaction.
    package let reaction: GatewayReaction
    /// The reaction if the same answer comes again after ``reaction``, if it differs.
    package let whenRepeated: GatewayReaction?
    /// What happens to the connection of the answer.
    package let connection: ConnectionVerdict
    /// Whether a person should be told.
    package let urgency: RefusalUrgency

    init(
        _ status: Int, _ reason: String, _ meaning: String, _ reaction: GatewayReaction,
        whenRepeated: GatewayReaction? = nil, _ connection: ConnectionVerdict = .keep,
        _ urgency: RefusalUrgency = .routine
    ) {
        self.status = status
        self.reason = reason
        self.meaning = meaning
        self.reaction = reaction
        self.whenRepeated = whenRepeated
        self.connection = connection
        self.urgency = urgency
    }
}

/// All answers of a gateway besides "accepted", as data.
///
/// Each kind of gateway has one table. The code around it does not know the reasons.
package struct ReasonTable: Sendable {
    /// The rows, by status and reason.
    package let rows: [ReasonRow]
    /// Returns the row for an answer that is not in the table.
    package let fallback: @Sendable (_ status: Int) -> ReasonRow
    private let places: [Answer: Int]

    private struct Answer: Hashable {
        var status: Int
        var reason: String
    }

    init(rows: [ReasonRow], fallback: @escaping @Sendable (Int) -> ReasonRow) {
        self.rows = rows
        self.fallback = fallback
        places = Dictionary(
            uniqueKeysWithValues: rows.enumerated().map {
                (Answer(status: $1.status, reason: $1.reason), $0)
            })
    }

    /// Returns the row for an answer, or the fallback for its status.
    package func row(status: Int, reason: String) -> ReasonRow {
        places[Answer(status: status, reason: reason)].map { rows[$0] } ?? fallback(status)
    }
}

extension GatewayReaction {
    /// Returns this reaction with the times that the answer itself contains.
    func informed(timestamp: Timestamp?, retryAfter: Duration?) -> GatewayReaction {
        switch self {
        case .retry(_, let scope): .retry(after: retryAfter, scope: scope)
        case .forgetDeviceToken(.dead): .forgetDeviceToken(.dead(since: timestamp))
        case .deliver, .retryOnFreshConnection, .renewProviderToken,
            .forgetDeviceToken(.unknownToGateway), .deadLetter, .pauseTopic, .pauseContainer:
            self
        }
    }
}
