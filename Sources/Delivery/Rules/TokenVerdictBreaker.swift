import Gateway
package import RelayModel

/// Keeps a wrong host or topic from killing device tokens, and keeps users from halting a topic
/// with made-up tokens.
///
/// A gateway answers a token of its other environment exactly like a dead one (APNs:
/// `BadDeviceToken`). Once a push was accepted for a topic, its host and topic are right. Then such
/// an answer is about the token, however many there are, because any user can register any number
/// of made-up tokens. Only tokens that worked before show that something else has changed. Until a
/// push was accepted nothing is known, and unknown tokens of several users count against the
/// settings.
package struct TokenVerdictBreaker: Sendable {
    private struct Counts {
        var isProven = false
        /// The number of consecutive unknown tokens that count against the settings.
        var unknown = 0
        /// The users of these tokens, up to a limit.
        var users: Set<UserID> = []

        var isTooMany: Bool {
            unknown >= TokenVerdictBreaker.leastUnknown
                && users.count >= TokenVerdictBreaker.leastUsers
        }
    }

    private struct Key: Hashable {
        let container: ContainerKey
        let topic: String
        let environment: GatewayEnvironment

        init(_ delivery: Delivery) {
            container = delivery.container
            topic = delivery.notification.topic
            environment = delivery.gatewayEnvironment
        }
    }

    /// What an answer that a token is unknown means.
    package enum Verdict: Sendable, Hashable {
        /// The token is dead.
        case token
        /// There are too many such answers, so the settings are wrong, and the topic waits.
        case settings
    }

    /// The number of consecutive unknown tokens that count against the settings, if nothing was
    /// accepted meanwhile.
    package static let leastUnknown = 10
    /// The minimum number of users of these tokens.
    ///
    /// A single user may have made them up.
    package static let leastUsers = 3
    /// The wait of such a topic until a trial.
    ///
    /// It is shorter than others, because the first accepted push ends the halt.
    static let trialAfter = Duration.seconds(5)
    /// The maximum number of users with unknown tokens that are remembered for a topic.
    private static let userLimit = 4096

    private var counts: [Key: Counts] = [:]
    /// The serials of the registrations for which a push was accepted.
    private var working: RecentMemory<UInt64, Void>

    /// Creates a breaker that has seen nothing, and remembers `limit` working registrations.
    package init(limit: Int = 65_536) {
        working = RecentMemory(limit: limit)
    }

    /// Forgets the counts of a container, after its settings were fixed.
    package mutating func reset(_ container: ContainerKey) {
        counts = counts.filter { $0.key.container != container }
    }

    /// Counts a push that was accepted.
    package mutating func noteAcceptance(of owed: OwedDelivery) {
        working[owed.deviceSerial] = ()
        let key = Key(owed.delivery)
        if let count = counts[key], count.isProven, count.unknown == 0 { return }
        counts[key] = Counts(isProven: true)
    }

    /// Counts an answer that a token is unknown, and returns what it means.
    package mutating func judgeUnknownToken(of owed: OwedDelivery) -> Verdict {
        let key = Key(owed.delivery)
        var count = counts[key] ?? Counts()
        if count.isProven, working[owed.deviceSerial] == nil { return .token }
        count.unknown += 1
        if count.users.count < Self.userLimit { count.users.insert(owed.delivery.owner) }
        counts[key] = count
        return count.isTooMany ? .settings : .token
    }

    // MARK: Trials

    /// Returns whether a push is likely to be refused like those before, because tokens of its user
    /// were.
    func isSuspect(_ owed: OwedDelivery) -> Bool {
        guard let count = counts[Key(owed.delivery)], count.isTooMany else { return false }
        return working[owed.deviceSerial] == nil && count.users.contains(owed.delivery.owner)
    }

    /// Returns the rank by which waiting deliveries should be tried, lowest first: registrations
    /// that worked, then those of users without unknown tokens, oldest first.
    ///
    /// A user who makes up tokens to take the trials has registered them after the devices that
    /// they are meant to harm.
    func rank(_ owed: OwedDelivery) -> TrialRank {
        if working[owed.deviceSerial] != nil { return TrialRank(hope: 0, serial: 0) }
        return TrialRank(hope: isSuspect(owed) ? 2 : 1, serial: owed.deviceSerial)
    }
}

/// How likely a push is to show that a topic works.
///
/// Lower ranks are more likely.
struct TrialRank: Comparable {
    let hope: Int
    let serial: UInt64

    static func < (left: TrialRank, right: TrialRank) -> Bool {
        (left.hope, left.serial) < (right.hope, right.serial)
    }
}

extension TokenVerdictBreaker {
    /// Turns the verdict on a token into a pause of its topic, if there are too many such verdicts.
    mutating func weigh(_ outcome: PushOutcome, of owed: OwedDelivery) -> PushOutcome {
        guard owed.delivery.gateway == .apns else { return outcome }
        switch outcome {
        case .accepted:
            noteAcceptance(of: owed)
            return outcome
        case .refused(var refusal):
            guard case .forgetDeviceToken(.unknownToGateway) = refusal.reaction,
                judgeUnknownToken(of: owed) == .settings
            else { return outcome }
            refusal.reaction = .pauseTopic
            refusal.trialAfter = Self.trialAfter
            refusal.urgency = .alarm
            refusal.explanation = "every token is unknown: the environment or topic is wrong"
            return .refused(refusal)
        case .unknown, .notSent:
            return outcome
        }
    }
}
