import RelayModel

/// Whether a connection may be used after an answer.
package enum ConnectionVerdict: String, Sendable, Hashable, CaseIterable {
    /// It takes further requests.
    case keep
    /// It finishes what is open and takes nothing new.
    case retire
}

/// One answer that a gateway can give, and what follows from it.
package struct ReasonRow: Sendable, Hashable {
    /// The HTTP status.
    package let status: Int
    /// The gateway's word for it.
    package let reason: String
    /// One sentence for people.
    package let meaning: String
    /// What is to be done.
    package let reaction: GatewayReaction
    /// What is to be done if the same answer comes again after ``reaction``, where that differs.
    package let whenRepeated: GatewayReaction?
    /// What becomes of the connection that it came on.
    package let connection: ConnectionVerdict
    /// Whether somebody should be told.
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

/// Everything that a gateway can answer besides "accepted", as data.
///
/// One kind of gateway has one table; the machinery around it does not know the words.
package struct ReasonTable: Sendable {
    /// The rows, by status and reason.
    package let rows: [ReasonRow]
    /// What an answer means that no row names.
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

    /// The row for an answer, or the fallback of its status.
    package func row(status: Int, reason: String) -> ReasonRow {
        places[Answer(status: status, reason: reason)].map { rows[$0] } ?? fallback(status)
    }
}

extension GatewayReaction {
    /// This reaction with what the answer itself says about time.
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
