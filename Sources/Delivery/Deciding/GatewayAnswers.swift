import Gateway
package import RelayModel

/// The gateway's answers to one container since the start.
package struct GatewayAnswers: Sendable, Hashable {
    /// What the end of an attempt says about the container.
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        /// The gateway accepted a push.
        case accepted
        /// The gateway refused a push because of the push or its device.
        ///
        /// The container can send.
        case refused
        /// The gateway refused the container, or there was no answer.
        case failed
    }

    /// The end of one attempt.
    package struct Answer: Sendable, Hashable {
        /// The time of the answer.
        package var at: Timestamp
        /// What it says about the container.
        package let kind: Kind
        /// The gateway environment that it came from.
        package let environment: GatewayEnvironment
        /// The HTTP status, or 0 if there was none.
        package let status: Int
        /// The gateway's reason, or why there was no answer.
        package let reason: String
        /// The meaning of the reason for a human reader.
        ///
        /// Empty if the reason says it.
        package let meaning: String
    }

    /// The number of ends of attempts of each kind.
    package private(set) var counts: [Kind: UInt64] = [:]
    /// The last end of an attempt.
    package private(set) var last: Answer?
    /// The time when a push was last accepted.
    package private(set) var lastAccepted: Timestamp?

    /// Creates an empty value, as before the first push.
    package init() {}

    /// Adds the end of an attempt.
    mutating func note(_ answer: Answer) {
        counts[answer.kind, default: 0] += 1
        last = answer
        if answer.kind == .accepted { lastAccepted = answer.at }
    }

    mutating func clockWasSetBack(by step: Duration) {
        if let at = last?.at { last?.at = at.advanced(by: .zero - step) }
        lastAccepted = lastAccepted?.advanced(by: .zero - step)
    }
}

/// The gateway's answers to each container.
///
/// They show whether a container can send, which the presence of a credential does not.
///
/// They are in memory, with one entry for each container. After a start nothing is known before the
/// first push.
struct ContainerAnswers: Sendable {
    private(set) var answers: [ContainerKey: GatewayAnswers] = [:]

    /// Notes the end of an attempt.
    ///
    /// Devices that fetch have no such gateway.
    mutating func note(_ outcome: PushOutcome, of delivery: Delivery, at now: Timestamp) {
        guard delivery.gateway == .apns else { return }
        answers[delivery.container, default: GatewayAnswers()].note(
            GatewayAnswers.Answer(outcome, from: delivery.gatewayEnvironment, at: now))
    }

    /// Moves all times back by `step`, by which the clock was set back.
    mutating func clockWasSetBack(by step: Duration) {
        for container in answers.keys { answers[container]?.clockWasSetBack(by: step) }
    }
}

extension GatewayAnswers.Answer {
    init(_ outcome: PushOutcome, from environment: GatewayEnvironment, at now: Timestamp) {
        self.at = now
        self.environment = environment
        switch outcome {
        case .accepted:
            kind = .accepted
            status = 200
            reason = "accepted"
            meaning = ""
        case .refused(let refusal):
            kind = refusal.reaction.concernsContainer ? .failed : .refused
            status = refusal.status
            // Never text of a body that is not the gateway's own, because that may repeat a device
            // token.
            reason = DeliveryMeter.Answer(refusal).reason
            meaning = refusal.explanation
        case .unknown(let cause), .notSent(let cause):
            kind = .failed
            status = 0
            reason = cause.reason
            meaning = ""
        }
    }
}

extension GatewayReaction {
    /// Whether the answer is about everything that the container sends, and not about one push or
    /// device.
    var concernsContainer: Bool {
        switch self {
        case .deliver, .forgetDeviceToken, .deadLetter: false
        case .retry(_, let scope): scope == .gateway
        case .retryOnFreshConnection, .renewProviderToken, .pauseTopic, .pauseContainer: true
        }
    }
}
