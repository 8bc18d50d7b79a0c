import RelayModel
import Storage

/// What an append runs for each change.
enum AppendStatement: Int, CaseIterable {
    /// Remembers a key, unless it is known.
    case remember
    /// What is known of a key.
    case known
    /// Notes the version of a record, unless a later one was noted.
    case noteVersion
    /// What is noted of the version of a record.
    case knownVersion
    /// Inserts an entry of the log.
    case append

    var sql: String {
        switch self {
        case .remember:
            // An entry that has outlived its window gives way, whether or not it was pruned yet.
            // What a record was last said to be gives way to anything else that is said of it.
            """
            INSERT INTO dedupe
                (container, source, kind, key, digest, position, rememberedUntil)
            VALUES (?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (container, source, kind, key) DO UPDATE SET
                digest = excluded.digest, position = excluded.position,
                rememberedUntil = excluded.rememberedUntil
            WHERE dedupe.rememberedUntil <= ?
                OR dedupe.kind = \(DedupeKey.Kind.content.stored)
                    AND dedupe.digest <> excluded.digest
            """
        case .known:
            """
            SELECT digest, position, rememberedUntil FROM dedupe
            WHERE container = ? AND source = ? AND kind = ? AND key = ?
            """
        case .noteVersion:
            // Whether a client has made the record is asked behind this, by who has written it
            // last; what is kept then says the source.
            """
            INSERT INTO shadowRecord
                (container, database, owner, zoneOwner, zoneName, recordType, recordName,
                source, version, position, modifiedAt)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (
                container, database, owner, zoneOwner, zoneName, recordType, recordName)
            DO UPDATE SET
                source = CASE
                    WHEN shadowRecord.isKept = 1 AND shadowRecord.isDeleted = 0
                        AND shadowRecord.source = '\(SourceName.cloudKit.rawValue)'
                    THEN shadowRecord.source ELSE excluded.source END,
                version = excluded.version, position = excluded.position,
                modifiedAt = CASE WHEN shadowRecord.isKept = 1
                    THEN shadowRecord.modifiedAt ELSE excluded.modifiedAt END
            WHERE shadowRecord.version IS NULL OR shadowRecord.source <> excluded.source
                OR shadowRecord.version <= excluded.version
            """
        case .knownVersion:
            """
            SELECT source, version FROM shadowRecord
            WHERE container = ? AND database = ? AND owner = ? AND zoneOwner = ? AND zoneName = ?
                AND recordType = ? AND recordName = ?
            """
        case .append:
            """
            INSERT INTO logEntry
                (position, container, appendedAt, kind, source, isStale, body, continuesRequest,
                recordType, recordName)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """
        }
    }
}

/// The statements that the appends of one commit have run, prepared.
struct AppendStatements {
    private var prepared = [Statement?](repeating: nil, count: AppendStatement.allCases.count)

    mutating func statement(_ which: AppendStatement, of db: Database) throws -> Statement {
        if let statement = prepared[which.rawValue] { return statement }
        let statement = try db.cachedStatement(sql: which.sql)
        prepared[which.rawValue] = statement
        return statement
    }
}
