import RelayModel
import Storage

/// Reads what was active at a position for some subscriptions.
struct RangeReading {
    let position: LogPosition
    let unreadable: UnreadableRows
    private var subscriptionRows = SubscriptionRows()
    private var deviceRows = DeviceRows()
    /// Those of each owner: some own several of the subscriptions.
    private var devices: [Int64: [DeviceVersion]] = [:]

    init(position: LogPosition, unreadable: UnreadableRows) {
        self.position = position
        self.unreadable = unreadable
    }

    /// What can be read of them: a version that cannot, or that is gone, is told and fires nothing,
    /// and does not hold its neighbours up.
    mutating func members(
        _ serials: ArraySlice<UInt64>, in db: Database
    ) throws -> [RangeMember] {
        let find = try db.cachedStatement(
            sql: "\(VersionTable.subscription.select()) WHERE serial = ?")
        return try serials.compactMap { serial in
            guard let row = try Row.fetchOne(find, arguments: [serial.stored]) else {
                unreadable.note(
                    UnreadableRow(
                        table: "subscription", key: "\(serial)",
                        reason: "the range of the change at \(position) names it, and it is gone"))
                return nil
            }
            let owner: Int64 = row["owner"]
            let owned = try devices[owner] ?? devices(of: owner, in: db)
            devices[owner] = owned
            return try unreadable.value(of: row, in: "subscription") {
                RangeMember(version: try subscriptionRows.version($0), devices: owned)
            }
        }
    }

    /// Active at the change is what began before it and has not ended before it.
    private mutating func devices(
        of owner: Int64, in db: Database
    ) throws -> [DeviceVersion] {
        let statement = try db.cachedStatement(
            sql: """
                \(VersionTable.device.select())
                WHERE owner = ?1 AND activation < ?2 AND (ended IS NULL OR ended >= ?2)
                ORDER BY serial
                """)
        let rows = try Row.fetchAll(statement, arguments: [owner, position.stored])
        return try unreadable.readable(rows, in: "device") { try deviceRows.version($0) }
    }
}
