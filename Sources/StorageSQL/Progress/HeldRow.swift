import FoundationEssentials
import RelayModel
import Storage

/// Stores a held delivery: as a retry, or in the digest of its group.
struct HeldRow {
    let retry: Retry
    let stored: StoredDelivery
    private let group: HeldGroup

    init(_ retry: Retry, _ stored: StoredDelivery) {
        self.retry = retry
        self.stored = stored
        group = HeldGroup(retry.delivery.delivery)
    }

    private var id: Data { retry.delivery.delivery.id.stored }

    /// Returns those of `retries` whose subscription or device was edited since it was judged.
    static func outdated(among retries: [Retry], in db: Database) throws -> Set<DeliveryID> {
        let held = retries.filter { $0.reason.hold != nil && $0.judgedBy != nil }
        let subscriptions = try ended(
            held.compactMap { $0.judgedBy?.subscription }, .subscription, db)
        let devices = try ended(held.compactMap { $0.judgedBy?.device }, .device, db)
        let outdated = held.filter { retry in
            retry.judgedBy?.subscription.map { subscriptions.contains($0) } == true
                || retry.judgedBy?.device.map { devices.contains($0) } == true
        }
        return Set(outdated.map(\.delivery.delivery.id))
    }

    private static func ended(
        _ serials: [UInt64], _ table: VersionTable, _ db: Database
    ) throws -> Set<UInt64> {
        let asked = Set(serials).sorted()
        guard !asked.isEmpty else { return [] }
        let live = try Row.fetchFirsts(
            try db.cachedStatement(
                sql: "SELECT 1 FROM \(table.rawValue) WHERE serial = ? AND ended IS NULL"),
            arguments: asked.map { (serial) -> StatementArguments in [serial.stored] })
        var ended: Set<UInt64> = []
        for (serial, row) in zip(asked, live) where row == nil { ended.insert(serial) }
        return ended
    }

    /// Stores the held delivery.
    ///
    /// If what held it was edited meanwhile, it is due at once, so that the current settings judge
    /// it. The edit made existing rows due, but this row did not exist then.
    func save(of container: Int64, _ use: inout HeldUse, in db: Database) throws {
        if use.outdated.contains(retry.delivery.delivery.id) {
            var due = retry
            due.dueAt = retry.decidedAt ?? retry.dueAt
            use.noteSingle(due, container)
            return try RetryRow(due, stored).save(for: group, of: container, in: db)
        }
        guard try isToldTogether(container, &use, in: db) else {
            use.noteSingle(retry, container)
            return try RetryRow(retry, stored).save(for: group, of: container, in: db)
        }
        try db.cachedStatement(sql: "DELETE FROM retry WHERE deliveryID = ?")
            .execute(arguments: [id])
        use.forgetSingle(retry, container)
        let subscription = try use.subscription(
            of: retry.delivery.delivery, group, container, in: db)
        try fold(container, subscription, in: db)
    }

    private func isToldTogether(
        _ container: Int64, _ use: inout HeldUse, in db: Database
    ) throws -> Bool {
        if retry.reason.hold?.isTogether == true { return true }
        // A delivery that waits for a connection waits only for moments, and its number is limited
        // where connections are tracked.
        if retry.reason.hold == .connected { return false }
        if use.isOverfull(with: retry, container) { return true }
        guard try use.isFull(retry.delivery.delivery, container, in: db) else { return false }
        // A delivery that has a row keeps it.
        let own = try db.cachedStatement(sql: "SELECT 1 FROM retry WHERE deliveryID = ?")
        return try Int.fetchOne(own, arguments: [id]) == nil
    }

    /// Puts the delivery into the open digest of its group, or opens a digest with it.
    ///
    /// An open digest keeps its due time.
    ///
    /// The group is that of `subscription` and the device.
    private func fold(_ container: Int64, _ subscription: String, in db: Database) throws {
        let decidedAt = (retry.decidedAt ?? retry.dueAt).stored
        let owed = retry.delivery
        try db.cachedStatement(
            sql: """
                INSERT INTO digest
                    (container, owner, subscription, device, reason, openedAt, dueAt, decidedAt,
                    deliveries, count, deliveryID, position, "offset", subscriptionSerial,
                    deviceSerial, body)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (container, owner, subscription, device) WHERE closedAt IS NULL
                DO UPDATE SET deliveries = digest.deliveries + 1,
                    count = digest.count + excluded.count,
                    openedAt = min(digest.openedAt, excluded.openedAt)
                """
        ).execute(arguments: [
            container, group.owner, subscription, group.device,
            retry.reason.hold?.rawValue ?? "", decidedAt, retry.dueAt.stored, decidedAt,
            owed.delivery.standsFor ?? 1, id, owed.delivery.ordinal.position.stored,
            Int64(owed.delivery.ordinal.offset), owed.subscriptionSerial.stored,
            owed.deviceSerial.stored, stored.body,
        ])
        try db.cachedStatement(
            sql: """
                UPDATE digest SET deliveryID = ?5, position = ?6, "offset" = ?7,
                    subscriptionSerial = ?8, deviceSerial = ?9, body = ?10
                WHERE container = ?1 AND owner = ?2 AND subscription = ?3 AND device = ?4
                    AND closedAt IS NULL AND (position, "offset") < (?6, ?7)
                """
        ).execute(arguments: [
            container, group.owner, subscription, group.device, id,
            owed.delivery.ordinal.position.stored, Int64(owed.delivery.ordinal.offset),
            owed.subscriptionSerial.stored, owed.deviceSerial.stored, stored.body,
        ])
    }
}
