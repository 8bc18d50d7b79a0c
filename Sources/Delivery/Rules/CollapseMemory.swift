import RelayModel
import Storage

/// The newest delivery of each record whose pushes the subscription asks to collapse.
///
/// A delivery that waits for a retry is useless once a newer one of its record is owed to the same
/// device: the device would show the newer one anyway.
struct CollapseMemory: Sendable {
    private struct Key: Hashable {
        let container: ContainerKey
        let token: DeviceToken
        let subscriptionID: SubscriptionID
        /// The bytes of the collapse ID, because the gateway compares bytes.
        let collapseID: [UInt8]
        let record: RecordID

        init?(_ delivery: Delivery) {
            guard let record = delivery.collapsingRecord,
                let collapseID = delivery.notification.collapseID
            else { return nil }
            container = delivery.container
            token = delivery.token
            subscriptionID = delivery.subscriptionID
            self.collapseID = Array(collapseID.utf8)
            self.record = record
        }
    }

    /// The number of records that are remembered.
    static let limit = 65_536

    private var newest: RecentMemory<Key, DeliveryOrdinal>

    /// Creates a memory of the last `limit` records.
    init(limit: Int = Self.limit) {
        newest = RecentMemory(limit: limit)
    }

    /// Remembers a delivery that is owed.
    mutating func insert(_ delivery: Delivery) {
        guard let key = Key(delivery) else { return }
        newest[key] = newest[key].map { max($0, delivery.ordinal) } ?? delivery.ordinal
    }

    /// Returns whether a newer delivery supersedes `delivery`.
    func supersedes(_ delivery: Delivery) -> Bool {
        guard !newest.isEmpty, let key = Key(delivery), let ordinal = newest[key] else {
            return false
        }
        return delivery.ordinal < ordinal
    }
}
