import GRDB
import RelayModel

extension RelayStore {
    /// Forgets deleted records, and notes in their zones from where on tokens are still good.
    ///
    /// Their age counts from the deletion by its own clock; what a source reports late may go at
    /// once, and then tokens from before its report have expired.
    func pruneMarks(
        _ retention: Retention, at now: Timestamp, _ portion: Int
    ) async throws -> Int {
        guard let age = retention.deletedAge else { return 0 }
        let cutoff = now.advanced(by: .zero - age)
        return try await inPortions(portion) { store in
            try await store.write { commit in
                let statement = try commit.db.cachedStatement(
                    sql: """
                        SELECT * FROM shadowRecord WHERE isDeleted = 1 AND modifiedAt <= ? LIMIT ?
                        """)
                let marks = try Row.fetchAll(statement, arguments: [cutoff.stored, portion])
                for mark in marks { try Self.forget(mark, in: commit.db) }
                return marks.count
            }
        }
    }

    private static func forget(_ mark: Row, in db: Database) throws {
        let zone: StatementArguments = [
            mark["container"] as Int64, mark["database"] as String, mark["owner"] as String,
            mark["zoneOwner"] as String, mark["zoneName"] as String,
        ]
        try db.cachedStatement(
            sql: """
                UPDATE recordZone SET prunedTo = max(prunedTo, ?)
                WHERE container = ? AND database = ? AND owner = ? AND zoneOwner = ?
                    AND zoneName = ?
                """
        ).execute(arguments: [mark["position"] as Int64] + zone)
        try db.cachedStatement(
            sql: """
                DELETE FROM shadowRecord
                WHERE container = ? AND database = ? AND owner = ? AND zoneOwner = ?
                    AND zoneName = ? AND recordType = ? AND recordName = ?
                """
        ).execute(
            arguments: zone
                + [mark["recordType"] as String, mark["recordName"] as String])
    }
}
