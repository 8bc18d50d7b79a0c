import RelayModel
import Storage

/// Moves ended versions out of the walk's tables into the tables that only explanations read.
struct PastStep {
    private let db: Database

    init(_ db: Database) throws {
        self.db = db
    }

    /// Returns the position at which the first ended version that was not moved yet ended, or `nil`
    /// if there is none.
    static func firstEnd(of table: VersionTable, in db: Database) throws -> Int64? {
        try Int64.fetchOne(db, sql: firstEndStatement(table))
    }

    /// Names its index, which contains only ended versions.
    static func firstEndStatement(_ table: VersionTable) -> String {
        """
        SELECT ended FROM \(table.rawValue) INDEXED BY \(table.rawValue)Ended
        WHERE ended IS NOT NULL ORDER BY ended LIMIT 1
        """
    }

    /// Moves versions that ended from `first` to `position` and that no owed work needs, and
    /// returns the positions at which they ended.
    func move(
        _ table: VersionTable, from first: Int64, upTo position: LogPosition, limit: Int
    ) throws -> [Int64] {
        let rows = try Row.fetchAll(
            db, sql: Self.moved(table),
            arguments: [first, position.stored, Int64.max, Int64.max, max(0, limit)])
        let keep = try db.cachedStatement(sql: Self.keeping(table))
        let delete = try db.cachedStatement(sql: "DELETE FROM \(table.rawValue) WHERE serial = ?")
        for row in rows {
            let serial: Int64 = row[0]
            // A delivery that was under way when the device ended has stored its badge again.
            if table == .device { try DeviceStep.dropBadge(ofEnded: serial, in: db) }
            try keep.execute(arguments: [serial])
            try delete.execute(arguments: [serial])
        }
        return rows.map { $0[1] }
    }

    /// Returns the statement for the next versions to move, at most a given number.
    static func moved(_ table: VersionTable) -> String {
        """
        SELECT serial, ended FROM \(table.rawValue)
        WHERE ended >= ? AND ended <= min(?, (SELECT position FROM progress WHERE shard = 0),
            coalesce((SELECT position FROM stateSnapshot), ?),
            coalesce((SELECT min(position) - 1 FROM rangeTask), ?))
        LIMIT ?
        """
    }

    /// Returns the statement that copies one version into the table of past versions.
    private static func keeping(_ table: VersionTable) -> String {
        switch table {
        case .subscription:
            """
            INSERT INTO pastSubscription
                (serial, container, owner, database, subscriptionID, body, activation, ended,
                claimed)
            SELECT serial, container, owner, database, subscriptionID, body, activation, ended,
                (SELECT position FROM onceClaim
                    WHERE onceClaim.subscription = subscription.serial)
            FROM subscription WHERE serial = ?
            ON CONFLICT (serial) DO UPDATE SET container = excluded.container,
                owner = excluded.owner, database = excluded.database,
                subscriptionID = excluded.subscriptionID, body = excluded.body,
                activation = excluded.activation, ended = excluded.ended,
                claimed = excluded.claimed
            """
        case .device:
            """
            INSERT INTO pastDevice
                (serial, container, owner, deviceID, gateway, gatewayEnvironment, topic,
                registeredAt, activation, ended)
            SELECT serial, container, owner, deviceID, gateway, gatewayEnvironment, topic,
                registeredAt, activation, ended
            FROM device WHERE serial = ?
            ON CONFLICT (serial) DO UPDATE SET container = excluded.container,
                owner = excluded.owner, deviceID = excluded.deviceID,
                gateway = excluded.gateway, gatewayEnvironment = excluded.gatewayEnvironment,
                topic = excluded.topic, registeredAt = excluded.registeredAt,
                activation = excluded.activation, ended = excluded.ended
            """
        }
    }

    /// Returns the table of past versions.
    static func table(of table: VersionTable) -> String {
        switch table {
        case .subscription: "pastSubscription"
        case .device: "pastDevice"
        }
    }
}
