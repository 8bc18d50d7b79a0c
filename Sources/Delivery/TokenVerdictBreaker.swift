import Gateway
package import RelayModel

/// Keeps a wrong host or topic from killing every device token.
///
/// A gateway answers a token of its other environment exactly as a dead one (APNs:
/// `BadDeviceToken`). While such answers are few, the tokens are dead; once they are many for one
/// topic, the settings are wrong, and the topic must wait for somebody to look.
package struct TokenVerdictBreaker: Sendable {
    private struct Counts {
        var answers = 0
        var unknown = 0
    }

    private struct Key: Hashable {
        let container: ContainerKey
        let topic: String
    }

    /// Answers that count before a share means anything.
    package static let leastAnswers = 50
    /// From which share on the settings are held to be wrong, in percent.
    package static let tolerablePercent = 20

    private var counts: [Key: Counts] = [:]

    /// Creates a breaker that has seen nothing.
    package init() {}

    /// Forgets what was counted for a container, after its settings were mended.
    package mutating func reset(_ container: ContainerKey) {
        counts = counts.filter { $0.key.container != container }
    }

    /// Counts an answer about a token, and says whether tokens of this topic may be forgotten.
    package mutating func mayForget(
        isUnknownToGateway: Bool, container: ContainerKey, topic: String
    ) -> Bool {
        let key = Key(container: container, topic: topic)
        var count = counts[key] ?? Counts()
        count.answers += 1
        if isUnknownToGateway { count.unknown += 1 }
        let isTolerable =
            count.unknown < Self.leastAnswers
            || count.unknown * 100 <= count.answers * Self.tolerablePercent
        // The past fades, so that a share is that of the last thousand answers or so.
        if count.answers >= 1000 {
            count.answers /= 2
            count.unknown /= 2
        }
        counts[key] = count
        return isTolerable
    }
}

extension TokenVerdictBreaker {
    /// Turns a verdict on a token into a pause of its topic, if such verdicts are too many.
    mutating func weigh(_ outcome: PushOutcome, of delivery: Delivery) -> PushOutcome {
        guard case .refused(var refusal) = outcome,
            case .forgetDeviceToken(.unknownToGateway) = refusal.reaction
        else {
            if case .accepted = outcome, delivery.gateway == .apns {
                _ = mayForget(
                    isUnknownToGateway: false, container: delivery.container,
                    topic: delivery.notification.topic)
            }
            return outcome
        }
        let mayForget = mayForget(
            isUnknownToGateway: true, container: delivery.container,
            topic: delivery.notification.topic)
        if !mayForget { refusal.reaction = .pauseTopic }
        return .refused(refusal)
    }
}
