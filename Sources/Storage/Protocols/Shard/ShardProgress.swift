package import RelayModel

/// How far a shard's log is settled, and the exceptions: deliveries that did not succeed at once.
///
/// The progress is the promise. Everything at or before it is settled forever. Everything after it
/// is owed, and is worked again after a crash.
package protocol ShardProgress: Sendable {
    /// Returns the current progress.
    func mark() async throws -> ProgressMark

    /// Moves the progress and records the step's exceptions and receipts in one transaction.
    ///
    /// - Throws: ``StorageError/progressMoved(_:)`` if the progress is not at `step.from`. Then
    ///   another process owns the shard, and nothing was recorded.
    func settle(_ step: SettledStep) async throws

    /// Claims once subscriptions for the change at `position`, durably, and ends them there.
    ///
    /// - Returns: The serials of the subscriptions that the change fires: those claimed now, and
    ///   those claimed for the same position before a crash.
    func claimOnce(_ serials: [UInt64], at position: LogPosition) async throws -> Set<UInt64>

    /// Returns the retries that are due at `now`, at most `limit`, except those in `excluding`,
    /// which are already being worked, and those of held lanes.
    ///
    /// Lanes share the limit equally. Within a lane, earlier due times come first.
    func dueRetries(
        at now: Timestamp, limit: Int, excluding: Set<DeliveryID>,
        unless isHeld: @escaping @Sendable (RetryLane) -> Bool
    ) async throws -> [Retry]

    /// Returns when the earliest retry falls due that is not in `excluding` and whose lane is not
    /// held, or `nil` if there is none.
    func nextRetryDue(
        excluding: Set<DeliveryID>, unless isHeld: @escaping @Sendable (RetryLane) -> Bool
    ) async throws -> Timestamp?

    /// Restarts the waits of retries that were decided later than `now`.
    ///
    /// The clock was set back since, and they would wait longer than intended.
    ///
    /// - Returns: The number of restarted waits. It is bounded, so there may be more.
    func renewWaits(at now: Timestamp) async throws -> Int

    /// Returns the retries that a newer delivery for their record would replace, newest first.
    func collapsingRetries(limit: Int) async throws -> [Retry]

    /// Returns those of `serials` whose registration has ended since the progress, as far as that
    /// is remembered; the number of remembered ends is limited.
    ///
    /// An end is known here before it is acknowledged. The call does not block.
    func endedDevices(among serials: some Sequence<UInt64>) -> Set<UInt64>

    /// The number of registrations known to have ended; reading it does not block.
    var endedDevicesCount: UInt64 { get }

    /// Returns whether the registration of a device has ended since ``endedDevicesCount`` was
    /// `count`, as far as that is remembered.
    ///
    /// The call does not block.
    func hasEnded(_ serial: UInt64, since count: UInt64) -> Bool

    /// Returns the deliveries that must no longer be sent according to the current registry, with
    /// the reasons.
    func withdrawals(among deliveries: [OwedDelivery]) async throws -> [DeliveryID: Withdrawal]

    // Held deliveries: each is a row among the retries, until a subscription has
    // `Limits.maximumHeldDeliveries` of them for a device, or a user has
    // `Limits.maximumHeldDeliveriesOfUser`. Later ones are told together: a digest counts them and
    // keeps the newest, and becomes one retry when it is due. A held delivery is always in exactly
    // one place: a retry, or an open digest.

    /// Returns the current settings that may hold back these deliveries, which have waited.
    ///
    /// A delivery without such settings is absent.
    func kindness(among deliveries: [OwedDelivery]) async throws -> [DeliveryID: Kindness]
    /// Returns the digests that are due at `now`, earliest first, at most `limit`.
    func dueDigests(at now: Timestamp, limit: Int) async throws -> [Digest]
    /// Returns when the next digest is due, or `nil` if none is open.
    func nextDigestDue() async throws -> Timestamp?
    /// Returns, for each of `lines`, the throttle places that still count at `now`.
    func throttlePasts(
        of lines: [ThrottledLine], at now: Timestamp
    ) async throws -> [ThrottlePast]
    /// Closes digests: each becomes a retry in the same transaction.
    ///
    /// A digest that has grown since it was read stays open.
    ///
    /// - Returns: The number of closed digests.
    func close(_ digests: [ClosingDigest], at now: Timestamp) async throws -> Int
    /// Makes those of `deliveries` that are held for `reason` due at `now`, because what they
    /// waited for has been decided.
    func release(
        _ deliveries: [DeliveryID], heldFor reason: HoldReason, at now: Timestamp
    ) async throws
    /// A stream, for one reader, that yields after edits of subscriptions that may release held
    /// deliveries; one element may stand for several edits.
    var heldReleased: AsyncStream<Void> { get }
}

/// The reason why an owed delivery must no longer be sent to its recipient.
package enum Withdrawal: String, Sendable, Hashable, CaseIterable {
    /// Another user has registered the device token.
    case token = "the device token belongs to another user now"
    /// The user has signed out of the device, or it was registered again with other properties.
    case device = "the device is not registered any more"
    /// The user has deleted the subscription.
    case subscription = "the subscription was deleted"
}
