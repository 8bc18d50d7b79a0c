import RelayModel
import Storage
import Synchronization

extension RelayStore {
    /// What the rows that are forgotten together may have in bytes; one goes whatever its size.
    private static let bytesAtOnce = 8 * 1024 * 1024

    /// How long nobody looks through all records again, for which everything that is kept is read:
    /// the retention is told in hours.
    private static let shadowPause = Duration.seconds(3600)

    /// Forgets what is known of records that no source has changed for long.
    ///
    /// Whoever is shown a kept one hears of it: the log gets the deletion of a row of a snapshot,
    /// which fires nothing. They are looked for once an hour, and more often where they are known
    /// for less than a day, so that none is known for much longer than it should be.
    func pruneShadows(
        _ retention: Retention, at now: Timestamp, _ portion: Int
    ) async throws -> Int {
        guard let age = retention.shadowAge else { return 0 }
        let pause = min(Self.shadowPause, age / 24)
        let last = shadowsLookedThrough.withLock { $0 }
        // After a clock was set back nobody waits until it is as late again.
        if let last, last <= now, now < last.advanced(by: pause) { return 0 }
        let cutoff = try await read { db in
            try LogCutoff(db: db).lastPosition(appendedBy: now.advanced(by: .zero - age))
        }
        guard let cutoff else { return 0 }
        var total = 0
        for part in try await read({ db in try TablePart.all(of: "shadowRecord", in: db) }) {
            total += try await pruneShadows(of: part, upTo: cutoff, at: now, portion)
        }
        // One that ended before all were looked through begins again with the next round.
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
            // To find that there are none all records are read, for which nobody has to wait.
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

    /// The records of sources that nothing changed for long.
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
        // The answer would be waited for with each.
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

    /// Appends what whoever is shown a record needs to know when it is forgotten.
    private static func tell(
        of row: Row, in key: ContainerKey, at now: Timestamp, in commit: inout OpenCommit
    ) throws {
        let stored = StoredRow(row: row, table: "shadowRecord")
        // What cannot be read is shown to nobody.
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
