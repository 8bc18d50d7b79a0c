import RelayModel
import Storage

extension RelayStore {
    /// Deletes the marks of deleted records, and records in their zones which sync tokens are still
    /// valid.
    ///
    /// The age counts from the moment of the deletion as its source gives it. So a deletion that is
    /// reported late may be pruned at once, and tokens from before the report then expire.
    func pruneMarks(
        _ retention: Retention, at now: Timestamp, _ portion: Int
    ) async throws -> Int {
        try await prune(retention, at: now, portion) { db, cutoff in
            let statement = try db.cachedStatement(
                sql: """
                    SELECT * FROM shadowRecord WHERE isDeleted = 1 AND modifiedAt <= ?
                    ORDER BY modifiedAt LIMIT ?
                    """)
            let marks = try Row.fetchAll(statement, arguments: [cutoff.stored, portion])
            try Self.forget(marks, in: db)
            return marks.count
        }
    }

    /// Deletes the versions of records that are not kept and that have not changed for long.
    ///
    /// A version from before versions had a moment starts to age when it is first looked at.
    func pruneVersions(
        _ retention: Retention, at now: Timestamp, _ portion: Int
    ) async throws -> Int {
        try await prune(retention, at: now, portion) { db, cutoff in
            let (date, forget) = (
                try db.cachedStatement(sql: Self.datingVersion),
                try db.cachedStatement(sql: Self.forgettingVersion)
            )
            let undated = try Row.fetchAll(
                try db.cachedStatement(sql: Self.undatedVersions), arguments: [portion])
            for row in undated {
                let moment: StatementArguments = [now.stored]
                try date.execute(arguments: moment + Self.key(of: row))
            }
            let old = try Row.fetchAll(
                try db.cachedStatement(sql: Self.oldVersions), arguments: [cutoff.stored, portion])
            for row in old { try forget.execute(arguments: Self.key(of: row)) }
            return old.count
        }
    }

    /// Deletes rows last changed before `retention.deletedAge`, in portions of one commit each.
    ///
    /// `body` deletes one portion and returns the number of its rows.
    private func prune(
        _ retention: Retention, at now: Timestamp, _ portion: Int,
        _ body: @escaping @Sendable (Database, Timestamp) throws -> Int
    ) async throws -> Int {
        guard let age = retention.deletedAge else { return 0 }
        let cutoff = now.advanced(by: .zero - age)
        return try await inPortions(portion) { store in
            try await store.write { commit in try body(commit.db, cutoff) }
        }
    }

    private static func key(of row: Row) -> StatementArguments {
        let container: StatementArguments = [row["container"] as Int64]
        let names = [
            "database", "owner", "zoneOwner", "zoneName", "recordType", "recordName",
        ]
        return container + StatementArguments(names.map { row[$0] as String })
    }

    /// The condition identifies a row by its whole key.
    ///
    /// With a list of keys, SQLite would compare all records of their containers.
    private static let isVersion = """
        WHERE container = ? AND database = ? AND owner = ? AND zoneOwner = ? AND zoneName = ?
            AND recordType = ? AND recordName = ?
        """
    private static let datingVersion = "UPDATE shadowRecord SET modifiedAt = ? \(isVersion)"
    private static let forgettingVersion = "DELETE FROM shadowRecord \(isVersion)"
    private static let versions = """
        SELECT container, database, owner, zoneOwner, zoneName, recordType, recordName
        FROM shadowRecord WHERE isKept = 0 AND isDeleted = 0
        """
    /// The order makes PostgreSQL use the index.
    ///
    /// Without it, PostgreSQL reads the whole table while all other writers wait, if its statistics
    /// say that many rows have no date.
    static let undatedVersions = "\(versions) AND modifiedAt IS NULL ORDER BY modifiedAt LIMIT ?"
    static let oldVersions = "\(versions) AND modifiedAt <= ? ORDER BY modifiedAt LIMIT ?"

