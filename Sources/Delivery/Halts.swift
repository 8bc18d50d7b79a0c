import RelayModel

/// The containers and topics that wait because the gateway refuses their credential.
struct Halts: Sendable {
    private struct Key: Hashable {
        let container: ContainerKey
        let topic: String?
    }

    private var halts: [Key: OutcomeJudge.Halt] = [:]

    /// What `delivery` must wait for, if anything.
    ///
    /// A halt that is over lets one through again.
    mutating func halt(of delivery: Delivery, at now: Timestamp) -> OutcomeJudge.Halt? {
        guard !halts.isEmpty else { return nil }
        for topic in [nil, delivery.notification.topic] {
            let key = Key(container: delivery.container, topic: topic)
            guard let halt = halts[key] else { continue }
            guard halt.until <= now else { return halt }
            halts[key] = nil
        }
        return nil
    }

    /// Adds a halt, and says whether it is a new one.
    mutating func add(_ halt: OutcomeJudge.Halt, for container: ContainerKey) -> Bool {
        let topic: String? = if case .topic(let topic) = halt.scope { topic } else { nil }
        return halts.updateValue(halt, forKey: Key(container: container, topic: topic)) == nil
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
