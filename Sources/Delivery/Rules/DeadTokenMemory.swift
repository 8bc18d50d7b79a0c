import RelayModel
import Storage

/// The device tokens that the gateway recently declared dead.
///
/// The registry forgets a dead token, but deliveries that were owed to it before are still in the
/// window, in the log and among the retries. A gateway penalises a sender that keeps using dead
/// tokens (APNs), so these deliveries end without being sent.
struct DeadTokenMemory: Sendable {
    private struct Key: Hashable {
        let container: ContainerKey
        let token: DeviceToken
    }

    private struct Death {
        let since: Timestamp
        /// Whether the registry knew of the death when it was last asked.
        var isKnown = false
    }

    private let limit: Int
    private var deaths: RecentMemory<Key, Death>
    /// The tokens whose deaths became durable since the registry was last asked.
    private var durable: [DeadToken] = []

    /// Creates a memory of the last `limit` tokens.
    init(limit: Int = 65_536) {
        self.limit = limit
        deaths = RecentMemory(limit: limit)
    }

    /// Remembers a token that the gateway declared dead.
    mutating func insert(_ dead: DeadToken) {
        deaths[Key(container: dead.container, token: dead.token)] = Death(since: dead.since)
    }

    /// Notes that the registry has forgotten tokens.
    mutating func recorded(_ tokens: [DeadToken]) {
        durable += tokens.prefix(limit - durable.count)
    }

    /// Notes that the registry is about to be asked to whom the tokens of waiting deliveries
    /// belong.
    mutating func registryIsAsked() {
        for dead in durable {
            let key = Key(container: dead.container, token: dead.token)
            if let death = deaths[key], death.since == dead.since {
                deaths[key] = Death(since: death.since, isKnown: true)
            }
        }
        durable.removeAll()
    }

    /// Returns whether the token of `delivery` was declared dead after it was registered.
    ///
    /// `stands` says that the registry was asked about a waiting delivery, and that the token still
    /// belongs to the same device and user. If the registry already knew of the death then, the
    /// token was registered again.
    func holds(_ delivery: Delivery, stands: Bool = false) -> Bool {
        guard !deaths.isEmpty else { return false }
        let key = Key(container: delivery.container, token: delivery.token)
        guard let death = deaths[key], delivery.registeredAt <= death.since else { return false }
        return !(stands && death.isKnown)
    }
}
