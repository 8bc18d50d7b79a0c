import RelayModel
import Storage

/// Reads what was active at a position for a number of subscriptions.
struct RangeReading {
    let position: LogPosition
    let unreadable: UnreadableRows
    private var subscriptionRows = SubscriptionRows()
    private var deviceRows = DeviceRows()
    /// The devices of each owner, cached because some owners have several of the subscriptions.
    private var devices: [Int64: [DeviceVersion]] = [:]

    init(position: LogPosition, unreadable: UnreadableRows) {
        self.position = position
        self.unreadable = unreadable
    }

    /// Returns the readable members.
    ///
    /// A version that cannot be read or is missing is reported and fires nothing, but does not stop
    /// the others.
    mutating func members(
        _ serials: ArraySlice<UInt64>, in db: Database
    ) throws -> [RangeMember] {
        let find = try db.cachedStatement(
            sql: "\(VersionTable.subscription.select()) WHERE serial = ?")
        let rows = try Row.fetchFirsts(
            find, arguments: serials.map { (serial) -> StatementArguments in [serial.stored] })
        try learnDevices(of: rows.compactMap { $0.map { $0["owner"] as Int64 } }, in: db)
        return try zip(serials, rows).compactMap { serial, row in
            guard let row else {
                unreadable.note(
                    UnreadableRow(
                        table: "subscription", key: "\(serial)",
                        reason: "the range of the change at \(position) names it, but it is missing"
                    ))
                return nil
            }
            let owned = devices[row["owner"] as Int64] ?? []
            return try unreadable.value(of: row, in: "subscription") {
                RangeMember(version: try subscriptionRows.version($0), devices: owned)
            }
        }
    }

    /// Reads the devices of the owners that are not cached yet.
    ///
    /// A version is active at the change if it began before the change and did not end before it.
    private mutating func learnDevices(of owners: [Int64], in db: Database) throws {
        var unknown: [Int64] = []
        var seen: Set<Int64> = []
        for owner in owners where devices[owner] == nil {
            if seen.insert(owner).inserted { unknown.append(owner) }
        }
        let statement = try db.cachedStatement(
            sql: """
                \(VersionTable.device.select())
                WHERE owner = ?1 AND activation < ?2 AND (ended IS NULL OR ended >= ?2)
                ORDER BY serial
                """)
        let change = position.stored
        let found = try Row.fetchAlls(
            statement,
            arguments: unknown.map { (owner) -> StatementArguments in [owner, change] })
        for (owner, rows) in zip(unknown, found) {
            let versions = try unreadable.readable(rows, in: "device") {
                try deviceRows.version($0)
            }
            devices[owner] = versions
        }
    }
}
