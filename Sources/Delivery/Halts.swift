import RelayModel

/// The containers and topics that wait because the gateway refuses their credential.
///
/// A halt stays until a push of its container and topic is accepted or somebody ends it. When its
/// time is over, one delivery is let through to try, and the others wait for another while.
struct Halts: Sendable {
    private struct Key: Hashable {
        let container: ContainerKey
        let topic: String?
    }

    private var halts: [Key: OutcomeJudge.Halt] = [:]

    /// What `delivery` must wait for, if anything; `pause` is for how long the others wait after
    /// one was let through.
    mutating func halt(
        of delivery: Delivery, at now: Timestamp, pause: Duration
    ) -> OutcomeJudge.Halt? {
        // What is wrong with a credential is no concern of the courier's.
        guard !halts.isEmpty, delivery.gateway == .apns else { return nil }
        let keys = Self.keys(of: delivery)
        for key in keys {
            if let halt = halts[key], now < halt.until { return halt }
        }
        for key in keys {
            halts[key]?.until = now.advanced(by: pause)
        }
        return nil
    }

    /// Adds a halt, and says whether it is a new one.
    mutating func add(_ halt: OutcomeJudge.Halt, for container: ContainerKey) -> Bool {
        let topic: String? = if case .topic(let topic) = halt.scope { topic } else { nil }
        return halts.updateValue(halt, forKey: Key(container: container, topic: topic)) == nil
    }

    /// Ends what would halt `delivery`, because the gateway accepted it.
    mutating func remove(for delivery: Delivery) {
        guard !halts.isEmpty, delivery.gateway == .apns else { return }
        for key in Self.keys(of: delivery) { halts[key] = nil }
    }

    /// Ends all halts of a container.
    mutating func remove(_ container: ContainerKey) {
        halts = halts.filter { $0.key.container != container }
    }

    /// The halts in force.
    var all: [(container: ContainerKey, halt: OutcomeJudge.Halt)] {
        halts.map { ($0.key.container, $0.value) }
    }

    private static func keys(of delivery: Delivery) -> [Key] {
        [nil, delivery.notification.topic].map { Key(container: delivery.container, topic: $0) }
    }
}
