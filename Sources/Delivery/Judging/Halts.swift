package import RelayModel
import Storage

/// What waits although it is due: containers and topics whose credential the gateway refuses, and
/// gateways that cannot be used for a container.
///
/// A halt stays until a push that it concerns is accepted or somebody ends it. When its time is
/// over, one delivery is let through to try, and the others wait for another while. What waits lies
/// in rows that nobody reads meanwhile. One for which nothing waits any more ends too: nobody is
/// left to try, and it would be told of for ever.
struct Halts: Sendable {
    /// What one halt concerns.
    struct Key: Hashable, Sendable {
        let container: ContainerKey
        let scope: OutcomeJudge.Halt.Scope

        static func all(of lane: RetryLane) -> [Key] {
            // What is wrong with APNs is no concern of the courier's.
            guard lane.topic != GatewayKind.courier.rawValue else { return [] }
            let environment = lane.environment
            return [
                .container(environment), .gateway(environment), .topic(lane.topic, environment),
            ].map { Key(container: lane.container, scope: $0) }
        }
    }

    /// When a gateway that asked to be left alone is tried first; the wait doubles with each trial.
    static let firstTrial = Duration.seconds(30)
    /// The longest wait for the next trial.
    static let longestTrial = Duration.seconds(3600)
    /// How long a halt's time is over before it may end because nothing waits for it: whatever was
    /// let through to try has its answer, or is a row that waits, by then.
    static let idleTime = Duration.seconds(20)

    private var halts: [Key: OutcomeJudge.Halt] = [:]
    /// When each began; a halt that is renewed began when it was new.
    private var beginnings: [Key: Timestamp] = [:]
    /// Those of which a delivery was let through since they were renewed last.
    private var tried: Set<Key> = []

    /// The lanes that wait at one moment, for whoever reads retries meanwhile.
    struct Held: Sendable {
        let keys: Set<Key>

        func contains(_ lane: RetryLane) -> Bool {
            !keys.isEmpty && Key.all(of: lane).contains { keys.contains($0) }
        }
    }

    /// What waits at `now`.
    func held(at now: Timestamp) -> Held {
        Held(keys: Set(halts.filter { now < $0.value.until }.keys))
    }

    /// When the next delivery may be let through to try; `nil` if nothing waits at `now`.
    func nextTrial(after now: Timestamp) -> Timestamp? {
        halts.values.map(\.until).filter { now < $0 }.min()
    }

    /// What `delivery` must wait for, if anything.
    func halt(of delivery: Delivery, at now: Timestamp) -> OutcomeJudge.Halt? {
        // What is wrong with a credential is no concern of the courier's.
        guard !halts.isEmpty, delivery.gateway == .apns else { return nil }
        for key in Key.all(of: RetryLane(of: delivery)) {
            if let halt = halts[key], now < halt.until { return halt }
        }
        return nil
    }

    /// What halts the topic of `delivery`, whether or not it is time for a trial.
    func topicHalt(of delivery: Delivery) -> OutcomeJudge.Halt? {
        guard !halts.isEmpty, delivery.gateway == .apns else { return nil }
        let scope = OutcomeJudge.Halt.Scope.topic(
            delivery.notification.topic, delivery.gatewayEnvironment)
        return halts[Key(container: delivery.container, scope: scope)]
    }

    /// Lets `delivery` through: where something is halted it is the one that tries, and the
    /// others wait for another while.
    mutating func letThrough(_ delivery: Delivery, at now: Timestamp) {
        guard !halts.isEmpty, delivery.gateway == .apns else { return }
        for key in Key.all(of: RetryLane(of: delivery)) {
            guard var halt = halts[key] else { continue }
            // What was asked for is over: its answer decides, and is not waited for as long.
            if let asked = halt.asked, asked <= now {
                halt.pause = min(halt.pause, Self.firstTrial)
            }
            halt.until = now.advanced(by: halt.pause)
            halts[key] = halt
            tried.insert(key)
        }
    }

    /// Adds a halt, and says whether it is a new one.
    mutating func add(
        _ halt: OutcomeJudge.Halt, for container: ContainerKey, at now: Timestamp
    ) -> Bool {
        let key = Key(container: container, scope: halt.scope)
        let isTrial = halt.asked != nil && tried.remove(key) != nil
        guard let known = halts[key] else {
            halts[key] = halt
            beginnings[key] = now
            return true
        }
        halts[key] = Self.renewed(known, by: halt, isTrial: isTrial, at: now)
        return false
    }

