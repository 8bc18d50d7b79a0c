import FoundationEssentials
package import RelayModel
package import Storage

extension RelayStore: ClientReceiptRegistry {
    package func note(
        _ marks: [ClientMark], of user: InboxOwner, at now: Timestamp
    ) async throws -> [NotedMark] {
        guard !marks.isEmpty else { return [] }
        return try await write(of: user.container, changes: marks.count) { commit in
            let container = try commit.container(user.container)
            let step = ClientReceiptStep(
                owner: try commit.db.user(user.user, of: container), now: now)
            let noted = try step.note(marks, in: commit.db)
            // A mark without a device may add a row without being a new delivery.
            if noted.contains(where: { $0.isNewDelivery || $0.receipt.device == nil }) {
                try step.dropSurplus(in: commit.db)
            }
            return noted
        }
    }

    package func clientReceipts(
        of user: InboxOwner, at positions: Set<LogPosition>
    ) async throws -> [ClientReceipt] {
        guard !positions.isEmpty else { return [] }
        return try await read { db in
            guard let owner = try InboxStep.owner(user, in: db) else { return [] }
            let find = try db.cachedStatement(
                sql: "SELECT * FROM clientReceipt WHERE owner = ? AND position = ?")
            let found = try Row.fetchAlls(
                find,
                arguments: positions.map { position -> StatementArguments in
                    [owner, position.stored]
                })
            return try found.flatMap { rows in try rows.map { try ClientReceipt(row: $0) } }
        }
    }

    package func positions(
        ofNotifications ids: [UUIDBytes], of user: InboxOwner
    ) async throws -> [UUIDBytes: LogPosition] {
        guard !ids.isEmpty else { return [:] }
        return try await read { db in
            guard let owner = try InboxStep.owner(user, in: db) else { return [:] }
            let find = try db.cachedStatement(
                sql: """
                    SELECT position FROM notification INDEXED BY notificationID
                    WHERE owner = ? AND notificationID = ? LIMIT 1
                    """)
            let found = try Row.fetchFirsts(
                find, arguments: ids.map { id -> StatementArguments in [owner, Data(id.bytes)] })
            var positions: [UUIDBytes: LogPosition] = [:]
            for case (let id, let row?) in zip(ids, found) {
                positions[id] = LogPosition(stored: row[0] as Int64)
            }
            return positions
        }
    }

    package func receipts(
        amongNewest bound: Int, at position: LogPosition?,
        where isWanted: @escaping @Sendable (DeliveryReceipt) -> Bool
    ) async throws -> [DeliveryReceipt] {
        var filter = ReceiptFilter()
        filter.position = position
        let scan = ReceiptScan(
            filter: filter, limit: .max, bound: min(bound, settings.scannedReceipts),
            isWanted: isWanted)
        return try await read { try scan.run(in: $0) }
    }

    package func holders(ofDevices serials: Set<UInt64>) async throws -> [UInt64: DeviceName] {
        guard !serials.isEmpty else { return [:] }
        return try await read { db in
            let find = try db.cachedStatement(sql: Self.holderStatement)
            var holders: [UInt64: DeviceName] = [:]
            let asked = Array(serials)
            let found = try Row.fetchFirsts(
                find, arguments: asked.map { serial -> StatementArguments in [serial.stored] })
            for case (let serial, let row?) in zip(asked, found) {
                let stored = StoredRow(row: row, table: "device")
                holders[serial] = DeviceName(
                    owner: InboxOwner(
                        container: ContainerKey(
                            container: try stored.identifier("containerName"),
                            environment: try stored.choice("environment")),
                        user: try stored.identifier("ownerName")),
                    device: try stored.identifier("deviceID"))
            }
            return holders
        }
    }

    /// The device version with a serial, whether it is active, ended or past.
    static let holderStatement = """
        SELECT version.deviceID, user.name AS ownerName, container.name AS containerName,
            container.environment
        FROM (
            SELECT owner, deviceID FROM device WHERE serial = ?1
            UNION ALL SELECT owner, deviceID FROM pastDevice WHERE serial = ?1
            LIMIT 1) AS version
            JOIN user ON user.id = version.owner
            JOIN container ON container.id = user.container
        """
}
