package import RelayModel
package import Storage

extension RelayStore {
    package func register(
        _ device: Device, named naming: DeviceNaming, _ spared: DeviceSparing, at now: Timestamp
    ) async throws -> DeviceVersion {
        try await counted {
            try await write(of: device.container) { commit in
                try DeviceStep(container: try commit.container(device.container), now: now)
                    .register(device, named: naming, spared, in: &commit)
            }
        }
    }

    package func forgetDevice(
        _ id: DeviceID, of user: UserID, in container: ContainerKey, at now: Timestamp
    ) async throws -> Bool {
        try await write(of: container) { commit in
            guard let known = try commit.db.containerIfKnown(container) else { return false }
            return try DeviceStep(container: known, now: now).forget(id, of: user, in: &commit)
        }
    }

    package func holders(
        of id: DeviceID, in container: ContainerKey, limit: Int
    ) async throws -> [UserID] {
        try await rows(
            of: container,
            sql: """
                SELECT user.name FROM device JOIN user ON user.id = device.owner
                WHERE device.container = ? AND deviceID = ? AND ended IS NULL
                ORDER BY user.name LIMIT ?
                """, arguments: [id.rawValue, max(0, limit)]
        ) { try StoredRow(row: $0, table: "user").identifier("name") }
    }

    package func devices(
        of container: ContainerKey, owner: UserID?, limit: Int
    ) async throws -> [DeviceVersion] {
        let condition = VersionTable.liveDevices(ofOne: owner != nil)
        return try await readableRows(
            of: container, in: "device",
            sql: """
                \(VersionTable.device.select())
                WHERE \(condition)
                ORDER BY serial LIMIT ?3
                """, arguments: [owner?.rawValue, max(0, limit)]
        ) { try DeviceVersion(row: $0) }
    }

    package func devices(
        activeAt position: LogPosition, after serial: UInt64, limit: Int
    ) async throws -> [DeviceVersion] {
        try await versions(in: .device, activeAt: position, after: serial, limit) {
            var rows = DeviceRows()
            return { try rows.version($0) }
        }
    }

    package func badges() async throws -> [BadgeHolder: Int64] {
        try await read { try Self.badges(in: $0) }
    }

    /// Returns the badges of all devices that have one.
    ///
    /// There may be one for each device. A server sends a part of them at a time and looks up each
    /// user's name separately, so that no part exceeds the time limit of a statement.
    static func badges(in db: Database) throws -> [BadgeHolder: Int64] {
        let rows = try Row.fetchCursor(
            db,
            sql: """
                SELECT badge.*, container.name AS containerName, container.environment,
                    (SELECT name FROM user WHERE user.id = badge.owner) AS ownerName
                FROM badge JOIN container ON container.id = badge.container
                """)
        var badges: [BadgeHolder: Int64] = [:]
        while let row = try rows.next() {
            let stored = StoredRow(row: row, table: "badge")
            let holder = BadgeHolder(
                container: try stored.containerKey(),
                deviceID: try stored.identifier("deviceID"),
                owner: try stored.identifier("ownerName"))
            badges[holder] = row["badge"]
        }
        return badges
    }
}
