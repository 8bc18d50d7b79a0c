import RelayModel
import Storage

/// The device tokens that the gateway declared dead a short while ago.
///
/// The registry forgets a dead token, but what was owed to it before is still on its way: in the
/// window, in the log, among the retries. A gateway holds it against a sender that goes on using
/// dead tokens (APNs), so that those deliveries end without being sent.
struct DeadTokenMemory: Sendable {
    private struct Key: Hashable {
        let container: ContainerKey
        let token: DeviceToken
    }

    private struct Death {
        let since: Timestamp
        /// Whether the registry knew of it when it was asked last.
        var isKnown = false
    }

    private let limit: Int
    private var deaths: RecentMemory<Key, Death>
    /// Those that became durable since the registry was asked last.
    private var durable: [DeadToken] = []

    /// Remembers the last `limit` tokens.
    init(limit: Int = 65_536) {
        self.limit = limit
        deaths = RecentMemory(limit: limit)
    }

    /// Remembers a token that the gateway declared dead.
    mutating func insert(_ dead: DeadToken) {
        deaths[Key(container: dead.container, token: dead.token)] = Death(since: dead.since)
    }

    /// Learns that the registry has forgotten tokens.
    mutating func recorded(_ tokens: [DeadToken]) {
        durable += tokens.prefix(limit - durable.count)
    }

    /// Learns that the registry is about to be asked whose the tokens are of what waits.
    mutating func registryIsAsked() {
        for dead in durable {
            let key = Key(container: dead.container, token: dead.token)
            if let death = deaths[key], death.since == dead.since {
                deaths[key] = Death(since: death.since, isKnown: true)
            }
        }
        durable.removeAll()
    }

    /// Whether the token of `delivery` was dead after it was registered.
    ///
    /// What waits `stands` if the registry, which was asked about it, finds the token in the same
    /// hands: if it knew of the death then, the token was registered again.
    func holds(_ delivery: Delivery, stands: Bool = false) -> Bool {
        guard !deaths.isEmpty else { return false }
        let key = Key(container: delivery.container, token: delivery.token)
        guard let death = deaths[key], delivery.registeredAt <= death.since else { return false }
        return !(stands && death.isKnown)
    }
}
