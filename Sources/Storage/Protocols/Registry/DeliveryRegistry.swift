package import RelayModel

/// The state of deliveries for operators: receipts of attempts, retries, and held deliveries.
package protocol DeliveryRegistry: Sendable {
    /// Returns the receipts that satisfy `filter`, newest first, at most `limit`.
    func receipts(matching filter: ReceiptFilter, limit: Int) async throws -> [DeliveryReceipt]
    /// Returns retries in the order of their due time, at most `limit`.
    func retries(of container: ContainerKey, limit: Int) async throws -> [Retry]
    /// Returns the row of a delivery that is a retry or a dead letter, or `nil` if it is neither.
    func exception(_ id: DeliveryID) async throws -> DeliveryException?
    /// Returns those of these deliveries that are retries.
    func waiting(among ids: [DeliveryID]) async throws -> Set<DeliveryID>
    /// Returns the numbers of held deliveries for a user, by subscription and device, for at most
    /// `limit` such pairs.
    func held(of owner: UserID, in container: ContainerKey, limit: Int) async throws -> [HeldCount]
    /// Returns the digest that counts a delivery that was held at `moment` and has no row, or `nil`
    /// if no such digest is kept.
    func digestFate(of delivery: Delivery, heldAt moment: Timestamp) async throws -> DigestFate?
    /// Returns the digests that count the deliveries with these newest receipts.
    ///
    /// Deliveries without a kept digest, or whose subscription or device is no longer known, are
    /// left out.
    func digestFates(of receipts: [DeliveryReceipt]) async throws -> [DeliveryID: DigestFate]
    /// Returns the numbers of held deliveries by reason.
    func heldCounts() async throws -> [HoldReason: Int]
}

/// The conditions on receipts.
///
/// Every property that is set narrows the selection.
package struct ReceiptFilter: Sendable, Hashable {
    /// Only receipts of this delivery.
    package var deliveryID: DeliveryID?
    /// Only receipts of this change.
    package var position: LogPosition?
    /// Only receipts of this version of a subscription.
    package var subscriptionSerial: UInt64?
    /// Only receipts of this version of a device.
    package var deviceSerial: UInt64?
    /// Only receipts with this outcome.
    package var outcome: DeliveryReceipt.Outcome?

    /// Creates a filter that accepts all receipts.
    package init() {}
}

/// The row of a delivery that did not succeed at once.
package enum DeliveryException: Sendable, Hashable {
    /// The delivery will be retried.
    case retry(Retry)
    /// The delivery ended without success.
    case deadLetter(DeadLetter)
}
