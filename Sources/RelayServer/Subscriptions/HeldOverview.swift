import RelayModel
import Storage

/// What is held back for some users.
struct HeldOverview {
    /// Pairs of a subscription and a device that are looked at for each user.
    private static let most = 1000

    private var counts: [UserID: [HeldCount]] = [:]

    /// Reads it.
    init(
        of users: Set<UserID>, in container: ContainerKey, _ registry: any DeliveryRegistry
    ) async throws {
        for user in users {
            counts[user] = try await registry.held(of: user, in: container, limit: Self.most)
        }
    }

    /// How many deliveries of a subscription are held; `nil` if none is.
    func deliveries(of version: SubscriptionVersion) -> Int? {
        let subscription = version.subscription
        let all = counts[subscription.owner, default: []].filter {
            $0.subscription == subscription.id && $0.database == subscription.database
        }
        return all.isEmpty ? nil : all.reduce(0) { $0 + $1.deliveries }
    }

    /// How many deliveries to a device are held.
    func deliveries(of device: Device) -> Int {
        counts[device.owner, default: []].reduce(0) {
            $0 + ($1.device == device.id ? $1.deliveries : 0)
        }
    }
}
