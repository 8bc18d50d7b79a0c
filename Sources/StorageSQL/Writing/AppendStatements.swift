import RelayModel
import Storage

/// The statements that an append runs for each change.
enum AppendStatement: Int, CaseIterable {
    /// Remembers a dedupe key, unless it is known.
    case remember
    /// Remembers a dedupe key that was looked up, and is unknown or yields.
    case rememberAnew
    /// Reads the entry of a dedupe key.
    case known
    /// Notes the version of a record, unless a later one was noted.
    case noteVersion
    /// Reads the noted version of a record.
    case knownVersion
    /// Inserts an entry of the log.
    case append

    private static let remembering = """
        INSERT INTO dedupe (container, source, kind, key, digest, position, rememberedUntil)
        VALUES (?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (container, source, kind, key) DO UPDATE SET
            digest = excluded.digest, position = excluded.position,
            rememberedUntil = excluded.rememberedUntil
        """

    var sql: String {
        switch self {
        case .remember:
            // An entry whose window has passed yields, whether or not it was pruned yet. The last
            // content of a record yields to any other content.
            """
            \(Self.remembering)
            WHERE dedupe.rememberedUntil <= ?
                OR dedupe.kind = \(DedupeKey.Kind.content.stored)
                    AND dedupe.digest <> excluded.digest
            """
        case .rememberAnew: Self.remembering
        case .known:
            """
            SELECT digest, position, rememberedUntil FROM dedupe
            WHERE container = ? AND source = ? AND kind = ? AND key = ?
            """
        case .noteVersion:
            // Later steps check by `source` whether a client created the record. So the source of a
            // record that a client keeps stays until the record itself is written.
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

/// The prepared statements of the appends in one commit.
struct AppendStatements {
    private var prepared = [Statement?](repeating: nil, count: AppendStatement.allCases.count)

    mutating func statement(_ which: AppendStatement, of db: Database) throws -> Statement {
        if let statement = prepared[which.rawValue] { return statement }
        let statement = try db.cachedStatement(sql: which.sql)
        prepared[which.rawValue] = statement
        return statement
    }
}
