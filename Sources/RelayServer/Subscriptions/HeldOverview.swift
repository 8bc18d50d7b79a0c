import RelayModel
import Storage

/// The deliveries that are held for some users.
struct HeldOverview {
    /// The pairs of subscription and device that are read for each user.
    private static let most = 1000

    private var counts: [UserID: [HeldCount]] = [:]

    /// Loads the overview from the store.
    init(
        of users: Set<UserID>, in container: ContainerKey, _ registry: any DeliveryRegistry
    ) async throws {
        for user in users {
            counts[user] = try await registry.held(of: user, in: container, limit: Self.most)
        }
    }

    /// Returns the number of held deliveries of a subscription; `nil` if there are none.
    func deliveries(of version: SubscriptionVersion) -> Int? {
        let subscription = version.subscription
        let all = counts[subscription.owner, default: []].filter {
            $0.subscription == subscription.id && $0.database == subscription.database
        }
        return all.isEmpty ? nil : all.reduce(0) { $0 + $1.deliveries }
    }

    /// Returns the number of held deliveries to a device.
    func deliveries(of device: Device) -> Int {
        counts[device.owner, default: []].reduce(0) {
            $0 + ($1.device == device.id ? $1.deliveries : 0)
        }
    }
}
