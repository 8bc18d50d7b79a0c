package import RelayModel

extension ShardProgress {
    /// Returns nothing: this progress holds no deliveries back.
    package func kindness(
        among deliveries: [OwedDelivery]
    ) async throws -> [DeliveryID: Kindness] { [:] }

    /// Returns nothing: there are no digests.
    package func dueDigests(at now: Timestamp, limit: Int) async throws -> [Digest] { [] }

    /// Returns `nil`: there are no digests.
    package func nextDigestDue() async throws -> Timestamp? { nil }

    /// Returns no places: no push was let through.
    package func throttlePasts(
        of lines: [ThrottledLine], at now: Timestamp
    ) async throws -> [ThrottlePast] {
        lines.map { ThrottlePast($0, places: [], isWaitedFor: false) }
    }

    /// A stream that never yields.
    package var heldReleased: AsyncStream<Void> { AsyncStream { _ in } }

    /// Does nothing: no deliveries are held.
    package func release(
        _ deliveries: [DeliveryID], heldFor reason: HoldReason, at now: Timestamp
    ) async throws {}

    /// Closes nothing: there are no digests.
    package func close(_ digests: [ClosingDigest], at now: Timestamp) async throws -> Int { 0 }
}

/// Deliveries of one subscription to one device that one push tells together.
package struct Digest: Sendable, Hashable {
    /// The number of the digest.
    package var id: Int64
    /// The number of deliveries put into the digest, which have no row of their own.
    package var deliveries: Int64
    /// The number of deliveries that the digest stands for, which exceeds ``deliveries`` if digests
    /// were held again.
    package var count: Int64
    /// The moment at which the first delivery was put into it.
    package var openedAt: Timestamp
    /// The newest of the deliveries.
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

/// A digest with the delivery that replaces it.
package struct ClosingDigest: Sendable, Hashable {
    /// The digest as it was read.
    package var digest: Digest
    /// The delivery that is sent for all of them.
    package var delivery: OwedDelivery

    package init(_ digest: Digest, as delivery: OwedDelivery) {
        self.digest = digest
        self.delivery = delivery
    }
}

/// The number of held deliveries of one subscription to one device.
package struct HeldCount: Sendable, Hashable {
    /// The subscription's database; `nil` in what an earlier version kept.
    package var database: DatabaseScope?
    /// The subscription.
    package var subscription: SubscriptionID
    /// The device.
    package var device: DeviceID
    /// The number of held deliveries.
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

/// The state of a delivery that is counted by a digest.
package enum DigestFate: Sendable, Hashable {
    /// The digest is still open.
    ///
    /// `reason` is why its first delivery was held.
    case open(until: Timestamp, deliveries: Int64, reason: HoldReason?)
    /// The digest was told by the delivery `by`, which the change at `position` owed.
    ///
    /// That delivery may have been put into a later digest itself.
    case closed(at: Timestamp, count: Int64, by: DeliveryID, position: LogPosition)
}
