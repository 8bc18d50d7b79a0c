import Gateway
package import RelayModel

/// What the push gateway said to one container since the start.
package struct GatewayAnswers: Sendable, Hashable {
    /// What an end of an attempt says about the container.
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        /// The gateway took a push.
        case accepted
        /// It refused a push for its own or its device's sake: the container can send.
        case refused
        /// It refused the container, or there was no answer.
        case failed
    }

    /// One end of an attempt.
    package struct Answer: Sendable, Hashable {
        /// When it came.
        package var at: Timestamp
        /// What it says.
        package let kind: Kind
        /// Which of the gateways it came from.
        package let environment: GatewayEnvironment
        /// The status of HTTP; 0 if there was none.
        package let status: Int
        /// The gateway's word, or why there was no answer.
        package let reason: String
        /// What it means, for people; empty if the reason says it.
        package let meaning: String
    }

    /// How many ends of attempts were of each kind.
    package private(set) var counts: [Kind: UInt64] = [:]
    /// The last one.
    package private(set) var last: Answer?
    /// When a push was taken the last time.
    package private(set) var lastAccepted: Timestamp?

    /// Creates what is known before the first push: nothing.
    package init() {}

    /// Notes an end of an attempt.
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

/// What the push gateway said to whom: for whoever asks whether a container can send, which a
/// credential alone does not say.
///
/// It is in memory, an entry for each container; after a start nothing is known before the first
/// push.
struct ContainerAnswers: Sendable {
    private(set) var answers: [ContainerKey: GatewayAnswers] = [:]

    /// Notes the end of an attempt; devices that fetch have no gateway to speak of.
    mutating func note(_ outcome: PushOutcome, of delivery: Delivery, at now: Timestamp) {
        guard delivery.gateway == .apns else { return }
        answers[delivery.container, default: GatewayAnswers()].note(
            GatewayAnswers.Answer(outcome, from: delivery.gatewayEnvironment, at: now))
    }

    /// The clock goes `step` later than it did.
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
            // Never text of a body that is not the gateway's own, which may repeat a device token.
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
    /// Whether the answer is about all that the container sends, and not about one push or device.
    var concernsContainer: Bool {
        switch self {
        case .deliver, .forgetDeviceToken, .deadLetter: false
        case .retry(_, let scope): scope == .gateway
        case .retryOnFreshConnection, .renewProviderToken, .pauseTopic, .pauseContainer: true
        }
    }
}