    /// Deletes the marks of deleted zones without marks of records, and records in their databases
    /// which sync tokens are still valid.
    ///
    /// A mark from before deletions had a moment starts to age when it is first looked at.
    func pruneZones(
        _ retention: Retention, at now: Timestamp, _ portion: Int
    ) async throws -> Int {
        guard let age = retention.deletedAge else { return 0 }
        let cutoff = now.advanced(by: .zero - age)
        return try await inPortions(portion) { store in
            try await store.write { commit in
                try commit.db.cachedStatement(
                    sql: """
                        UPDATE recordZone SET deletedAt = ?
                        WHERE (container, database, owner, zoneOwner, zoneName) IN (
                            SELECT container, database, owner, zoneOwner, zoneName
                            FROM recordZone WHERE isDeleted = 1 AND deletedAt IS NULL LIMIT ?)
                        """
                ).execute(arguments: [now.stored, portion])
                let statement = try commit.db.cachedStatement(
                    sql: """
                        SELECT * FROM recordZone AS zone
                        WHERE isDeleted = 1 AND deletedAt <= ? AND NOT EXISTS (
                            SELECT 1 FROM shadowRecord AS record
                            WHERE record.container = zone.container
                                AND record.database = zone.database
                                AND record.owner = zone.owner
                                AND record.zoneOwner = zone.zoneOwner
                                AND record.zoneName = zone.zoneName)
                        LIMIT ?
                        """)
                let marks = try Row.fetchAll(statement, arguments: [cutoff.stored, portion])
                for mark in marks { try Self.forget(zone: mark, in: commit.db) }
                return marks.count
            }
        }
    }

    private static func forget(zone mark: Row, in db: Database) throws {
        let database: StatementArguments = [
            mark["container"] as Int64, mark["database"] as String, mark["owner"] as String,
        ]
        let position = max(mark["position"] as Int64, mark["prunedTo"] as Int64)
        try db.cachedStatement(
            sql: """
                INSERT INTO zoneMemory (container, database, owner, prunedEdit, prunedPosition)
                VALUES (?, ?, ?, ?, ?)
                ON CONFLICT (container, database, owner) DO UPDATE SET
                    prunedEdit = max(zoneMemory.prunedEdit, excluded.prunedEdit),
                    prunedPosition = max(zoneMemory.prunedPosition, excluded.prunedPosition)
                """
        ).execute(arguments: database + [mark["edit"] as Int64, position])
        try db.cachedStatement(
            sql: """
                DELETE FROM recordZone
                WHERE container = ? AND database = ? AND owner = ? AND zoneOwner = ?
                    AND zoneName = ?
                """
        ).execute(
            arguments: database + [mark["zoneOwner"] as String, mark["zoneName"] as String])
    }

    /// Deletes marks, and updates each of their zones once, because on PostgreSQL updating the same
    /// row again walks over the versions that the transaction made before.
    static func forget(_ marks: [Row], in db: Database) throws {
        let delete = try db.cachedStatement(
            sql: """
                DELETE FROM shadowRecord
                WHERE container = ? AND database = ? AND owner = ? AND zoneOwner = ?
                    AND zoneName = ? AND recordType = ? AND recordName = ?
                """)
        // The keys are the bytes of the names, separated by zero bytes, which names cannot contain.
        var zones: [[UInt8]: (name: StatementArguments, last: Int64)] = [:]
        for mark in marks {
            let container = mark["container"] as Int64
            let texts = ["database", "owner", "zoneOwner", "zoneName"].map { mark[$0] as String }
            let id: StatementArguments = [container]
            let name = id + StatementArguments(texts)
            let key = texts.reduce(into: Array("\(container)".utf8)) { $0 += [0] + Array($1.utf8) }
            zones[key] = (name, max(zones[key]?.last ?? 0, mark["position"] as Int64))
            try delete.execute(
                arguments: name + [mark["recordType"] as String, mark["recordName"] as String])
        }
        let note = try db.cachedStatement(
            sql: """
                UPDATE recordZone SET prunedTo = max(prunedTo, ?)
                WHERE container = ? AND database = ? AND owner = ? AND zoneOwner = ?
                    AND zoneName = ?
                """)
        for zone in zones.values {
            let last: StatementArguments = [zone.last]
            try note.execute(arguments: last + zone.name)
        }
    }
}
