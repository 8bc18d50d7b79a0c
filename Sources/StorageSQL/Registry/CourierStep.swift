import FoundationEssentials
import RelayModel
import Storage

/// Writes to couriers' queues.
struct CourierStep: Sendable {
    let bounds: CourierBounds
    let now: Timestamp

    private struct Address {
        let courier: Int64
        let token: DeviceToken
        let container: Int64
        let owner: Int64
    }

    /// Queues deliveries in their order.
    ///
    /// All deliveries are looked up together, because there may be hundreds and all other writers
    /// wait.
    func queue(_ deliveries: [CourierDelivery], in db: Database) throws -> CourierQueueing {
        var known = try known(among: deliveries, in: db)
        let addresses = try addresses(of: deliveries, in: db)
        var couriers: Set<Int64> = []
        var outcomes: [CourierQueueing.Outcome] = []
        outcomes.reserveCapacity(deliveries.count)
        for (delivery, address) in zip(deliveries, addresses) {
            if known.contains(delivery.deliveryID) {
                outcomes.append(.known)
            } else if let address {
                try queue(delivery, for: address, in: db)
                known.insert(delivery.deliveryID)
                couriers.insert(address.courier)
                outcomes.append(.queued(address.token))
            } else {
                outcomes.append(.unregistered)
            }
        }
        let dropped = try dropSurplus(of: couriers.sorted(), in: db)
        return CourierQueueing(outcomes: outcomes, dropped: dropped)
    }

    /// Returns the IDs of deliveries that were queued before.
    private func known(
        among deliveries: [CourierDelivery], in db: Database
    ) throws -> Set<DeliveryID> {
        let found = try Row.fetchFirsts(
            db.cachedStatement(sql: "SELECT 1 FROM courierNotification WHERE deliveryID = ?"),
            arguments: deliveries.map { delivery -> StatementArguments in
                [delivery.deliveryID.stored]
            })
        return Set(
            zip(deliveries, found).compactMap { delivery, row -> DeliveryID? in
                row == nil ? nil : delivery.deliveryID
            })
    }

    private func queue(
        _ delivery: CourierDelivery, for address: Address, in db: Database
    ) throws {
        if let collapseID = delivery.collapseID {
            try db.cachedStatement(
                sql: """
                    UPDATE courierNotification SET takenAt = ?, payload = NULL
                    WHERE courier = ? AND container = ? AND collapseID = ? AND takenAt IS NULL
                    """
            ).execute(arguments: [now.stored, address.courier, address.container, collapseID])
        }
        try insert(delivery, for: address, in: db)
    }

    /// Returns the couriers that the devices have now, or `nil` for devices without one.
    ///
    /// Their tokens may differ from those at the time when the deliveries were composed.
    private func addresses(
        of deliveries: [CourierDelivery], in db: Database
    ) throws -> [Address?] {
        let containers = try db.numbers(of: deliveries.map(\.container))
        let rows = try Row.fetchFirsts(
            db.cachedStatement(sql: Self.addressStatement),
            arguments: deliveries.map { delivery -> StatementArguments in
                [
                    containers[delivery.container], delivery.owner.rawValue,
                    delivery.deviceID.rawValue,
                ]
            })
        return try zip(deliveries, rows).map { delivery, row -> Address? in
            guard let row, let container = containers[delivery.container] else { return nil }
            let stored = StoredRow(row: row, table: "device")
            return Address(
                courier: row["id"], token: try stored.identifier("token"), container: container,
                owner: row["owner"])
        }
    }

    /// Starts with the user, because many users may share a device ID.
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

    /// Drops the oldest waiting notifications beyond the maximum of each courier, and returns their
    /// number.
    private func dropSurplus(of couriers: [Int64], in db: Database) throws -> Int {
        let last = try Row.fetchFirsts(
            db.cachedStatement(
                sql: """
                    SELECT id FROM courierNotification WHERE courier = ? AND takenAt IS NULL
                    ORDER BY id DESC LIMIT 1 OFFSET ?
                    """),
            arguments: couriers.map { courier -> StatementArguments in [courier, bounds.count] })
        var surplus: [StatementArguments] = []
        for case (let courier, let row?) in zip(couriers, last) {
            surplus.append([now.stored, courier, row["id"] as Int64])
        }
        let dropped = try Row.fetchAlls(
            db.cachedStatement(
                sql: """
                    UPDATE courierNotification SET takenAt = ?, payload = NULL
                    WHERE courier = ? AND id <= ? AND takenAt IS NULL RETURNING id
                    """), arguments: surplus)
        return dropped.reduce(0) { $0 + $1.count }
    }

    /// Returns the oldest notification that waits for a courier and belongs to the current user of
    /// its device.
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
