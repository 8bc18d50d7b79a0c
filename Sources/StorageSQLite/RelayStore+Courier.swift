import Foundation
import GRDB
package import RelayModel
package import Storage

extension RelayStore {
    package func createCourier(
        for device: Device, named naming: DeviceNaming, at now: Timestamp
    ) async throws -> DeviceVersion {
        precondition(device.gateway == .courier)
        return try await counted {
            try await write(of: device.container) { commit in
                let container = try commit.container(device.container)
                try commit.db.execute(
                    sql: "INSERT INTO courier (token, createdAt, polledAt) VALUES (?, ?, ?)",
                    arguments: [device.token.rawValue, now.stored, now.stored])
                let step = DeviceStep(container: container, now: now)
                let version = try step.register(device, named: naming, in: &commit)
                try step.endSurplusCouriers(of: device.owner, in: &commit)
                return version
            }
        }
    }

    package func courier(_ token: DeviceToken) async throws -> CourierStanding? {
        try await read { db in
            let statement = try db.cachedStatement(
                sql: """
                    SELECT polledAt, EXISTS (
                        SELECT 1 FROM device WHERE device.token = courier.token
                            AND device.gateway = 'courier' AND device.ended IS NULL
                    ) AS isRegistered
                    FROM courier WHERE token = ?
                    """)
            return try Row.fetchOne(statement, arguments: [token.rawValue]).map { row in
                CourierStanding(
                    isRegistered: row["isRegistered"],
                    polledAt: Timestamp(stored: row["polledAt"]))
            }
        }
    }

    package func notePoll(of courier: DeviceToken, at now: Timestamp) async throws {
        try await write { commit in
            try commit.db.cachedStatement(sql: "UPDATE courier SET polledAt = ? WHERE token = ?")
                .execute(arguments: [now.stored, courier.rawValue])
        }
    }

    // MARK: Queueing

    package func queue(
        _ deliveries: [CourierDelivery], bounds: CourierBounds, at now: Timestamp
    ) async throws -> CourierQueueing {
        guard !deliveries.isEmpty else { return CourierQueueing(outcomes: [], dropped: 0) }
        return try await write(changes: deliveries.count) { commit in
            try CourierStep(bounds: bounds, now: now).queue(deliveries, in: commit.db)
        }
    }

    package func takeNotification(
        of courier: DeviceToken, at now: Timestamp
    ) async throws -> TakenNotification? {
        // Most polls find nothing, and a look costs no commit.
        let isWaiting = try await read { db in
            try CourierStep.next(of: courier, at: now, in: db) != nil
        }
        guard isWaiting else { return nil }
        return try await write { commit in
            guard let next = try CourierStep.next(of: courier, at: now, in: commit.db) else {
                return nil
            }
            try commit.db.cachedStatement(
                sql: "UPDATE courierNotification SET takenAt = ?, payload = NULL WHERE id = ?"
            ).execute(arguments: [now.stored, next.number])
            return next
        }
    }

    package func putBack(_ notification: TakenNotification) async throws {
        try await write { commit in
            try commit.db.cachedStatement(
                sql: """
                    UPDATE courierNotification SET takenAt = NULL, payload = ?
                    WHERE id = ? AND takenAt IS NOT NULL
                    """
            ).execute(arguments: [
                String(decoding: notification.payload, as: UTF8.self), notification.number,
            ])
        }
    }

    package func couriers(
        of container: ContainerKey, limit: Int
    ) async throws -> [CourierOverview] {
        let waiting = """
            , courier.polledAt,
                (SELECT count(*) FROM courierNotification
                    WHERE courier = courier.id AND container = device.container
                        AND takenAt IS NULL) AS waiting
            """
        return try await rows(
            of: container,
            sql: """
                \(VersionTable.device.select(waiting))
                    JOIN courier ON courier.token = device.token
                WHERE device.container = ? AND ended IS NULL AND gateway = 'courier'
                ORDER BY serial LIMIT ?
                """, arguments: [max(0, limit)]
        ) { row in
            CourierOverview(
                device: try DeviceVersion(row: row), waiting: row["waiting"],
                polledAt: Timestamp(stored: row["polledAt"]))
        }
    }
}

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
        let statement = try db.cachedStatement(
            sql: """
                SELECT courier.id, device.token, device.owner FROM device
                    JOIN user ON user.id = device.owner
                    JOIN courier ON courier.token = device.token
                WHERE device.container = ? AND device.deviceID = ? AND device.ended IS NULL
                    AND device.gateway = 'courier' AND user.name = ?
                """)
        let row = try Row.fetchOne(
            statement,
            arguments: [container.id, delivery.deviceID.rawValue, delivery.owner.rawValue])
        guard let row else { return nil }
        let stored = StoredRow(row: row, table: "device")
        return Address(
            courier: row["id"], token: try stored.identifier("token"), container: container.id,
            owner: row["owner"])
    }

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
        try db.cachedStatement(
            sql: """
                UPDATE courierNotification SET takenAt = ?, payload = NULL
                WHERE courier = ? AND id <= ? AND takenAt IS NULL
                """
        ).execute(arguments: [now.stored, courier, surplus])
        return db.changesCount
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
