package import RelayModel

/// What the gateway said when it did not accept a notification, and what follows from it.
package struct GatewayRefusal: Sendable, Hashable {
    /// The HTTP status; 0 if the gateway was not asked.
    package var status: Int
    /// The gateway's word for it (APNs: the `reason` of the body), or what could be read of a body
    /// that is not the gateway's own; empty if there was none.
    package var reason: String
    /// When the device token died (410 only).
    package var timestamp: Timestamp?
    /// How long the gateway asks to be left alone.
    package var retryAfter: Duration?
    /// What is to be done about it.
    package var reaction: GatewayReaction
    /// How long a container that pauses for it waits before one delivery tries, where that is
    /// another time than the usual one.
    package var trialAfter: Duration?
    /// Whether somebody should be told.
    package var urgency: RefusalUrgency
    /// One sentence for people: what the refusal means.
    package var explanation: String

    package init(
        status: Int, reason: String, timestamp: Timestamp? = nil, retryAfter: Duration? = nil,
        reaction: GatewayReaction, trialAfter: Duration? = nil,
        urgency: RefusalUrgency = .routine, explanation: String = ""
    ) {
        self.status = status
        self.reason = reason
        self.timestamp = timestamp
        self.retryAfter = retryAfter
        self.reaction = reaction
        self.trialAfter = trialAfter
        self.urgency = urgency
        self.explanation = explanation
    }
}

extension GatewayRefusal {
    /// The word for a credential that is missing or cannot be used.
    package static let unusableCredential = "no usable credential"

    /// What a request comes to without a credential that can be used.
    ///
    /// Nothing was sent, and no gateway said so: the status is 0. The container's deliveries wait
    /// until somebody gives it one.
    package static func withoutCredential(_ explanation: String) -> GatewayRefusal {
        GatewayRefusal(
            status: 0, reason: unusableCredential, reaction: .pauseContainer, urgency: .alarm,
            explanation: explanation)
    }
}

/// Whether a refusal is part of daily life or something that somebody must look at.
package enum RefusalUrgency: String, Sendable, Hashable, CaseIterable {
    /// It is counted.
    case routine
    /// It needs a person: wrong settings, wrong credentials, or a fault of the relay.
    case alarm
}
