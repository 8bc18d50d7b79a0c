import Gateway
package import RelayModel

/// Keeps a wrong host or topic from killing device tokens.
///
/// A gateway answers a token of its other environment exactly as a dead one (APNs:
/// `BadDeviceToken`). So no token is forgotten for such an answer before anything was accepted for
/// the same topic and environment: until then host and topic are not known to be right. After that
/// the tokens are dead while such answers are few; once they are many, the settings are wrong, and
/// the topic must wait for somebody to look.
package struct TokenVerdictBreaker: Sendable {
    private struct Counts {
        var answers = 0
        var unknown = 0
        var isProven = false
    }

    private struct Key: Hashable {
        let container: ContainerKey
        let topic: String
        let environment: GatewayEnvironment
    }

    /// What an answer that a token is unknown is worth.
    package enum Verdict: Sendable, Hashable {
        /// The token is dead.
        case token
        /// Nobody knows yet whether host and topic are right: the delivery ends, the token stays.
        case unproven
        /// There are too many: the topic waits.
        case settings
    }

    /// Unknown tokens that count before their share means anything.
    package static let leastUnknown = 50
    /// Up to which share they are tokens, in percent: beyond it the settings are wrong.
    package static let tolerablePercent = 5

    private var counts: [Key: Counts] = [:]

    /// Creates a breaker that has seen nothing.
    package init() {}

    /// Forgets what was counted for a container, after its settings were mended.
    package mutating func reset(_ container: ContainerKey) {
        counts = counts.filter { $0.key.container != container }
    }

    /// Counts a push that was accepted.
    package mutating func noteAcceptance(
        for container: ContainerKey, topic: String, by environment: GatewayEnvironment
    ) {
        let key = Key(container: container, topic: topic, environment: environment)
        counts[key, default: Counts()].isProven = true
        counts[key]?.answers += 1
        fade(key)
    }

    /// Counts an answer that a token is unknown, and says what it is worth.
    package mutating func judgeUnknownToken(
        for container: ContainerKey, topic: String, by environment: GatewayEnvironment
    ) -> Verdict {
        let key = Key(container: container, topic: topic, environment: environment)
        var count = counts[key] ?? Counts()
        count.answers += 1
        count.unknown += 1
        counts[key] = count
        fade(key)
        guard
            count.unknown < Self.leastUnknown
                || count.unknown * 100 <= count.answers * Self.tolerablePercent
        else { return .settings }
        return count.isProven ? .token : .unproven
    }

    /// The past fades, so that a share is that of the last two thousand answers or so: enough for
    /// ``leastUnknown`` to be reached by a share that is not tolerable.
    private mutating func fade(_ key: Key) {
        guard let count = counts[key], count.answers >= 2000 else { return }
        counts[key]?.answers /= 2
        counts[key]?.unknown /= 2
    }
}

extension TokenVerdictBreaker {
    /// Turns a verdict on a token into a dead letter alone, or into a pause of its topic, if the
    /// token may not be to blame.
    mutating func weigh(_ outcome: PushOutcome, of delivery: Delivery) -> PushOutcome {
        guard delivery.gateway == .apns else { return outcome }
        let topic = delivery.notification.topic
        let environment = delivery.gatewayEnvironment
        switch outcome {
        case .accepted:
            noteAcceptance(for: delivery.container, topic: topic, by: environment)
            return outcome
        case .refused(var refusal):
            guard case .forgetDeviceToken(.unknownToGateway) = refusal.reaction else {
                return outcome
            }
            switch judgeUnknownToken(for: delivery.container, topic: topic, by: environment) {
            case .token: return outcome
            case .unproven: refusal.reaction = .deadLetter
            case .settings:
                refusal.reaction = .pauseTopic
                refusal.urgency = .alarm
                refusal.explanation = "too many unknown tokens: the environment or topic is wrong"
            }
            return .refused(refusal)
        case .unknown, .notSent:
            return outcome
        }
    }
}
