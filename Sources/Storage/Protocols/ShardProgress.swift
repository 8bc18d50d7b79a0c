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

    /// What must not be sent any more, by the registry as it is now.
    func withdrawals(among deliveries: [OwedDelivery]) async throws -> [DeliveryID: Withdrawal]
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

/// A place inside the log's fan-out.
package struct ProgressMark: Sendable, Hashable, Comparable {
    /// Every entry up to this position is settled.
    package let position: LogPosition
    /// How many deliveries of the next entry are settled too.
    package let offset: UInt32

    /// The mark of a new log.
    package static let start = ProgressMark(position: .start, offset: 0)

    package init(position: LogPosition, offset: UInt32) {
        self.position = position
        self.offset = offset
    }

    /// Orders by position, then by offset.
    package static func < (left: ProgressMark, right: ProgressMark) -> Bool {
        (left.position, left.offset) < (right.position, right.offset)
    }
}

/// What one transaction of settling records.
package struct SettledStep: Sendable, Hashable {
    /// Where the progress must stand.
    package var from: ProgressMark
    /// Where it stands afterwards; equal to `from` if only retries were settled.
    package var to: ProgressMark
    /// A record of each attempt with its outcome, in any order.
    package var receipts: [DeliveryReceipt] = []
    /// Deliveries that must be tried again: new ones, and those tried again without success.
    package var retries: [Retry] = []
    /// Retries that ended, with or without success.
    package var endedRetries: [DeliveryID] = []
    /// Deliveries that ended without success.
    package var deadLetters: [DeadLetter] = []
    /// Tokens that the gateway says are dead.
    package var deadTokens: [DeadToken] = []
    /// Devices' badges as of ``to``.
    package var badges: [BadgeMark] = []
    /// Ranges of the changes that the step passes.
    package var newRanges: [NewRange] = []
    /// How far ranges are settled.
    package var rangeSteps: [RangeStep] = []
    /// What the accounts of containers grow by.
    package var tallies: [ContainerKey: DeliveryTally] = [:]
    /// Notifications for inboxes; one that is there already stays as it is.
    package var inbox: [InboxEntry] = []

    /// Creates a step that records nothing but the progress.
    package init(from: ProgressMark, to: ProgressMark) {
        self.from = from
        self.to = to
    }
}

/// What one step adds to the account of a container.
package struct DeliveryTally: Sendable, Hashable {
    /// Deliveries that the step passes: their first attempt has ended, however.
    package var owed = 0
    /// Deliveries that the gateway accepted, at whichever attempt.
    package var delivered = 0

    package init() {}
}

/// The record of one attempt.
package struct DeliveryReceipt: Sendable, Hashable {
    /// How an attempt ended.
    package enum Outcome: UInt8, Sendable, Hashable, CaseIterable {
        /// The gateway accepted the push.
        case accepted = 1
        /// It will be tried again.
        case deferred = 2
        /// The device token is dead.
        case unregistered = 3
        /// It became a dead letter.
        case dead = 4
    }

    /// The delivery.
    package var deliveryID: DeliveryID
    /// Where it is owed.
    package var ordinal: DeliveryOrdinal
    /// The serial of the subscription's version.
    package var subscriptionSerial: UInt64
    /// The serial of the device's version.
    package var deviceSerial: UInt64
    /// How the attempt ended.
    package var outcome: Outcome
    /// The gateway's status code; 0 if there was no answer.
    package var status: UInt16
    /// The gateway's reason, or the transport's; empty if accepted.
    package var reason: String
    /// Which attempt it was, from 1.
    package var attempt: UInt16
    /// When it ended.
    package var at: Timestamp

    package init(
        deliveryID: DeliveryID, ordinal: DeliveryOrdinal, subscriptionSerial: UInt64,
        deviceSerial: UInt64, outcome: Outcome, status: UInt16, reason: String, attempt: UInt16,
        at: Timestamp
    ) {
        self.deliveryID = deliveryID
        self.ordinal = ordinal
        self.subscriptionSerial = subscriptionSerial
        self.deviceSerial = deviceSerial
        self.outcome = outcome
        self.status = status
        self.reason = reason
        self.attempt = attempt
        self.at = at
    }
}

/// A delivery that is to be tried again.
package struct Retry: Sendable, Hashable {
    /// The delivery; its identity stays.
    package var delivery: OwedDelivery
    /// The attempts made so far.
    package var attempts: UInt16
    /// When it falls due.
    package var dueAt: Timestamp
    /// The moment at which that was decided: if the clock is before it, the clock was set back
    /// since; `nil` if that is not known.
    package var decidedAt: Timestamp?
    /// Why it waits.
    package var reason: WaitReason

    package init(
        delivery: OwedDelivery, attempts: UInt16, dueAt: Timestamp, reason: WaitReason
    ) {
        self.delivery = delivery
        self.attempts = attempts
        self.dueAt = dueAt
        self.reason = reason
    }
}

/// A delivery with the registry's numbers of what it came from.
package struct OwedDelivery: Sendable, Hashable {
    /// The delivery.
    package var delivery: Delivery
    /// The serial of the subscription's version.
    package var subscriptionSerial: UInt64
    /// The serial of the device's version.
    package var deviceSerial: UInt64

    package init(_ delivery: Delivery, subscriptionSerial: UInt64, deviceSerial: UInt64) {
        self.delivery = delivery
        self.subscriptionSerial = subscriptionSerial
        self.deviceSerial = deviceSerial
    }
}

/// A delivery that ended without success, kept with its reason.
package struct DeadLetter: Sendable, Hashable {
    /// The delivery.
    package var delivery: OwedDelivery
    /// The attempts made.
    package var attempts: UInt16
    /// The gateway's status code; 0 if there was no answer.
    package var status: UInt16
    /// Why it ended.
    package var reason: String
    /// When it ended.
    package var at: Timestamp

    package init(
        delivery: OwedDelivery, attempts: UInt16, status: UInt16, reason: String, at: Timestamp
    ) {
        self.delivery = delivery
        self.attempts = attempts
        self.status = status
        self.reason = reason
        self.at = at
    }
}

/// A token that the gateway says is dead.
package struct DeadToken: Sendable, Hashable {
    /// The container and environment of the device.
    package var container: ContainerKey
    /// The token.
    package var token: DeviceToken
    /// Since when, by the gateway's clock: a registration after this moment stays.
    package var since: Timestamp

    package init(container: ContainerKey, token: DeviceToken, since: Timestamp) {
        self.container = container
        self.token = token
        self.since = since
    }
}

/// A device's badge as of the progress.
package struct BadgeMark: Sendable, Hashable {
    /// The container and environment of the device.
    package var container: ContainerKey
    /// The device.
    package var deviceID: DeviceID
    /// The user whose device it was: a mark of an earlier owner is not recorded.
    package var owner: UserID
    /// The number on the application's icon.
    package var badge: Int64

    package init(container: ContainerKey, deviceID: DeviceID, owner: UserID, badge: Int64) {
        self.container = container
        self.deviceID = deviceID
        self.owner = owner
        self.badge = badge
    }
}
