import Gateway
package import RelayModel

/// Keeps a wrong host or topic from killing device tokens.
///
/// A gateway answers a token of its other environment exactly as a dead one (APNs:
/// `BadDeviceToken`). While such answers are few, the tokens are dead; once they are many for one
/// topic and environment, the settings are wrong, and the topic must wait for somebody to look. Few
/// is less where nothing was accepted yet: then host and topic are not known to be right.
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
        /// There are too many: the topic waits.
        case settings
    }

    /// Unknown tokens that count before their share means anything.
    package static let leastUnknown = 50
    /// As many are too many where nothing was accepted yet.
    package static let leastUnproven = 10
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
        let isFew = count.unknown < (count.isProven ? Self.leastUnknown : Self.leastUnproven)
        let isTolerable = count.unknown * 100 <= count.answers * Self.tolerablePercent
        return isFew || isTolerable ? .token : .settings
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
    /// Turns a verdict on a token into a pause of its topic, if such verdicts are too many.
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
