package import RelayModel

/// What has become of deliveries, for whoever asks: the record of attempts, and what waits.
package protocol DeliveryRegistry: Sendable {
    /// Receipts, the newest first, that satisfy `filter`, at most `limit`.
    func receipts(matching filter: ReceiptFilter, limit: Int) async throws -> [DeliveryReceipt]
    /// Retries by due time, at most `limit`.
    func retries(of container: ContainerKey, limit: Int) async throws -> [Retry]
    /// Where a delivery lies if it waits or has ended without success; `nil` if it does neither.
    func exception(_ id: DeliveryID) async throws -> DeliveryException?
    /// Those of these deliveries that wait to be tried again.
    func waiting(among ids: [DeliveryID]) async throws -> Set<DeliveryID>
    /// What is held back of what a user's subscriptions owe their devices, at most `limit` pairs of
    /// them.
    func held(of owner: UserID, in container: ContainerKey, limit: Int) async throws -> [HeldCount]
    /// What became of a delivery that was held back at `moment` and has no row: the digest that
    /// counts it; `nil` if none is kept.
    func digestFate(of delivery: Delivery, heldAt moment: Timestamp) async throws -> DigestFate?
    /// The same of deliveries whose newest receipts these are; those are left out of which no
    /// digest is kept, or whose subscription or device is known no more.
    func digestFates(of receipts: [DeliveryReceipt]) async throws -> [DeliveryID: DigestFate]
    /// How many deliveries are held back, by why.
    func heldCounts() async throws -> [HoldReason: Int]
}

/// Which receipts somebody wants to see; every part that is set narrows them.
package struct ReceiptFilter: Sendable, Hashable {
    /// Those of one delivery.
    package var deliveryID: DeliveryID?
    /// Those of one change.
    package var position: LogPosition?
    /// Those of one version of a subscription.
    package var subscriptionSerial: UInt64?
    /// Those of one version of a device.
    package var deviceSerial: UInt64?
    /// Those with one outcome.
    package var outcome: DeliveryReceipt.Outcome?

    /// Creates a filter that lets everything pass.
    package init() {}
}

/// The row of a delivery that did not simply succeed.
package enum DeliveryException: Sendable, Hashable {
    /// It is to be tried again.
    case retry(Retry)
    /// It ended without success.
    case deadLetter(DeadLetter)
}
