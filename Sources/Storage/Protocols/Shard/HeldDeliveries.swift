package import RelayModel

extension ShardProgress {
    /// Nothing is held.
    package func kindness(
        among deliveries: [OwedDelivery]
    ) async throws -> [DeliveryID: Kindness] { [:] }

    /// There are no digests.
    package func dueDigests(at now: Timestamp, limit: Int) async throws -> [Digest] { [] }

    /// There are no digests.
    package func nextDigestDue() async throws -> Timestamp? { nil }

    /// Nothing has gone.
    package func throttlePasts(
        of lines: [ThrottledLine], at now: Timestamp
    ) async throws -> [ThrottlePast] {
        lines.map { ThrottlePast($0, places: [], isWaitedFor: false) }
    }

    /// Nothing is released.
    package var heldReleased: AsyncStream<Void> { AsyncStream { _ in } }

    /// Nothing is held.
    package func release(
        _ deliveries: [DeliveryID], heldFor reason: HoldReason, at now: Timestamp
    ) async throws {}

    /// There are no digests.
    package func close(_ digests: [ClosingDigest], at now: Timestamp) async throws -> Int { 0 }
}

/// What one subscription owes one device and is told together.
package struct Digest: Sendable, Hashable {
    /// Its number.
    package var id: Int64
    /// The deliveries that were put into it, of which it is the only place.
    package var deliveries: Int64
    /// What it stands for: more than ``deliveries`` if digests were held again.
    package var count: Int64
    /// When the first was put into it.
    package var openedAt: Timestamp
    /// The newest of them.
    package var newest: OwedDelivery

    package init(
        id: Int64, deliveries: Int64, count: Int64, openedAt: Timestamp, newest: OwedDelivery
    ) {
        self.id = id
        self.deliveries = deliveries
        self.count = count
        self.openedAt = openedAt
        self.newest = newest
    }
}

/// A digest with the delivery that takes its place.
package struct ClosingDigest: Sendable, Hashable {
    /// The digest as it was read.
    package var digest: Digest
    /// What is sent for all.
    package var delivery: OwedDelivery

    package init(_ digest: Digest, as delivery: OwedDelivery) {
        self.digest = digest
        self.delivery = delivery
    }
}

/// What is held back of what one subscription owes one device.
package struct HeldCount: Sendable, Hashable {
    /// The subscription's database; `nil` in what an earlier version kept.
    package var database: DatabaseScope?
    /// The subscription.
    package var subscription: SubscriptionID
    /// The device.
    package var device: DeviceID
    /// How many deliveries.
    package var deliveries: Int

    package init(
        database: DatabaseScope?, subscription: SubscriptionID, device: DeviceID, deliveries: Int
    ) {
        self.database = database
        self.subscription = subscription
        self.device = device
        self.deliveries = deliveries
    }
}

/// What became of a delivery that was held back with others.
package enum DigestFate: Sendable, Hashable {
    /// It waits to be told with the others.
    ///
    /// `reason` is why the first of them was held back.
    case open(until: Timestamp, deliveries: Int64, reason: HoldReason?)
    /// It was told with the others, by the delivery of this ID, which the change at `position`
    /// owed; that may have been held back with others itself.
    case closed(at: Timestamp, count: Int64, by: DeliveryID, position: LogPosition)
}
