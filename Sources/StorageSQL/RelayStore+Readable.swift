import RelayModel
import Storage

extension RelayStore {
    /// Reads versions active at `position` in the order of their serials, up to `limit` readable
    /// ones.
    ///
    /// The result is empty only if there are no more.
    ///
    /// `makeReader` is called once, and its result reads all rows.
    func versions<Value: Sendable>(
        in table: VersionTable, activeAt position: LogPosition, after serial: UInt64,
        _ limit: Int, _ makeReader: @escaping @Sendable () -> (Row) throws -> Value
    ) async throws -> [Value] {
        let sql = """
            \(table.select())
            WHERE serial > ?1 AND activation <= ?2 AND (ended IS NULL OR ended > ?2)
            ORDER BY serial LIMIT ?3
            """
        return try await read { [unreadable] db in
            let read = makeReader()
            var last = serial.stored
            while true {
                // A cursor, because rows that are fetched as an array are copied column by column.
                let rows = try Row.fetchCursor(
                    db, sql: sql, arguments: [last, position.stored, max(0, limit)])
                var versions: [Value] = []
                var end: Int64?
                while let row = try rows.next() {
                    let version = try unreadable.value(of: row, in: table.rawValue, read)
                    if let version { versions.append(version) } else { end = row["serial"] }
                }
                guard versions.isEmpty, let end else { return versions }
                last = end
            }
        }
    }

    /// Reads rows of one container like ``rows(of:sql:arguments:_:)``, but without unreadable ones.
    func readableRows<Value: Sendable>(
        of key: ContainerKey, in table: String, sql: String, arguments: StatementArguments,
        _ make: @escaping @Sendable (Row) throws -> Value
    ) async throws -> [Value] {
        try await rows(of: key, sql: sql, arguments: arguments) { [unreadable] row in
            try unreadable.value(of: row, in: table, make)
        }.compactMap(\.self)
    }

    /// Turns unreadable retries into dead letters, so that they stay accounted for and are not
    /// attempted again.
    ///
    /// If there is no space for that, they stay, and are not read again before the next start.
    func setAside(_ damaged: [DeliveryID], at now: Timestamp) async throws {
        damaged.forEach(unreadable.hold)
        do {
            try await write(changes: damaged.count) { commit in
                for id in damaged {
                    try commit.db.execute(
                        sql: """
                            INSERT INTO deadLetter
                                (container, deliveryID, position, "offset", subscriptionSerial,
                                deviceSerial, body, owner, attempts, status, reason, endedAt)
                            SELECT container, deliveryID, position, "offset", subscriptionSerial,
                                deviceSerial, body, owner, attempts, 0, ?, ?
                            FROM retry WHERE deliveryID = ?
                            \(DeadLetter.replacing)
                            """,
                        arguments: [DeadLetter.unreadableReason, now.stored, id.stored])
                    try commit.db.execute(
                        sql: "DELETE FROM retry WHERE deliveryID = ?", arguments: [id.stored])
                }
            }
        } catch let error as StorageError where error.passes {
        }
    }
}

extension DeadLetter {
    /// The reason of a dead letter whose delivery cannot be read.
    static let unreadableReason = "the stored delivery cannot be read"
}
