import Gateway
package import RelayModel

/// The gateway's answer to one attempt, or why there was no attempt, and what happened to its
/// delivery.
package struct AnsweredAttempt: Sendable {
    /// The delivery.
    package let delivery: Delivery
    /// The number of the attempt, from 1.
    ///
    /// If the delivery was not handed to the gateway, the number of earlier attempts.
    package let attempt: UInt16
    /// How the attempt ended.
    package let outcome: AttemptEnd
    /// The HTTP status, or 0 if there was none.
    package let status: Int
    /// The gateway's reason, or why there was no answer.
    ///
    /// Never text that may repeat a token.
    package let reason: String
    /// The meaning of the reason for a human reader.
    ///
    /// Empty if the reason says it.
    package let meaning: String
    /// What happened to the delivery.
    package let ending: SettledEnding
    /// The time of the next attempt, if there is one.
    package let dueAt: Timestamp?
    /// The time from the hand-over to a connection to the answer.
    ///
    /// Zero if the request never got to one.
    package let latency: Duration
    /// The time when the answer was judged.
    package let at: Timestamp

    init(
        _ outcome: PushOutcome, _ resolution: Resolution, of delivery: Delivery, attempts: UInt16,
        latency: Duration, at now: Timestamp
    ) {
        let answer = GatewayAnswers.Answer(outcome, from: delivery.gatewayEnvironment, at: now)
        self.delivery = delivery
        attempt = attempts < .max ? attempts + 1 : .max
        self.outcome = AttemptEnd(outcome)
        status = answer.status
        reason = answer.reason
        meaning = answer.meaning
        ending = resolution.ending
        dueAt = resolution.dueAt
        self.latency = latency
        at = now
    }

    /// Creates the value of a delivery that was not handed to the gateway.
    init(unsent resolution: Resolution, of delivery: Delivery, at now: Timestamp) {
        self.delivery = delivery
        attempt = resolution.attempt
        outcome = .notSent
        status = 0
        reason = resolution.reason
        meaning = ""
        ending = resolution.ending
        dueAt = resolution.dueAt
        latency = .zero
        at = now
    }
}

/// An observer of answered attempts, and of deliveries that are not sent.
///
/// It is called on the gateway's thread or the worker's, and must return at once.
package struct AnswerWatch: Sendable {
    /// Returns whether answers are observed.
    ///
    /// It is called once for each batch of answers.
    package let isOn: @Sendable () -> Bool
    /// Receives answers.
    package let tell: @Sendable ([AnsweredAttempt]) -> Void

    package init(
        isOn: @escaping @Sendable () -> Bool, tell: @escaping @Sendable ([AnsweredAttempt]) -> Void
    ) {
        self.isOn = isOn
        self.tell = tell
    }
}
