import FoundationEssentials
package import RelayModel
package import Storage

extension RelayStore {
    package func pastSubscriptions(
        _ id: SubscriptionID, of owner: SubscriptionOwner, limit: Int
    ) async throws -> [PastSubscription] {
        try await pastSubscriptions(
            of: owner, PastVersions.subscriptionsByName, [id.rawValue, limit])
    }

    package func subscriptions(
        of owner: SubscriptionOwner, judging position: LogPosition, limit: Int
    ) async throws -> [PastSubscription] {
        try await pastSubscriptions(
            of: owner, PastVersions.subscriptionsJudging, [position.stored, limit])
    }

    package func pastSubscription(
        _ serial: UInt64, of container: ContainerKey
    ) async throws -> PastSubscription? {
        try await read { [unreadable] db in
            guard let known = try db.containerIfKnown(container) else { return nil }
            let rows = try Row.fetchAll(
                db.cachedStatement(sql: PastVersions.subscriptionBySerial),
                arguments: [known.id, serial.stored])
            return try unreadable.readable(rows, in: "subscription") {
                try PastSubscription(row: $0)
            }.first
        }
    }

    /// The approximate maximum of stored text of versions read together, in bytes.
    private static let mostPastBytes = 2 * Limits.maximumPageBytes

    private func pastSubscriptions(
        of owner: SubscriptionOwner, _ sql: String, _ arguments: StatementArguments
    ) async throws -> [PastSubscription] {
        try await read { [unreadable] db in
            guard let user = try db.userIfKnown(owner.user, of: owner.container) else { return [] }
            let rows = try Row.fetchCursor(
                db.cachedStatement(sql: sql),
                arguments: [user, owner.database.rawValue] + arguments)
            var found: [PastSubscription] = []
            var bytes = 0
            // Several requests of one user may run at the same time, and each holds all of its
            // versions in memory.
            while bytes < Self.mostPastBytes, let row = try rows.next() {
                bytes += row.bytes(of: "body")
                let version = try unreadable.value(of: row, in: "subscription") {
                    try PastSubscription(row: $0)
                }
                if let version { found.append(version) }
            }
            return found
        }
    }

    // MARK: Devices

    package func pastDevices(
        of user: UserID, in container: ContainerKey, _ choice: PastDeviceChoice
    ) async throws -> [PastDevice] {
        try await read { db in
            guard let owner = try db.userIfKnown(user, of: container) else { return [] }
            var condition: String
            var arguments: StatementArguments = [owner]
            switch choice {
            case .hearing(let position):
                condition = "activation < ?2 AND (ended IS NULL OR ended >= ?2) ORDER BY serial"
                arguments += [position.stored]
            case .endedBefore(let position, let limit):
                condition = "ended < ?2 ORDER BY serial DESC LIMIT ?3"
                arguments += [position.stored, limit]
            case .named(let id, let limit):
                condition = "deviceID = ?2 ORDER BY serial DESC LIMIT ?3"
                arguments += [id.rawValue, limit]
            }
            return try Row.fetchAll(
                db.cachedStatement(sql: "\(PastVersions.devicesOfOwner) WHERE \(condition)"),
                arguments: arguments
            ).map { try PastDevice(row: $0, owner: user) }.sorted { $0.serial < $1.serial }
        }
    }

    package func ending(
        ofDevice serial: UInt64, at position: LogPosition
    ) async throws -> DeviceEnding? {
        try await read { db in
            let row = try Row.fetchOne(
                db.cachedStatement(
                    sql: """
                        SELECT logEntry.*, container.name AS containerName, container.environment
                        FROM logEntry JOIN container ON container.id = logEntry.container
                        WHERE position = ?
                        """), arguments: [position.stored])
            guard let row, let entry = try? LogEntry(row: row) else { return nil }
            let cause: DeviceEnding.Cause
            switch entry.body {
            case .deviceSaved(let version, _):
                let earlier = try Row.fetchOne(
                    db.cachedStatement(sql: "\(PastVersions.devices) WHERE serial = ?"),
                    arguments: [serial.stored])
                let isSame =
                    earlier?["deviceID"] == version.device.id.rawValue
                    && earlier?["ownerName"] == version.device.owner.rawValue
                cause = isSame ? .renewed : .takenOver
            case .devicesEnded:
                let receipt = try Self.verdict(on: serial, at: entry.appendedAt, in: db)
                cause = receipt.map { .declaredDead($0) } ?? .signedOut
            default: return nil
            }
            return DeviceEnding(at: entry.appendedAt, cause: cause)
        }
    }

