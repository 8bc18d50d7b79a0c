package import RelayModel
package import Storage

extension RelayStore {
    package func subscriptionPage(
        of owner: SubscriptionOwner, after id: SubscriptionID?, _ bounds: PageBounds
    ) async throws -> Page<SubscriptionVersion> {
        try await subscriptionPage(
            bounds,
            sql: """
                \(VersionTable.subscription.select())
                WHERE container.name = ?1 AND container.environment = ?2 AND user.name = ?3
                    AND database = ?4 AND ended IS NULL AND subscriptionID > ?5
                ORDER BY subscriptionID
                """,
            [
                owner.container.container.rawValue, owner.container.environment.rawValue,
                owner.user.rawValue, owner.database.rawValue, id?.rawValue ?? "",
            ])
    }

    package func subscriptionPage(
        of container: ContainerKey, user: UserID?, after serial: UInt64, _ bounds: PageBounds
    ) async throws -> Page<SubscriptionVersion> {
        try await subscriptionPage(
            bounds,
            sql: """
                \(VersionTable.subscription.select())
                WHERE serial > ?1 AND container.name = ?2 AND container.environment = ?3
                    AND (?4 IS NULL OR user.name = ?4) AND ended IS NULL
                ORDER BY serial
                """,
            [
                serial.stored, container.container.rawValue, container.environment.rawValue,
                user?.rawValue,
            ])
    }

    private func subscriptionPage(
        _ bounds: PageBounds, sql: String, _ arguments: StatementArguments
    ) async throws -> Page<SubscriptionVersion> {
        try await read { [unreadable] db in
            let rows = try Row.fetchCursor(db, sql: sql, arguments: arguments)
            return try bounds.page(of: rows) { row in
                let version = try unreadable.value(of: row, in: "subscription") {
                    try SubscriptionVersion(row: $0)
                }
                return (version, row.bytes(of: "body"))
            }
        }
    }

    package func devicePage(
        of container: ContainerKey, owner: UserID?, after serial: UInt64, _ bounds: PageBounds
    ) async throws -> Page<DeviceVersion> {
        let condition = VersionTable.liveDevices(ofOne: owner != nil)
        return try await read { [unreadable] db in
            guard let container = try db.containerIfKnown(container) else {
                return Page([], hasMore: false)
            }
            let rows = try Row.fetchCursor(
                db,
                sql: """
                    \(VersionTable.device.select())
                    WHERE \(condition) AND serial > ?3
                    ORDER BY serial
                    """, arguments: [container.id, owner?.rawValue, serial.stored])
            return try bounds.page(of: rows) { row in
                let version = try unreadable.value(of: row, in: "device") {
                    try DeviceVersion(row: $0)
                }
                return (version, row.bytes(of: "token", "deviceID", "topic"))
            }
        }
    }
}

extension RelayStore {
    package func rowCounts(
        of key: ContainerKey, limit: Int
    ) async throws -> (devices: Int, parked: Int, retries: Int, deadLetters: Int) {
        try await read { db in
            guard let container = try db.containerIfKnown(key) else { return (0, 0, 0, 0) }
            func count(_ table: String, _ condition: String = "TRUE") throws -> Int {
                let sql = """
                    SELECT count(*) FROM (
                        SELECT 1 FROM \(table) WHERE container = ? AND \(condition) LIMIT ?)
                        AS counted
                    """
                return try Int.fetchOne(db, sql: sql, arguments: [container.id, limit]) ?? 0
            }
            return (
                try count("device", "ended IS NULL"), try count("parkedChange"),
                try count("retry"), try count("deadLetter")
            )
        }
    }
}

extension RelayStore {
    package func userPage(
        of key: ContainerKey, after name: UserID?, prefix: String, _ bounds: PageBounds
    ) async throws -> Page<UserOverview> {
        try await read { db in
            guard let container = try db.containerIfKnown(key) else {
                return Page([], hasMore: false)
            }
            // The counts are maintained with the quotas. No name sorts after the last character.
            let rows = try Row.fetchCursor(
                db,
                sql: """
                    SELECT name,
                        coalesce((SELECT number FROM quotaUse WHERE container = ?1 AND thing = 1
                            AND holder = CAST(user.id AS TEXT)), 0) AS subscriptions,
                        coalesce((SELECT number FROM quotaUse WHERE container = ?1 AND thing = 2
                            AND holder = CAST(user.id AS TEXT)), 0) AS devices
                    FROM user
                    WHERE container = ?1 AND name > ?2 AND name >= ?3 AND name < ?4
                    ORDER BY name
                    """,
                arguments: [
                    container.id, name?.rawValue ?? "", prefix, prefix + "\u{10FFFF}",
                ])
            return try bounds.page(of: rows) { row in
                let user = UserID(rawValue: row["name"]).map {
                    UserOverview(
                        user: $0, devices: row["devices"], subscriptions: row["subscriptions"])
                }
                return (user, row.bytes(of: "name"))
            }
        }
    }
}
