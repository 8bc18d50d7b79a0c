package import RelayModel
import Storage

/// The halts in force: containers and topics whose credential the gateway refuses, and gateways
/// that cannot be used for a container.
///
/// Their deliveries wait even if they are due.
///
/// A halt stays until a push that it concerns is accepted, or the operator ends it. When its time
/// is over, one delivery is let through as a trial, and the others wait for another period. The
/// waiting deliveries are in rows that are not read meanwhile. A halt for which nothing waits any
/// more ends too: no delivery is left for a trial, and the halt would be reported forever.
struct Halts: Sendable {
    /// The scope of a halt.
    struct Key: Hashable, Sendable {
        let container: ContainerKey
        let scope: OutcomeJudge.Halt.Scope

        static func all(of lane: RetryLane) -> [Key] {
            // A problem with APNs does not concern the courier.
            guard lane.topic != GatewayKind.courier.rawValue else { return [] }
            let environment = lane.environment
            return [
                .container(environment), .gateway(environment), .topic(lane.topic, environment),
            ].map { Key(container: lane.container, scope: $0) }
        }
    }

    /// The wait until the first trial of a gateway that asked to be left alone.
    ///
    /// The wait doubles with each trial.
    static let firstTrial = Duration.seconds(30)
    /// The longest wait for the next trial.
    static let longestTrial = Duration.seconds(3600)
    /// How long a halt's time must be over before it may end because nothing waits for it.
    ///
    /// By then the answer to a trial has come, or the trial is a row that waits.
    static let idleTime = Duration.seconds(20)

    private var halts: [Key: OutcomeJudge.Halt] = [:]
    /// The time when each halt began.
    ///
    /// Renewing a halt does not change it.
    private var beginnings: [Key: Timestamp] = [:]
    /// The halts for which a delivery was let through since they were last renewed.
    private var tried: Set<Key> = []

    /// The lanes that wait at one moment, for reading retries.
    struct Held: Sendable {
        let keys: Set<Key>

        func contains(_ lane: RetryLane) -> Bool {
            !keys.isEmpty && Key.all(of: lane).contains { keys.contains($0) }
        }
    }

    /// Returns the lanes that wait at `now`.
    func held(at now: Timestamp) -> Held {
        Held(keys: Set(halts.filter { now < $0.value.until }.keys))
    }

    /// Returns when the next delivery may be let through as a trial, or `nil` if no lane waits at
    /// `now`.
    func nextTrial(after now: Timestamp) -> Timestamp? {
        halts.values.map(\.until).filter { now < $0 }.min()
    }

    /// Returns the halt for which `delivery` must wait, if there is one.
    func halt(of delivery: Delivery, at now: Timestamp) -> OutcomeJudge.Halt? {
        // A problem with a credential does not concern the courier.
        guard !halts.isEmpty, delivery.gateway == .apns else { return nil }
        for key in Key.all(of: RetryLane(of: delivery)) {
            if let halt = halts[key], now < halt.until { return halt }
        }
        return nil
    }

    /// Returns the halt of the topic of `delivery`, whether or not it is time for a trial.
    func topicHalt(of delivery: Delivery) -> OutcomeJudge.Halt? {
        guard !halts.isEmpty, delivery.gateway == .apns else { return nil }
        let scope = OutcomeJudge.Halt.Scope.topic(
            delivery.notification.topic, delivery.gatewayEnvironment)
        return halts[Key(container: delivery.container, scope: scope)]
    }

    /// Lets `delivery` through.
    ///
    /// Where there is a halt, it is the trial, and the others wait for another period.
    mutating func letThrough(_ delivery: Delivery, at now: Timestamp) {
        guard !halts.isEmpty, delivery.gateway == .apns else { return }
        for key in Key.all(of: RetryLane(of: delivery)) {
            guard var halt = halts[key] else { continue }
            // The time that the gateway asked for is over. The answer to this trial decides, so the
            // others need not wait as long.
            if let asked = halt.asked, asked <= now {
                halt.pause = min(halt.pause, Self.firstTrial)
            }
            halt.until = now.advanced(by: halt.pause)
            halts[key] = halt
            tried.insert(key)
        }
    }

