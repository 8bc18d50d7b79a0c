package import RelayModel

/// An answer by which the gateway did not accept a notification, and what follows from it.
package struct GatewayRefusal: Sendable, Hashable {
    /// The HTTP status, or 0 if the gateway was not asked.
    package var status: Int
    /// The gateway's reason (APNs: the `reason` of the body), or what could be read of a body that
    /// is not the gateway's own.
    ///
    /// Empty if there was none.
    package var reason: String
    /// The time when the device token died (410 only).
    package var timestamp: Timestamp?
    /// How long the gateway asks to be left alone.
    package var retryAfter: Duration?
    /// The reaction to the refusal.
    package var reaction: GatewayReaction
    /// The wait of a container that pauses because of the refusal until a delivery is tried, if it
    /// differs from the usual one.
    package var trialAfter: Duration?
    /// Whether a person should be told.
    package var urgency: RefusalUrgency
    /// The meaning of the refusal in one sentence, for a human reader.
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
    /// The reason for a credential that is missing or cannot be used.
    package static let unusableCredential = "no usable credential"

    /// Creates the refusal of a request for which there is no usable credential.
    ///
    /// Nothing was sent, so there is no answer of a gateway, and the status is 0. The container's
    /// deliveries wait until it has a usable credential.
    package static func withoutCredential(_ explanation: String) -> GatewayRefusal {
        GatewayRefusal(
            status: 0, reason: unusableCredential, reaction: .pauseContainer, urgency: .alarm,
            explanation: explanation)
    }
}

/// Whether a refusal is routine or needs a person.
package enum RefusalUrgency: String, Sendable, Hashable, CaseIterable {
    /// The refusal is only counted.
    case routine
    /// The refusal needs a person: wrong settings, wrong credentials, or a fault of the relay.
    case alarm
}
