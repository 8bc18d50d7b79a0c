import FoundationEssentials
import RelayModel
import Storage

/// Writes into couriers' queues.
struct CourierStep: Sendable {
    let bounds: CourierBounds
    let now: Timestamp

    private struct Address {
        let courier: Int64
        let token: DeviceToken
        let container: Int64
        let owner: Int64
    }

    func queue(_ deliveries: [CourierDelivery], in db: Database) throws -> CourierQueueing {
        var result = CourierQueueing(outcomes: [], dropped: 0)
        for delivery in deliveries {
            result.outcomes.append(try queue(delivery, in: db, dropped: &result.dropped))
        }
        return result
    }

    private func queue(
        _ delivery: CourierDelivery, in db: Database, dropped: inout Int
    ) throws -> CourierQueueing.Outcome {
        let known = try Bool.fetchOne(
            db.cachedStatement(
                sql: "SELECT EXISTS (SELECT 1 FROM courierNotification WHERE deliveryID = ?)"),
            arguments: [delivery.deliveryID.stored])
        if known == true { return .known }
        guard let address = try address(of: delivery, in: db) else { return .unregistered }
        if let collapseID = delivery.collapseID {
            try db.cachedStatement(
                sql: """
                    UPDATE courierNotification SET takenAt = ?, payload = NULL
                    WHERE courier = ? AND container = ? AND collapseID = ? AND takenAt IS NULL
                    """
            ).execute(arguments: [now.stored, address.courier, address.container, collapseID])
        }
        try insert(delivery, for: address, in: db)
        dropped += try dropSurplus(of: address.courier, in: db)
        return .queued(address.token)
    }

    /// The courier that the device has now: it may have another token than when the delivery was
    /// composed.
    private func address(of delivery: CourierDelivery, in db: Database) throws -> Address? {
        guard let container = try db.containerIfKnown(delivery.container) else { return nil }
        let row = try Row.fetchOne(
            db.cachedStatement(sql: Self.addressStatement),
            arguments: [container.id, delivery.owner.rawValue, delivery.deviceID.rawValue])
        guard let row else { return nil }
        let stored = StoredRow(row: row, table: "device")
        return Address(
            courier: row["id"], token: try stored.identifier("token"), container: container.id,
            owner: row["owner"])
    }

    /// Begins with the user, because users who share an ID of a device may be many.
    static let addressStatement = """
        SELECT courier.id, device.token, device.owner FROM user
            CROSS JOIN device INDEXED BY deviceActiveID
                ON device.container = user.container AND device.owner = user.id
            CROSS JOIN courier ON courier.token = device.token
        WHERE user.container = ? AND user.name = ? AND device.deviceID = ?
            AND device.ended IS NULL AND device.gateway = 'courier'
        """

    private func insert(
        _ delivery: CourierDelivery, for address: Address, in db: Database
    ) throws {
        let latest = now.advanced(by: bounds.age)
        let earliest = now.advanced(by: bounds.gap)
        let expiration = min(max(delivery.expiration ?? latest, earliest), latest)
        try db.cachedStatement(
            sql: """
                INSERT INTO courierNotification
                    (courier, container, owner, deliveryID, position, collapseID, payload, queuedAt,
                    expiresAt)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
                """
        ).execute(arguments: [
            address.courier, address.container, address.owner, delivery.deliveryID.stored,
            delivery.position.stored, delivery.collapseID,
            String(decoding: delivery.payload, as: UTF8.self), now.stored, expiration.stored,
        ])
    }

    private func dropSurplus(of courier: Int64, in db: Database) throws -> Int {
        let surplus = try Int64.fetchOne(
            db.cachedStatement(
                sql: """
                    SELECT id FROM courierNotification WHERE courier = ? AND takenAt IS NULL
                    ORDER BY id DESC LIMIT 1 OFFSET ?
                    """), arguments: [courier, bounds.count])
        guard let surplus else { return 0 }
        return try db.cachedStatement(
            sql: """
                UPDATE courierNotification SET takenAt = ?, payload = NULL
                WHERE courier = ? AND id <= ? AND takenAt IS NULL
                """
        ).executeCounting(arguments: [now.stored, courier, surplus])
    }

    /// The oldest notification that waits for a courier and is for the user whose device it is now.
    static func next(
        of courier: DeviceToken, at now: Timestamp, in db: Database
    ) throws -> TakenNotification? {
        let statement = try db.cachedStatement(
            sql: """
                SELECT waiting.id, waiting.payload
                FROM courier
                    JOIN courierNotification AS waiting ON waiting.courier = courier.id
                    JOIN device ON device.container = waiting.container
                        AND device.token = courier.token AND device.ended IS NULL
                WHERE courier.token = ?1 AND waiting.takenAt IS NULL AND waiting.expiresAt > ?2
                    AND device.owner = waiting.owner AND device.gateway = 'courier'
                ORDER BY waiting.id LIMIT 1
                """)
        return try Row.fetchOne(statement, arguments: [courier.rawValue, now.stored]).map { row in
            TakenNotification(number: row["id"], payload: Array((row["payload"] as String).utf8))
        }
    }
}
