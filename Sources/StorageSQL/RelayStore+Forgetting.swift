import RelayModel
import Storage
import Synchronization

extension RelayStore {
    /// The maximum bytes of rows deleted together.
    ///
    /// A single row is deleted whatever its size.
    private static let bytesAtOnce = 8 * 1024 * 1024

    /// The pause between two scans of all records.
    ///
    /// A scan reads everything that is kept, and the retention is given in hours.
    private static let shadowPause = Duration.seconds(3600)

    /// Deletes the records of sources that were not changed for the retention time.
    ///
    /// Live clients that see a kept record must learn of this, so the log gets a deletion that is
    /// marked as a snapshot row and fires nothing. The scan runs once an hour, or more often for a
    /// retention under a day, so that no record is kept for much longer than it should be.
    func pruneShadows(
        _ retention: Retention, at now: Timestamp, _ portion: Int
    ) async throws -> Int {
        guard let age = retention.shadowAge else { return 0 }
        let pause = min(Self.shadowPause, age / 24)
        let last = shadowsLookedThrough.withLock { $0 }
        // If the clock was set back, the scan does not wait until the old time is reached again.
        if let last, last <= now, now < last.advanced(by: pause) { return 0 }
        let cutoff = try await read { db in
            try LogCutoff(db: db).lastPosition(appendedBy: now.advanced(by: .zero - age))
        }
        guard let cutoff else { return 0 }
        var total = 0
        for part in try await read({ db in try TablePart.all(of: "shadowRecord", in: db) }) {
            total += try await pruneShadows(of: part, upTo: cutoff, at: now, portion)
        }
        // A round that ended early starts again with the next call, because the time is set only
        // here.
        shadowsLookedThrough.withLock { $0 = now }
        return total
    }

    private func pruneShadows(
        of part: TablePart, upTo cutoff: Int64, at now: Timestamp, _ portion: Int
    ) async throws -> Int {
        let arguments: StatementArguments =
            [cutoff, SourceName.cloudKit.rawValue] + part.arguments
        var total = 0
        while true {
            try Task.checkCancellation()
            CrashPoint.prune.reach()
            // Finding out that there are none reads all records, so a reader does it while no
            // writer waits.
            let isAny = try await read { db in
                let statement = try db.cachedStatement(
                    sql: "SELECT 1 \(Self.forgotten) \(part.condition) LIMIT 1")
                return try Int.fetchOne(statement, arguments: arguments) != nil
            }
            guard isAny else { return total }
            let count = try await write { commit in
                let statement = try commit.db.cachedStatement(
                    sql: """
                        SELECT *, CASE WHEN \(UnkeptTypes.isNone()) THEN 1 ELSE 0 END AS isShown
                        \(Self.forgotten) \(part.condition) LIMIT ?
                        """)
                return try Self.forgetShadows(
                    by: statement, arguments + [portion], at: now, in: &commit)
            }
            total += count
            if count == 0 { return total }
        }
    }

    /// The records of sources that have not changed since a position.
    private static let forgotten =
        "FROM shadowRecord WHERE position <= ? AND isDeleted = 0 AND source <> ?"

    private static func forgetShadows(
        by statement: Statement, _ arguments: StatementArguments, at now: Timestamp,
        in commit: inout OpenCommit
    ) throws -> Int {
        let cursor = try Row.fetchCursor(statement, arguments: arguments)
        var rows: [Row] = []
        var bytes = 0
        while bytes < bytesAtOnce, let row = try cursor.next() {
            bytes += row.bytes(of: "fields", "wire")
            rows.append(row.copy())
        }
        // Container keys are cached, because each lookup is a round trip.
        var keys: [Int64: ContainerKey] = [:]
        for row in rows {
            if row["isKept"], row["isShown"] as Int64 != 0 {
                let number = row["container"] as Int64
                let key = try keys[number] ?? commit.db.containerKey(number)
                keys[number] = key
                try tell(of: row, in: key, at: now, in: &commit)
            }
            try commit.db.cachedStatement(
                sql: """
                    DELETE FROM shadowRecord
                    WHERE container = ? AND database = ? AND owner = ? AND zoneOwner = ?
                        AND zoneName = ? AND recordType = ? AND recordName = ?
                    """
            ).execute(arguments: [
                row["container"] as Int64, row["database"] as String, row["owner"] as String,
                row["zoneOwner"] as String, row["zoneName"] as String,
                row["recordType"] as String, row["recordName"] as String,
            ])
        }
        return rows.count
    }

    /// Appends the change that live clients need when a record that they see is deleted.
    private static func tell(
        of row: Row, in key: ContainerKey, at now: Timestamp, in commit: inout OpenCommit
    ) throws {
        let stored = StoredRow(row: row, table: "shadowRecord")
        // A record that cannot be read is not shown to any client.
        guard let record = try? ShadowRecord(row: row),
            let database = DatabaseScope(rawValue: row["database"])
        else { return }
        var change = RecordChange(.delete, of: record.recordType, record.recordID)
        change.database = database
        if database != .public { change.owner = try stored.identifier("owner") }
        change.before = RecordImage(
            record.fields, completeness: record.isPartial ? .partial : .full)
        change.readers = record.readers
        change.created = RecordTrace(record.created)
        change.formerlyModified = RecordTrace(record.modified)
        change.isSnapshot = true
        let container = try commit.container(key)
        _ = try commit.append(
            change, createdBy: record.created.userID, source: record.source, isStale: false,
            in: container, at: now)
    }
}