    private static func renewed(
        _ known: OutcomeJudge.Halt, by new: OutcomeJudge.Halt, isTrial: Bool, at now: Timestamp
    ) -> OutcomeJudge.Halt {
        guard let since = known.asked, now < since else { return new }
        // Failures beside what the gateway asked for are the same trouble.
        guard let asked = new.asked else { return known }
        var halt = new
        // Answers to what was on its way say nothing new, but a longer wish is heeded.
        halt.asked = isTrial ? asked : max(asked, since)
        halt.pause = isTrial ? min(known.pause * 2, longestTrial) : known.pause
        let next = isTrial ? now.advanced(by: halt.pause) : known.until
        halt.until = min(next, halt.asked ?? next)
        return halt
    }

    /// Ends what would halt `delivery`, because the gateway accepted it; says whether that was
    /// anything.
    mutating func remove(for delivery: Delivery, sentAt: Timestamp) -> Bool {
        guard !halts.isEmpty, delivery.gateway == .apns else { return false }
        let count = halts.count
        for key in Key.all(of: RetryLane(of: delivery)) { remove(key, showing: sentAt) }
        return halts.count < count
    }

    /// Ends the halt of a gateway that answers again, whatever it answers; says whether there was
    /// one.
    mutating func removeGateway(for delivery: Delivery, sentAt: Timestamp) -> Bool {
        guard !halts.isEmpty, delivery.gateway == .apns else { return false }
        let scope = OutcomeJudge.Halt.Scope.gateway(delivery.gatewayEnvironment)
        let count = halts.count
        remove(Key(container: delivery.container, scope: scope), showing: sentAt)
        return halts.count < count
    }

    /// Ends a halt by what was sent at `sentAt`: what was on its way when the gateway asked to be
    /// left alone does not show that it takes that back.
    private mutating func remove(_ key: Key, showing sentAt: Timestamp) {
        if halts[key]?.asked != nil, let since = beginnings[key], sentAt < since { return }
        remove(key)
    }

    /// Those that have been left untried for a while, though their time is over.
    func untried(at now: Timestamp) -> [Key] {
        halts.filter { Self.isUntried($0.value, at: now) }.map { $0.key }
    }

    private static func isUntried(_ halt: OutcomeJudge.Halt, at now: Timestamp) -> Bool {
        // What a gateway asked for counts as long as it said.
        max(halt.until, halt.asked ?? halt.until).advanced(by: idleTime) <= now
    }

    /// Ends a halt for which nothing waits, unless it was tried or renewed meanwhile; says whether
    /// it did.
    mutating func remove(untried key: Key, at now: Timestamp) -> Bool {
        guard let halt = halts[key], Self.isUntried(halt, at: now) else { return false }
        remove(key)
        return true
    }

    /// Ends all halts of a container.
    mutating func remove(_ container: ContainerKey) {
        for key in halts.keys where key.container == container { remove(key) }
    }

    private mutating func remove(_ key: Key) {
        beginnings[key] = nil
        tried.remove(key)
        halts[key] = nil
    }

    /// The clock goes `step` later than it did.
    mutating func clockWasSetBack(by step: Duration) {
        for key in halts.keys {
            if let until = halts[key]?.until { halts[key]?.until = until.back(by: step) }
            if let asked = halts[key]?.asked { halts[key]?.asked = asked.back(by: step) }
        }
        beginnings = beginnings.mapValues { $0.back(by: step) }
    }

    /// How many are in force.
    var count: Int { halts.count }

    /// The halts in force, ordered by container and scope.
    var all: [HaltInForce] {
        halts.map { key, halt in
            HaltInForce(
                container: key.container, scope: key.scope, reason: halt.reason,
                since: beginnings[key] ?? halt.until, until: halt.until,
                asked: halt.asked)
        }
        .sorted { ($0.container.description, $0.words) < ($1.container.description, $1.words) }
    }
}

/// A halt, for whoever asks what waits and why.
package struct HaltInForce: Sendable, Hashable {
    /// Whose deliveries wait.
    package let container: ContainerKey
    /// Which of them.
    package let scope: OutcomeJudge.Halt.Scope
    /// What the gateway said last.
    package let reason: String
    /// When it began.
    package let since: Timestamp
    /// When the next delivery is let through to try; it may be past while there is none.
    package let until: Timestamp
    /// Until when the gateway asked to be left alone, if it did.
    package let asked: Timestamp?

    /// Whether it holds `delivery`.
    package func holds(_ delivery: Delivery) -> Bool {
        guard delivery.gateway == .apns, delivery.container == container else { return false }
        return switch scope {
        case .container(let environment), .gateway(let environment):
            environment == delivery.gatewayEnvironment
        case .topic(let topic, let environment):
            environment == delivery.gatewayEnvironment && topic == delivery.notification.topic
        }
    }

    /// Which deliveries wait, in words.
    package var words: String { scope.words }
}
