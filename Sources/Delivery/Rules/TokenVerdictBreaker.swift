import Gateway
package import RelayModel

/// Keeps a wrong host or topic from killing device tokens, and keeps users from halting a topic
/// with tokens that they made up.
///
/// A gateway answers a token of its other environment exactly as a dead one (APNs:
/// `BadDeviceToken`). Once a push was accepted for a topic, host and topic are right, and such an
/// answer is about its token, however many there are: whoever likes can register any number of
/// made-up ones. Only tokens that worked before say that something else has changed. Until a push
/// was accepted nothing is known, and tokens of several users that are all unknown speak against
/// the settings.
package struct TokenVerdictBreaker: Sendable {
    private struct Counts {
        var isProven = false
        /// Unknown tokens in a row that count against the settings.
        var unknown = 0
        /// Their users, as far as there are few.
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

    /// What an answer that a token is unknown is worth.
    package enum Verdict: Sendable, Hashable {
        /// The token is dead.
        case token
        /// There are too many: the topic waits.
        case settings
    }

    /// Unknown tokens in a row that speak against the settings, if nothing was accepted meanwhile.
    package static let leastUnknown = 10
    /// The least users whose tokens those are: one alone may have made them up.
    package static let leastUsers = 3
    /// How soon a topic that waits for this is tried again: sooner than others, because the first
    /// push that is accepted ends it.
    static let trialAfter = Duration.seconds(5)
    /// Users whose tokens were unknown that are remembered for a topic.
    private static let userLimit = 4096

    private var counts: [Key: Counts] = [:]
    /// The registrations by which a push was accepted.
    private var working: RecentMemory<UInt64, Void>

    /// Creates a breaker that has seen nothing, and will remember `limit` registrations that work.
    package init(limit: Int = 65_536) {
        working = RecentMemory(limit: limit)
    }

    /// Forgets what was counted for a container, after its settings were mended.
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

    /// Counts an answer that a token is unknown, and says what it is worth.
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

    /// Whether a push is likely to be refused as those before, because its user's tokens were.
    func isSuspect(_ owed: OwedDelivery) -> Bool {
        guard let count = counts[Key(owed.delivery)], count.isTooMany else { return false }
        return working[owed.deviceSerial] == nil && count.users.contains(owed.delivery.owner)
    }

    /// The order in which what waits should be tried, the least first: registrations that worked,
    /// then those of users with none that failed, the oldest first.
    ///
    /// Whoever makes up tokens to take the trials has registered them after the devices that they
    /// are to harm.
    func rank(_ owed: OwedDelivery) -> TrialRank {
        if working[owed.deviceSerial] != nil { return TrialRank(hope: 0, serial: 0) }
        return TrialRank(hope: isSuspect(owed) ? 2 : 1, serial: owed.deviceSerial)
    }
}

/// How likely a push is to show that a topic works.
struct TrialRank: Comparable {
    let hope: Int
    let serial: UInt64

    static func < (left: TrialRank, right: TrialRank) -> Bool {
        (left.hope, left.serial) < (right.hope, right.serial)
    }
}

extension TokenVerdictBreaker {
    /// Turns a verdict on a token into a pause of its topic, if such verdicts are too many.
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
