package import RelayModel

/// How far a shard's log has been settled, with the exceptions: what did not simply succeed.
///
/// The progress is the promise. Everything at or before it is settled forever; everything after it
/// is owed, and is worked again after a crash.
package protocol ShardProgress: Sendable {
    /// The progress as it stands.
    func mark() async throws -> ProgressMark

    /// Moves the progress and records the step's exceptions and receipts in one transaction.
    ///
    /// - Throws: ``StorageError/progressMoved(_:)`` if the progress is not at `step.from`: somebody
    ///   else owns the shard now, and nothing was recorded.
    func settle(_ step: SettledStep) async throws

    /// Claims once subscriptions for the change at `position`, durably, and ends them there.
    ///
    /// - Returns: The serials of those which that change fires: claimed now, or claimed for the
    ///   same position before a crash.
    func claimOnce(_ serials: [UInt64], at position: LogPosition) async throws -> Set<UInt64>

    /// The retries that are due at `now`, at most `limit`; those in `excluding` are being worked
    /// already, and lanes that are held are left alone.
    ///
    /// Lanes share the limit equally, and what was due first comes first within a lane.
    func dueRetries(
        at now: Timestamp, limit: Int, excluding: Set<DeliveryID>,
        unless isHeld: @escaping @Sendable (RetryLane) -> Bool
    ) async throws -> [Retry]

    /// When the earliest retry falls due that is not in `excluding` and whose lane is not held;
    /// `nil` if there is none.
    func nextRetryDue(
        excluding: Set<DeliveryID>, unless isHeld: @escaping @Sendable (RetryLane) -> Bool
    ) async throws -> Timestamp?

    /// Lets the waits of retries begin anew that were decided later than `now`: the clock was set
    /// back since, and they would wait longer than was meant.
    ///
    /// - Returns: How many there were, of a bounded number; there may be more.
    func renewWaits(at now: Timestamp) async throws -> Int

    /// The retries that a newer delivery of their record would replace, the newest first.
    func collapsingRetries(limit: Int) async throws -> [Retry]

    /// Those of `serials` whose registration has ended, as far as it is remembered: everything that
    /// ended after the progress, up to a limit.
    ///
    /// It is known before the end is acknowledged. Nobody is waited for.
    func endedDevices(among serials: some Sequence<UInt64>) -> Set<UInt64>

    /// How many registrations are known to have ended; nobody is waited for.
    var endedDevicesCount: UInt64 { get }

    /// Whether the registration of a device has ended since ``endedDevicesCount`` was `count`, as
    /// far as it is remembered; nobody is waited for.
    func hasEnded(_ serial: UInt64, since count: UInt64) -> Bool

    /// What must not be sent any more, by the registry as it is now.
    func withdrawals(among deliveries: [OwedDelivery]) async throws -> [DeliveryID: Withdrawal]

    // Deliveries that are held back for their recipients' sake. Each is a row of its own, among the
    // retries, until a subscription has `Limits.maximumHeldDeliveries` of them for a device, or a
    // user has `Limits.maximumHeldDeliveriesOfUser`. What comes then is told together: a digest
    // counts it and keeps the newest, and becomes one retry when its time has come. A delivery is
    // always in one place: a retry, or counted by a digest that is open.

    /// What may hold deliveries back that waited, by the settings of now; those that nothing holds
    /// are not there.
    func kindness(among deliveries: [OwedDelivery]) async throws -> [DeliveryID: Kindness]
    /// The digests whose time has come, the earliest first, at most `limit`.
    func dueDigests(at now: Timestamp, limit: Int) async throws -> [Digest]
    /// When the time of the next digest comes; `nil` if none is open.
    func nextDigestDue() async throws -> Timestamp?
    /// What of the places of throttles counts still at `now`, of each of `lines`.
    func throttlePasts(
        of lines: [ThrottledLine], at now: Timestamp
    ) async throws -> [ThrottlePast]
    /// Closes digests: each becomes a retry, in the same transaction. One that has grown since it
    /// was read stays open.
    ///
    /// - Returns: How many were closed.
    func close(_ digests: [ClosingDigest], at now: Timestamp) async throws -> Int
    /// Makes due at `now` those of `deliveries` that are held for `reason`, because what held them
    /// has come to something.
    func release(
        _ deliveries: [DeliveryID], heldFor reason: HoldReason, at now: Timestamp
    ) async throws
    /// Says that subscriptions were edited whose deliveries may have been held back, one element
    /// for any number of them; for one reader.
    var heldReleased: AsyncStream<Void> { get }
}

/// Why a delivery is not its recipient's any more, although it is owed.
package enum Withdrawal: String, Sendable, Hashable, CaseIterable {
    /// Another user has registered the device token.
    case token = "the device token belongs to another user now"
    /// The user has signed out of the device, or it has registered anew in another way.
    case device = "the device is not registered any more"
    /// The user has deleted the subscription.
    case subscription = "the subscription was deleted"
}
