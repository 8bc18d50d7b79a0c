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
                    SELECT courier.polledAt, device.container, device.owner
                    FROM courier LEFT JOIN device ON device.token = courier.token
                        AND device.gateway = 'courier' AND device.ended IS NULL
                    WHERE courier.token = ? ORDER BY device.serial LIMIT 1
                    """)
            return try Row.fetchOne(statement, arguments: [token.rawValue]).map { row in
                let container = row["container"] as Int64?
                return CourierStanding(
                    party: container.map { CourierParty(container: $0, user: row["owner"]) },
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
        // Most polls find nothing, and a read needs no commit.
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