    /// Returns the receipt of the attempt by which the gateway declared a device's token dead.
    ///
    /// It was settled together with the end of the device, and the blocks lie in the order of
    /// settling, so a binary search finds it.
    private static func verdict(
        on device: UInt64, at moment: Timestamp, in db: Database
    ) throws -> DeliveryReceipt? {
        guard
            let row = try Row.fetchOne(
                db.cachedStatement(
                    sql: "SELECT (SELECT min(id) FROM receiptBlock), max(id) FROM receiptBlock")),
            let first = row[0] as Int64?, var end = row[1] as Int64?
        else { return nil }
        var low = first
        let probe = try db.cachedStatement(
            sql: "SELECT lastAt FROM receiptBlock WHERE id >= ? ORDER BY id LIMIT 1")
        while low < end {
            let middle = low + (end - low) / 2
            let at = try Int64.fetchOne(probe, arguments: [middle]) ?? .max
            if at < moment.stored { low = middle + 1 } else { end = middle }
        }
        let rows = try Row.fetchCursor(
            db.cachedStatement(
                sql: """
                    SELECT body FROM receiptBlock WHERE id BETWEEN ? AND ? AND outcomes & ? <> 0
                    ORDER BY id LIMIT 16
                    """),
            arguments: [
                max(first, low - 8), low + 64, DeliveryReceipt.Outcome.unregistered.bit,
            ])
        while let row = try rows.next() {
            let found = ReceiptBlock.decode(row["body"] as Data)?.first {
                $0.deviceSerial == device && $0.outcome == .unregistered
            }
            if let found { return found }
        }
        return nil
    }
}

/// The statements that find versions of subscriptions and devices, ended or not, by key.
enum PastVersions {
    private static let columns =
        "serial, container, owner, database, subscriptionID, body, activation, ended"
    private static let live = """
        SELECT \(columns),
            (SELECT position FROM onceClaim WHERE onceClaim.subscription = serial) AS claimed
        FROM subscription
        """
    private static let past = "SELECT \(columns), claimed FROM pastSubscription"

    /// Returns the union of the walk's table and the table of past versions under one condition.
    ///
    /// Order and limit come last.
    private static func subscriptions(_ condition: String, _ rest: String) -> String {
        """
        SELECT version.*, user.name AS ownerName, container.name AS containerName,
            container.environment
        FROM (
            \(live) WHERE \(condition) AND ended IS NULL
            UNION ALL \(live) WHERE \(condition) AND ended IS NOT NULL
            UNION ALL \(past) WHERE \(condition)) AS version
            JOIN user ON user.id = version.owner
            JOIN container ON container.id = version.container
        \(rest)
        """
    }

    /// Parameters: the owner's number, a database, an ID, a limit.
    static let subscriptionsByName = subscriptions(
        "owner = ?1 AND database = ?2 AND subscriptionID = ?3", "ORDER BY serial DESC LIMIT ?4")

    /// Parameters: the owner's number, a database, a position, a limit.
    static let subscriptionsJudging = subscriptions(
        "owner = ?1 AND database = ?2 AND activation < ?3 AND (ended IS NULL OR ended >= ?3)",
        "ORDER BY serial LIMIT ?4")

    /// Parameters: the container's number, a serial.
    static let subscriptionBySerial = subscriptions("serial = ?2 AND container = ?1", "")

    private static let deviceColumns = """
        serial, owner, deviceID, gateway, gatewayEnvironment, topic, registeredAt, activation, ended
        """

    /// All device versions, with the names of their owners.
    static let devices = """
        SELECT * FROM (
            SELECT \(deviceColumns), (SELECT name FROM user WHERE id = owner) AS ownerName
            FROM device
            UNION ALL
            SELECT \(deviceColumns), (SELECT name FROM user WHERE id = owner) FROM pastDevice)
            AS version
        """

    /// The device versions of one owner.
    ///
    /// Parameter: the owner's number.
    static let devicesOfOwner = """
        SELECT * FROM (
            SELECT \(deviceColumns) FROM device WHERE owner = ?1
            UNION ALL SELECT \(deviceColumns) FROM pastDevice WHERE owner = ?1)
            AS version
        """
}

extension Database {
    /// Returns the number of a user, or `nil` if there is none.
    func userIfKnown(_ user: UserID, of container: ContainerKey) throws -> Int64? {
        guard let known = try containerIfKnown(container) else { return nil }
        return try Int64.fetchOne(
            cachedStatement(sql: "SELECT id FROM user WHERE container = ? AND name = ?"),
            arguments: [known.id, user.rawValue])
    }
}

extension PastSubscription {
    init(row: Row) throws {
        self.init(
            version: try SubscriptionVersion(row: row),
            ended: (row["ended"] as Int64?).map { LogPosition(stored: $0) },
            claimed: (row["claimed"] as Int64?).map { LogPosition(stored: $0) })
    }
}

extension PastDevice {
    init(row: Row, owner: UserID) throws {
        let stored = StoredRow(row: row, table: "device")
        self.init(
            serial: stored.number("serial"), id: try stored.identifier("deviceID"), owner: owner,
            gateway: try stored.choice("gateway"),
            gatewayEnvironment: try stored.choice("gatewayEnvironment"), topic: row["topic"],
            registeredAt: stored.moment("registeredAt"),
            activation: LogPosition(stored: row["activation"]),
            ended: (row["ended"] as Int64?).map { LogPosition(stored: $0) })
    }
}
