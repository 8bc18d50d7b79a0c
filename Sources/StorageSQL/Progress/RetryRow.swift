import FoundationEssentials
import RelayModel
import Storage

/// A delivery with its JSON text, encoded before the writer's turn.
struct StoredDelivery: Sendable {
    let owed: OwedDelivery
    let body: String

    init(_ owed: OwedDelivery) throws(JSONContractError) {
        self.owed = owed
        body = try JSONValue.object(owed.delivery.storedForm).storedText()
    }

    /// Returns the columns that retries and dead letters begin with.
    ///
    /// `container` is the delivery's container.
    func columns(of container: Int64) -> StatementArguments {
        let delivery = owed.delivery
        return [
            container, delivery.id.stored,
            delivery.ordinal.position.stored, Int64(delivery.ordinal.offset),
            owed.subscriptionSerial.stored, owed.deviceSerial.stored, body,
            delivery.owner.rawValue,
        ]
    }
}

/// Writes the row of a retry, replacing an existing one of the delivery.
struct RetryRow {
    private let retry: Retry
    private let stored: StoredDelivery

    init(_ retry: Retry, _ stored: StoredDelivery) {
        self.retry = retry
        self.stored = stored
    }

    /// Writes the row.
    ///
    /// `group` is the group for which the delivery is held, if it is held.
    func save(
        for group: HeldGroup? = nil, of container: Int64, in db: Database
    ) throws {
        let statement = try db.cachedStatement(
            sql: """
                INSERT INTO retry
                    (container, deliveryID, position, "offset", subscriptionSerial, deviceSerial,
                    body, owner, attempts, dueAt, decidedAt, reason, lane, collapses, heldOwner,
                    heldSubscription, heldDevice)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (deliveryID) DO UPDATE SET
                    attempts = excluded.attempts, dueAt = excluded.dueAt,
                    decidedAt = excluded.decidedAt, reason = excluded.reason,
                    body = excluded.body, heldOwner = excluded.heldOwner,
                    heldSubscription = excluded.heldSubscription,
                    heldDevice = excluded.heldDevice
                """)
        try statement.execute(
            arguments: stored.columns(of: container)
                + [
                    Int64(retry.attempts), retry.dueAt.stored,
                    (retry.decidedAt ?? retry.dueAt).stored, retry.reason.stored,
                    RetryLane(of: stored.owed.delivery).stored,
                    stored.owed.delivery.collapsingRecord == nil ? 0 : 1,
                    group?.owner, group?.subscription, group?.device,
                ])
    }
}
