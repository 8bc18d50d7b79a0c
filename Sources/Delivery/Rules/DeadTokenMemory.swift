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

    private var deaths: RecentMemory<Key, Timestamp>

    /// Remembers the last `limit` tokens.
    init(limit: Int = 65_536) {
        deaths = RecentMemory(limit: limit)
    }

    /// Remembers a token that the gateway declared dead.
    mutating func insert(_ dead: DeadToken) {
        deaths[Key(container: dead.container, token: dead.token)] = dead.since
    }

    /// Whether the token of `delivery` was dead after it was registered.
    func holds(_ delivery: Delivery) -> Bool {
        guard !deaths.isEmpty else { return false }
        let key = Key(container: delivery.container, token: delivery.token)
        return deaths[key].map { delivery.registeredAt <= $0 } ?? false
    }
}
