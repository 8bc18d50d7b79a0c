import Gateway
package import RelayModel

/// What the gateway said to one attempt, or why none was made, and what became of its delivery.
package struct AnsweredAttempt: Sendable {
    /// The delivery.
    package let delivery: Delivery
    /// Which attempt it was, from 1; of a delivery that was not handed to the gateway, how many
    /// there were before.
    package let attempt: UInt16
    /// How it ended.
    package let outcome: AttemptEnd
    /// The status of HTTP; 0 if there was none.
    package let status: Int
    /// The gateway's word, or why there was no answer; never text that may repeat a token.
    package let reason: String
    /// What it means, for people; empty if the reason says it.
    package let meaning: String
    /// What became of the delivery.
    package let ending: SettledEnding
    /// When it is tried again, if it is.
    package let dueAt: Timestamp?
    /// The time from the hand-over to a connection to the answer; zero if it never got there.
    package let latency: Duration
    /// When the answer was judged.
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

    /// A delivery was not handed to the gateway.
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

/// Who watches attempts being answered, and what is not sent.
///
/// It is told on the gateway's thread or the worker's, and puts aside what it is told at once.
package struct AnswerWatch: Sendable {
    /// Whether anybody wants to know; it is asked once for each batch of answers.
    package let isOn: @Sendable () -> Bool
    /// Is told of answers.
    package let tell: @Sendable ([AnsweredAttempt]) -> Void

    package init(
        isOn: @escaping @Sendable () -> Bool, tell: @escaping @Sendable ([AnsweredAttempt]) -> Void
    ) {
        self.isOn = isOn
        self.tell = tell
    }
}
