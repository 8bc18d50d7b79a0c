import Foundation
import GRDB
package import RelayModel

extension RelayStore {
    package func register(_ device: Device, at now: Timestamp) async throws -> DeviceVersion {
        try await write { commit in
            try DeviceStep(container: try commit.container(device.container), now: now)
                .register(device, in: &commit)
        }
    }

    package func forgetDevice(
        _ id: DeviceID, of container: ContainerKey, at now: Timestamp
    ) async throws -> Bool {
        try await write { commit in
            guard let known = try commit.db.containerIfKnown(container) else { return false }
            return try DeviceStep(container: known, now: now).forget(id, in: &commit)
        }
    }

    package func devices(
        of container: ContainerKey, owner: UserID?, limit: Int
    ) async throws -> [DeviceVersion] {
        // Two statements, because one for both cases would look at every device.
        let condition = owner == nil ? "?2 IS NULL" : "user.name = ?2"
        return try await readableRows(
            of: container, in: "device",
            sql: """
                \(VersionTable.device.select())
                WHERE device.container = ?1 AND ended IS NULL AND \(condition)
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

    package func badges() async throws -> [BadgeMark] {
        try await read { db in
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT badge.*, container.name AS containerName, container.environment,
                        user.name AS ownerName
                    FROM badge JOIN container ON container.id = badge.container
                    JOIN user ON user.id = badge.owner
                    """)
            return try rows.map { row in
                let stored = StoredRow(row: row, table: "badge")
                return BadgeMark(
                    container: try stored.containerKey(),
                    deviceID: try stored.identifier("deviceID"),
                    owner: try stored.identifier("ownerName"), badge: row["badge"])
            }
        }
    }
}

/// Edits the devices of one container.
struct DeviceStep {
    let container: StoredContainer
    let now: Timestamp

    func register(_ device: Device, in commit: inout OpenCommit) throws -> DeviceVersion {
        let (rivals, serials) = try rivals(of: device, in: commit)
        if let same = rivals.first(where: { $0.device == device }) {
            return try refresh(same, in: &commit)
        }
        // Another user must not inherit what the icon showed.
        for rival in rivals where rival.device.owner != device.owner {
            try dropBadge(rival.device.id, in: commit)
            try dropBadge(device.id, in: commit)
        }
        try handOverCourier(of: rivals, to: device, in: commit)
        try end(serials, in: commit)
        let version = try insert(device, in: commit)
        let body = LogEntryBody.deviceSaved(version, replaced: serials)
        _ = try commit.append(body, storedBody: body.storedBody, in: container, at: now)
        return version
    }

    func forget(_ id: DeviceID, in commit: inout OpenCommit) throws -> Bool {
        let serials = try UInt64.fetchAll(
            commit.db,
            sql: "SELECT serial FROM device WHERE container = ? AND deviceID = ? AND ended IS NULL",
            arguments: [container.id, id.rawValue])
        try dropBadge(id, in: commit)
        try endAndTell(serials, in: &commit)
        return !serials.isEmpty
    }

    /// Ends the devices whose token the gateway declared dead, unless they registered it anew.
    func forget(_ tokens: [DeadToken], in commit: inout OpenCommit) throws {
        let statement = try commit.db.cachedStatement(
            sql: """
                SELECT serial FROM device
                WHERE container = ? AND token = ? AND ended IS NULL AND registeredAt <= ?
                """)
        var serials: [UInt64] = []
        for token in tokens {
            serials += try UInt64.fetchAll(
                statement, arguments: [container.id, token.token.rawValue, token.since.stored])
        }
        try endAndTell(Array(Set(serials)).sorted(), in: &commit)
    }

    private func refresh(
        _ version: DeviceVersion, in commit: inout OpenCommit
    ) throws -> DeviceVersion {
        var version = version
        version.registeredAt = now
        try commit.db.cachedStatement(sql: "UPDATE device SET registeredAt = ? WHERE serial = ?")
            .execute(arguments: [now.stored, version.serial.stored])
        let body = LogEntryBody.deviceSaved(version, replaced: [])
        _ = try commit.append(body, storedBody: body.storedBody, in: container, at: now)
        return version
    }

    /// The active devices with the same ID or the same token: at most two; and their serials, also
    /// of those that cannot be read.
    private func rivals(
        of device: Device, in commit: OpenCommit
    ) throws -> (versions: [DeviceVersion], serials: [UInt64]) {
        let statement = try commit.db.cachedStatement(sql: RelayStore.rivalsOfDevice)
        let rows = try Row.fetchAll(
            statement, arguments: [container.id, device.id.rawValue, device.token.rawValue])
        return (
            rows.compactMap { try? DeviceVersion(row: $0) },
            rows.map { StoredRow(row: $0, table: "device").number("serial") }
        )
    }

    private func insert(_ device: Device, in commit: OpenCommit) throws -> DeviceVersion {
        let statement = try commit.db.cachedStatement(
            sql: """
                INSERT INTO device
                    (container, owner, deviceID, gateway, gatewayEnvironment, token, topic,
                    registeredAt, activation)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
                """)
        let owner = try commit.db.user(device.owner, of: container)
        try statement.execute(arguments: [
            container.id, owner, device.id.rawValue, device.gateway.rawValue,
            device.gatewayEnvironment.rawValue, device.token.rawValue, device.topic, now.stored,
            commit.next.stored,
        ])
        return DeviceVersion(
            serial: UInt64(clamping: commit.db.lastInsertedRowID), device: device,
            registeredAt: now, activation: commit.next)
    }

    /// Ends versions of devices, and what waits for their couriers.
    func endAndTell(_ serials: [UInt64], in commit: inout OpenCommit) throws {
        guard !serials.isEmpty else { return }
        try dropCourierNotifications(of: serials, in: commit)
        try end(serials, in: commit)
        let body = LogEntryBody.devicesEnded(serials: serials)
        _ = try commit.append(body, storedBody: body.storedBody, in: container, at: now)
    }

    /// The entry that ends the versions comes next.
    private func end(_ serials: [UInt64], in commit: OpenCommit) throws {
        let statement = try commit.db.cachedStatement(
            sql: "UPDATE device SET ended = ? WHERE serial = ? AND ended IS NULL")
        for serial in serials {
            try statement.execute(arguments: [commit.next.stored, serial.stored])
        }
    }

    private func dropBadge(_ id: DeviceID, in commit: OpenCommit) throws {
        try commit.db.cachedStatement(sql: "DELETE FROM badge WHERE container = ? AND deviceID = ?")
            .execute(arguments: [container.id, id.rawValue])
    }
}

extension RelayStore {
    /// Finds the live devices of a container with an ID or a token: its number, the ID, the token.
    ///
    /// Each has an index; asked for with OR, SQLite reads every device of the container.
    package static let rivalsOfDevice = """
        \(VersionTable.device.select())
        WHERE serial IN (
            SELECT serial FROM device WHERE container = ?1 AND deviceID = ?2 AND ended IS NULL
            UNION ALL
            SELECT serial FROM device WHERE container = ?1 AND token = ?3 AND ended IS NULL)
        ORDER BY serial
        """
}
