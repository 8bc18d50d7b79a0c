package import RelayModel
import Storage

/// What waits although it is due: containers and topics whose credential the gateway refuses, and
/// gateways that cannot be used for a container.
///
/// A halt stays until a push that it concerns is accepted or somebody ends it. When its time is
/// over, one delivery is let through to try, and the others wait for another while. What waits lies
/// in rows that nobody reads meanwhile.
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

    private var halts: [Key: OutcomeJudge.Halt] = [:]
    /// Since when; a halt that is renewed began when it was new.
    private var beginnings: [Key: Timestamp] = [:]

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

    /// Lets `delivery` through: where something is halted it is the one that tries, and the
    /// others wait for another while.
    mutating func letThrough(_ delivery: Delivery, at now: Timestamp) {
        guard !halts.isEmpty, delivery.gateway == .apns else { return }
        for key in Key.all(of: RetryLane(of: delivery)) {
            if let pause = halts[key]?.pause { halts[key]?.until = now.advanced(by: pause) }
        }
    }

    /// Adds a halt, and says whether it is a new one.
    mutating func add(
        _ halt: OutcomeJudge.Halt, for container: ContainerKey, at now: Timestamp
    ) -> Bool {
        let key = Key(container: container, scope: halt.scope)
        guard halts.updateValue(halt, forKey: key) == nil else { return false }
        beginnings[key] = now
        return true
    }

    /// Ends what would halt `delivery`, because the gateway accepted it; says whether that was
    /// anything.
    mutating func remove(for delivery: Delivery) -> Bool {
        guard !halts.isEmpty, delivery.gateway == .apns else { return false }
        let count = halts.count
        for key in Key.all(of: RetryLane(of: delivery)) { remove(key) }
        return halts.count < count
    }

    /// Ends the halt of a gateway that answers again, whatever it answers; says whether there was
    /// one.
    mutating func removeGateway(for delivery: Delivery) -> Bool {
        guard !halts.isEmpty, delivery.gateway == .apns else { return false }
        let scope = OutcomeJudge.Halt.Scope.gateway(delivery.gatewayEnvironment)
        return remove(Key(container: delivery.container, scope: scope))
    }

    /// Ends all halts of a container.
    mutating func remove(_ container: ContainerKey) {
        for key in halts.keys where key.container == container { remove(key) }
    }

    @discardableResult
    private mutating func remove(_ key: Key) -> Bool {
        beginnings[key] = nil
        return halts.removeValue(forKey: key) != nil
    }

    /// How many are in force.
    var count: Int { halts.count }

    /// The halts in force, ordered by container and scope.
    var all: [HaltInForce] {
        halts.map { key, halt in
            HaltInForce(
                container: key.container, scope: key.scope, reason: halt.reason,
                since: beginnings[key] ?? halt.until, until: halt.until)
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

    /// Which deliveries wait, in words.
    package var words: String {
        switch scope {
        case .container(let environment): "credential, \(environment.rawValue)"
        case .gateway(let environment): "gateway, \(environment.rawValue)"
        case .topic(let topic, let environment): "topic \(topic), \(environment.rawValue)"
        }
    }
}
