import FoundationEssentials
package import RelayModel
package import Storage

extension RelayStore: StateSnapshots {
    package func recordedSnapshot() async throws -> SnapshotRecord? {
        try await read { db in
            let row = try Row.fetchOne(
                db, sql: "SELECT identity, position, savedAt FROM stateSnapshot WHERE shard = 0")
            return row.flatMap { row in
                UUIDBytes(bytes: row[0] as Data).map { identity in
                    SnapshotRecord(
                        identity: identity, position: LogPosition(stored: row[1]),
                        savedAt: Timestamp(stored: row[2]))
                }
            }
        }
    }

    package func forgetSnapshot() async throws {
        try await write { try $0.db.execute(sql: "DELETE FROM stateSnapshot") }
    }

    package func record(_ snapshot: SnapshotRecord) async throws -> SnapshotRecording {
        try await write { commit in
            let pruned = LogPosition(
                stored: try Int64.fetchOne(
                    commit.db, sql: "SELECT endedPrunedTo FROM progress WHERE shard = 0") ?? 0)
            guard pruned <= snapshot.position else { return .outdated(prunedTo: pruned) }
            try commit.db.execute(
                sql: """
                    INSERT INTO stateSnapshot (shard, identity, position, savedAt)
                    VALUES (0, ?, ?, ?)
                    ON CONFLICT (shard) DO UPDATE SET identity = excluded.identity,
                        position = excluded.position, savedAt = excluded.savedAt
                    """,
                arguments: [
                    Data(snapshot.identity.bytes), snapshot.position.stored,
                    snapshot.savedAt.stored,
                ])
            return .recorded
        }
    }

    package func endings(
        after start: LogPosition, upTo end: LogPosition
    ) async throws -> [VersionEnding] {
        try await read { db in
            var reading = EndingReading(db, after: start, upTo: end)
            for table in VersionTable.allCases { try reading.read(table) }
            return reading.endings
        }
    }
}

/// Reads which versions ended in a stretch of the log.
struct EndingReading {
    private let db: Database
    private let start: LogPosition
    private let end: LogPosition
    private var containers: [Int64: ContainerKey] = [:]
    private(set) var endings: [VersionEnding] = []

    /// Prepares to read what ended after `start` and up to `end`.
    init(_ db: Database, after start: LogPosition, upTo end: LogPosition) {
        (self.db, self.start, self.end) = (db, start, end)
    }

    /// Reads the endings of a table; with `isPast`, of the table of past versions.
    mutating func read(_ table: VersionTable, isPast: Bool = false) throws {
        let name = isPast ? PastStep.table(of: table) : table.rawValue
        let rows = try Row.fetchCursor(
            db, sql: "SELECT serial, container FROM \(name) WHERE ended > ? AND ended <= ?",
            arguments: [start.stored, end.stored])
        while let row = try rows.next() {
            let number: Int64 = row[1]
            let container = try containers[number] ?? db.containerKey(number)
            containers[number] = container
            endings.append(
                VersionEnding(table.kind, serial: UInt64(clamping: row[0] as Int64), of: container))
        }
    }
}
