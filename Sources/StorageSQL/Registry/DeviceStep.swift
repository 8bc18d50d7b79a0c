import Crypto
import FoundationEssentials
import RelayModel
import Storage

/// Edits the devices of one container.
struct DeviceStep {
    let container: StoredContainer
    let now: Timestamp

    /// Registers a device.
    ///
    /// `spared` changes the settings of an earlier registration of it.
    func register(
        _ device: Device, named naming: DeviceNaming = .device, _ spared: DeviceSparing = .asBefore,
        in commit: inout OpenCommit
    ) throws -> DeviceVersion {
        var device = device
        var (rivals, serials) = try rivals(of: device, in: commit)
        if naming == .client, let further = furtherID(of: device, beside: rivals) {
            device.id = further
            (rivals, serials) = try self.rivals(of: device, in: commit)
        }
        let before = rivals.first { ($0.device.id, $0.device.owner) == (device.id, device.owner) }
        device.kindness = spared.applied(to: before?.device.kindness ?? device.kindness)
        if let same = rivals.first(where: { $0.device == device }) {
            return try refresh(same, spared.badge, in: &commit)
        }
        // The badge of a replaced device must not pass to another user, nor to another device ID of
        // the same user.
        for rival in rivals
        where (rival.device.owner, rival.device.id) != (device.owner, device.id) {
            try dropBadge(rival.device.id, of: rival.device.owner, in: commit)
        }
        try handOverCourier(of: rivals, to: device, in: commit)
        let surplus = try makeRoom(for: device, insteadOf: serials, in: commit)
        for rival in rivals { try release(rival.device, followedBy: device, in: commit) }
        var version = try insert(device, in: commit)
        version.badge = spared.badge
        try forgetYoungCouriers(of: serials + surplus, in: commit)
        let body = LogEntryBody.deviceSaved(version, replaced: serials + surplus)
        _ = try commit.append(body, storedBody: try body.storedBody(), in: container, at: now)
        return version
    }

    /// Returns the ID under which a client's token is registered beside a courier of the same
    /// client, or a courier beside another token; `nil` if the device's own ID is free.
    private func furtherID(of device: Device, beside rivals: [DeviceVersion]) -> DeviceID? {
        let isTaken = rivals.contains { rival in
            rival.device.id == device.id && rival.device.owner == device.owner
                && rival.device.token != device.token
                && (rival.device.gateway == .courier || device.gateway == .courier)
        }
        guard isTaken else { return nil }
        let digest = SHA256.hash(data: Array(device.token.rawValue.utf8))
        return device.id.further(Hexadecimal.encode(digest.prefix(4)))
    }

    /// Ends the versions that a device replaces.
    ///
    /// If it replaces none, ends a device of the user if the user's quota is reached: the one that
    /// was not registered for the longest time, because it is most likely gone. No device of one
    /// user ends in favour of another user's. Returns the serials of the devices ended for lack of
    /// room.
    ///
    /// A device that replaces another one is accepted even if a lowered quota is exceeded.
    /// Otherwise a phone with a new token would get no more notifications.
    ///
    /// - Throws: ``StorageError/overQuota(_:)`` if there is no room.
    private func makeRoom(
        for device: Device, insteadOf serials: [UInt64], in commit: OpenCommit
    ) throws -> [UInt64] {
        let ledger = commit.ledger(of: container)
        let owner = try commit.db.user(device.owner, of: container)
        let before = try ledger.use(of: .devices, holder: String(owner)).number
        try end(serials, in: commit)
        let limit = ledger.quotas[.userDevices]
        let use = try ledger.use(of: .devices, holder: String(owner)).number
        var surplus: [UInt64] = []
        if use >= limit, use == before {
            surplus = try UInt64.fetchAll(
                commit.db.cachedStatement(
                    sql: """
                        SELECT serial FROM device INDEXED BY deviceActiveOwner
                        WHERE owner = ? AND ended IS NULL
                        ORDER BY registeredAt, serial LIMIT 1
                        """), arguments: [owner])
            guard limit > 0, !surplus.isEmpty else {
                throw StorageError.overQuota(QuotaRefusal(.userDevices, limit: limit, use: use))
            }
            try dropCourierNotifications(of: surplus, in: commit)
            try end(surplus, in: commit)
            for serial in surplus { try Self.dropBadge(ofEnded: serial.stored, in: commit.db) }
        }
        let growth = Growth(number: 1 - serials.count - surplus.count)
        if let refusal = try ledger.refusal(of: .devices, growingBy: growth) {
            throw StorageError.overQuota(refusal)
        }
        return surplus
    }

    func forget(
        _ id: DeviceID, of user: UserID, in commit: inout OpenCommit
    ) throws -> Bool {
        let serials = try UInt64.fetchAll(
            commit.db, sql: Self.forgottenStatement,
            arguments: [container.id, user.rawValue, id.rawValue])
        try dropBadge(id, of: user, in: commit)
        try HeldRelease(container: container.id, owner: user.rawValue, now: now)
            .release(id, .end, commit.db)
        try endAndTell(serials, in: &commit)
        return !serials.isEmpty
    }

    /// Releases the held deliveries of a version that ends, so that the settings of its successor
    /// judge them.
    private func release(
        _ device: Device, followedBy next: Device, in commit: OpenCommit
    ) throws {
        let isSame = (device.owner, device.id, device.token) == (next.owner, next.id, next.token)
        try HeldRelease(container: container.id, owner: device.owner.rawValue, now: now)
            .release(device.id, isSame ? .stay : .end, commit.db)
    }