    /// Adds a halt, and returns whether it is new.
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
        // Failures during the time that the gateway asked for belong to the same problem.
        guard let asked = new.asked else { return known }
        var halt = new
        // Answers to requests that were already on their way say nothing new, but a longer time
        // that the gateway asks for counts.
        halt.asked = isTrial ? asked : max(asked, since)
        halt.pause = isTrial ? min(known.pause * 2, longestTrial) : known.pause
        let next = isTrial ? now.advanced(by: halt.pause) : known.until
        halt.until = min(next, halt.asked ?? next)
        return halt
    }

    /// Ends the halts of `delivery`, because the gateway accepted it.
    ///
    /// Returns whether there were any.
    mutating func remove(for delivery: Delivery, sentAt: Timestamp) -> Bool {
        guard !halts.isEmpty, delivery.gateway == .apns else { return false }
        let count = halts.count
        for key in Key.all(of: RetryLane(of: delivery)) { remove(key, showing: sentAt) }
        return halts.count < count
    }

    /// Ends the halt of a gateway that answers again, whatever it answers.
    ///
    /// Returns whether there was one.
    mutating func removeGateway(for delivery: Delivery, sentAt: Timestamp) -> Bool {
        guard !halts.isEmpty, delivery.gateway == .apns else { return false }
        let scope = OutcomeJudge.Halt.Scope.gateway(delivery.gatewayEnvironment)
        let count = halts.count
        remove(Key(container: delivery.container, scope: scope), showing: sentAt)
        return halts.count < count
    }

    /// Ends a halt because of a request that was sent at `sentAt`.
    ///
    /// An answer to a request that was on its way when the gateway asked to be left alone does not
    /// show that the gateway changed its mind.
    private mutating func remove(_ key: Key, showing sentAt: Timestamp) {
        if halts[key]?.asked != nil, let since = beginnings[key], sentAt < since { return }
        remove(key)
    }

    /// Returns the halts that have had no trial for a while although their time is over.
    func untried(at now: Timestamp) -> [Key] {
        halts.filter { Self.isUntried($0.value, at: now) }.map { $0.key }
    }

    private static func isUntried(_ halt: OutcomeJudge.Halt, at now: Timestamp) -> Bool {
        // The time that a gateway asked for counts in full.
        max(halt.until, halt.asked ?? halt.until).advanced(by: idleTime) <= now
    }

    /// Ends a halt for which nothing waits, unless it had a trial or was renewed meanwhile.
    ///
    /// Returns whether it ended.
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

    /// Moves all times back by `step`, by which the clock was set back.
    mutating func clockWasSetBack(by step: Duration) {
        for key in halts.keys {
            if let until = halts[key]?.until { halts[key]?.until = until.back(by: step) }
            if let asked = halts[key]?.asked { halts[key]?.asked = asked.back(by: step) }
        }
        beginnings = beginnings.mapValues { $0.back(by: step) }
    }

    /// The number of halts in force.
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

/// A halt in force, for reports.
package struct HaltInForce: Sendable, Hashable {
    /// The container whose deliveries wait.
    package let container: ContainerKey
    /// Which of its deliveries wait.
    package let scope: OutcomeJudge.Halt.Scope
    /// The gateway's last reason.
    package let reason: String
    /// The time when the halt began.
    package let since: Timestamp
    /// The time when the next delivery is let through as a trial.
    ///
    /// It may be in the past while there is no delivery.
    package let until: Timestamp
    /// The time until which the gateway asked to be left alone, if it did.
    package let asked: Timestamp?

    /// Returns whether the halt holds `delivery`.
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
