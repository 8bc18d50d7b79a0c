import RelayModel
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
            return [.container, .gateway(lane.environment), .topic(lane.topic)].map {
                Key(container: lane.container, scope: $0)
            }
        }
    }

    private var halts: [Key: OutcomeJudge.Halt] = [:]

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

    /// What `delivery` must wait for, if anything; if it need not, it is the one that tries.
    mutating func halt(of delivery: Delivery, at now: Timestamp) -> OutcomeJudge.Halt? {
        // What is wrong with a credential is no concern of the courier's.
        guard !halts.isEmpty, delivery.gateway == .apns else { return nil }
        let keys = Key.all(of: RetryLane(of: delivery))
        for key in keys {
            if let halt = halts[key], now < halt.until { return halt }
        }
        for key in keys {
            if let pause = halts[key]?.pause { halts[key]?.until = now.advanced(by: pause) }
        }
        return nil
    }

    /// Adds a halt, and says whether it is a new one.
    mutating func add(_ halt: OutcomeJudge.Halt, for container: ContainerKey) -> Bool {
        halts.updateValue(halt, forKey: Key(container: container, scope: halt.scope)) == nil
    }

    /// Ends what would halt `delivery`, because the gateway accepted it; says whether that was
    /// anything.
    mutating func remove(for delivery: Delivery) -> Bool {
        guard !halts.isEmpty, delivery.gateway == .apns else { return false }
        let count = halts.count
        for key in Key.all(of: RetryLane(of: delivery)) { halts[key] = nil }
        return halts.count < count
    }

    /// Ends the halt of a gateway that answers again, whatever it answers; says whether there was
    /// one.
    mutating func removeGateway(for delivery: Delivery) -> Bool {
        guard !halts.isEmpty, delivery.gateway == .apns else { return false }
        let scope = OutcomeJudge.Halt.Scope.gateway(delivery.gatewayEnvironment)
        return halts.removeValue(forKey: Key(container: delivery.container, scope: scope)) != nil
    }

    /// Ends all halts of a container.
    mutating func remove(_ container: ContainerKey) {
        halts = halts.filter { $0.key.container != container }
    }

    /// The halts in force.
    var all: [(container: ContainerKey, halt: OutcomeJudge.Halt)] {
        halts.map { ($0.key.container, $0.value) }
    }
}