    /// Starts with the user, because many users may share a device ID.
    static let forgottenStatement = """
        SELECT serial FROM user
            CROSS JOIN device INDEXED BY deviceActiveID
                ON device.container = user.container AND device.owner = user.id
        WHERE user.container = ? AND user.name = ? AND deviceID = ? AND ended IS NULL
        """

    /// Ends the devices whose tokens the gateway declared dead, unless they were registered again
    /// since.
    func forget(_ tokens: [DeadToken], in commit: inout OpenCommit) throws {
        let statement = try commit.db.cachedStatement(
            sql: """
                SELECT serial FROM device
                WHERE container = ? AND token = ? AND ended IS NULL AND registeredAt <= ?
                """)
        // A token has at most one active device.
        let found = try Row.fetchFirsts(
            statement,
            arguments: tokens.map { (token) -> StatementArguments in
                [container.id, token.token.rawValue, token.since.stored]
            })
        let serials = found.compactMap { row -> UInt64? in
            row.map { $0["serial"] as UInt64 }
        }
        try endAndTell(Array(Set(serials)).sorted(), in: &commit)
    }

    private func refresh(
        _ version: DeviceVersion, _ badge: Int64?, in commit: inout OpenCommit
    ) throws -> DeviceVersion {
        var version = version
        version.registeredAt = now
        version.badge = badge
        try commit.db.cachedStatement(sql: "UPDATE device SET registeredAt = ? WHERE serial = ?")
            .execute(arguments: [now.stored, version.serial.stored])
        let body = LogEntryBody.deviceSaved(version, replaced: [])
        _ = try commit.append(body, storedBody: try body.storedBody(), in: container, at: now)
        return version
    }

    /// Returns the user's active device with the same ID and the active device with the same token
    /// (at most two), and the serials of both, including unreadable ones.
    private func rivals(
        of device: Device, in commit: OpenCommit
    ) throws -> (versions: [DeviceVersion], serials: [UInt64]) {
        let statement = try commit.db.cachedStatement(sql: Self.rivalsStatement)
        let rows = try Row.fetchAll(
            statement,
            arguments: [
                container.id, device.id.rawValue, device.token.rawValue, device.owner.rawValue,
            ])
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
                    registeredAt, activation, kindness)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                RETURNING serial
                """)
        let owner = try commit.db.user(device.owner, of: container)
        let arguments: StatementArguments = [
            container.id, owner, device.id.rawValue, device.gateway.rawValue,
            device.gatewayEnvironment.rawValue, device.token.rawValue, device.topic, now.stored,
            commit.next.stored,
            try device.kindness.storedForm.map { try JSONValue.object($0).storedText() },
        ]
        return DeviceVersion(
            serial: UInt64(clamping: try statement.inserted(arguments, in: "device")),
            device: device, registeredAt: now, activation: commit.next)
    }

    /// Ends device versions, drops the waiting notifications of their couriers, and appends the log
    /// entry.
    func endAndTell(_ serials: [UInt64], in commit: inout OpenCommit) throws {
        guard !serials.isEmpty else { return }
        try dropCourierNotifications(of: serials, in: commit)
        try end(serials, in: commit)
        for serial in serials { try Self.dropBadge(ofEnded: serial.stored, in: commit.db) }
        try forgetYoungCouriers(of: serials, in: commit)
        let body = LogEntryBody.devicesEnded(serials: serials)
        _ = try commit.append(body, storedBody: try body.storedBody(), in: container, at: now)
    }

    /// Marks versions as ended by the entry that is appended next.
    private func end(_ serials: [UInt64], in commit: OpenCommit) throws {
        let statement = try commit.db.cachedStatement(
            sql: "UPDATE device SET ended = ? WHERE serial = ? AND ended IS NULL")
        for serial in serials {
            try statement.execute(arguments: [commit.next.stored, serial.stored])
        }
    }

    private func dropBadge(_ id: DeviceID, of user: UserID, in commit: OpenCommit) throws {
        try commit.db.cachedStatement(
            sql: """
                DELETE FROM badge WHERE container = ?1 AND deviceID = ?2
                    AND owner = (SELECT id FROM user WHERE container = ?1 AND name = ?3)
                """
        ).execute(arguments: [container.id, id.rawValue, user.rawValue])
    }
}

extension DeviceStep {
    /// Deletes the badge of a device whose version ended, as the walk does, unless its user has
    /// registered it again.
    static func dropBadge(ofEnded serial: Int64, in db: Database) throws {
        try db.cachedStatement(sql: endedBadgeStatement).execute(arguments: [serial])
    }

    /// Compares the key with a single row and not with a set of rows, for which SQLite would use
    /// the index by container only.
    static let endedBadgeStatement = """
        DELETE FROM badge
        WHERE (container, deviceID, owner) = (
                SELECT container, deviceID, owner FROM device WHERE serial = ?)
            AND NOT EXISTS (
                SELECT 1 FROM device
                WHERE device.container = badge.container AND device.deviceID = badge.deviceID
                    AND device.owner = badge.owner AND device.ended IS NULL)
        """

    /// Finds the active devices of a container with a user's device ID or with a token.
    ///
    /// Parameters: the container's number, the ID, the token, the user.
    ///
    /// Each condition has an index. With OR, SQLite would read every device of the container.
    static let rivalsStatement = """
        \(VersionTable.device.select())
        WHERE serial IN (
            SELECT serial FROM device
            WHERE container = ?1 AND deviceID = ?2 AND ended IS NULL
                AND owner = (SELECT id FROM user WHERE container = ?1 AND name = ?4)
            UNION ALL
            SELECT serial FROM device WHERE container = ?1 AND token = ?3 AND ended IS NULL)
        ORDER BY serial
        """
}
