import RelayModel
import Storage

/// The record types that a container keeps no more and of which there may still be records.
///
/// Those are shown to nobody from the transaction on in which the schema says so, and go some at a
/// time: they may be millions, lie anywhere among the container's, and others write meanwhile.
struct UnkeptTypes {
    /// The key of a record within its container: database, owner, zone, type and name.
    struct Key: Sendable {
        let texts: [String]

        init(_ row: Row) { texts = (0..<6).map { row[$0] as String } }

        var arguments: StatementArguments { StatementArguments(texts) }
        /// Database, owner, and both names of the zone.
        var zone: StatementArguments { StatementArguments(texts.prefix(4)) }

        func isInZone(of other: Key) -> Bool {
            zip(texts, other.texts).prefix(4).allSatisfy { $0.utf8.elementsEqual($1.utf8) }
        }
    }

    /// Where records of the types are looked for next.
    struct Search: Sendable {
        /// The key after which they are.
        let start: Key
        /// The last position of the log of which no token is good.
        ///
        /// What was kept no more only after the search began has a later one.
        let position: Int64
    }

    /// What one look has found.
    struct Slice: Sendable {
        let search: Search
        /// Records of the types.
        var records: [Key] = []
        /// The last record that was looked at; `nil` if there are no more.
        var end: Key?
    }

    let container: StoredContainer

    /// Rows that one look reads, while nobody has to wait for it: some hundredths of a second.
    private static let rowsLookedAt = 5000
    /// Records that are forgotten together, and their bytes, which are read once more to be counted
    /// off: a turn at the writer.
    private static let recordsAtOnce = WriteLines.changesPerTurn
    private static let bytesAtOnce = 4 * 1024 * 1024

    private static let key = "database, owner, zoneOwner, zoneName, recordType, recordName"
    private static let cursor = "database, owner, zoneOwner, zoneName, lastType, lastName"

    /// The condition that the record in a row of `shadowRecord`, under the name that it has in the
    /// statement, is of none of the types.
    static func isNone(of row: String = "shadowRecord") -> String { "NOT \(isOne(of: row))" }

    private static func isOne(of row: String = "shadowRecord", _ more: String = "") -> String {
        """
        EXISTS (SELECT 1 FROM forgottenType AS gone WHERE gone.container = \(row).container
            AND gone.recordType = \(row).recordType\(more))
        """
    }

    /// The types.
    func names(in db: Database) throws -> Set<RecordType> {
        let statement = try db.cachedStatement(
            sql: "SELECT recordType FROM forgottenType WHERE container = ?")
        return Set(
            try Row.fetchAll(statement, arguments: [container.id]).map { row -> RecordType in
                try StoredRow(row: row, table: "forgottenType").identifier("recordType")
            })
    }

    /// Says no to whoever would keep a type of which there are records from before.
    ///
    /// - Throws: ``StorageError/bounded(_:reason:)``.
    func refuse(_ kept: some Sequence<RecordType>, in db: Database) throws {
        let names = try names(in: db)
        guard !names.isEmpty, let type = kept.first(where: { names.contains($0) })
        else { return }
        throw StorageError.bounded(
            .waiting,
            reason: "\(type) was kept no more, and what was kept of it is being forgotten yet")
    }

    /// Notes types that are kept no more; `head` is the last position of the log.
    func begin(_ types: [RecordType], at head: LogPosition, in db: Database) throws {
        for type in types {
            try db.cachedStatement(
                sql: """
                    INSERT INTO forgottenType (container, recordType, position, \(Self.cursor))
                    VALUES (?, ?, ?, '', '', '', '', '', '')
                    """
            ).execute(arguments: [container.id, type.rawValue, head.stored])
        }
    }

    /// Where records are looked for next; `nil` if all are forgotten.
    ///
    /// The types are looked for together, from where the last of them has come.
    func search(in db: Database) throws -> Search? {
        let statement = try db.cachedStatement(
            sql: """
                SELECT \(Self.cursor), (
                    SELECT max(position) FROM forgottenType WHERE container = ?1) AS newest
                FROM forgottenType WHERE container = ?1 ORDER BY \(Self.cursor) LIMIT 1
                """)
        return try Row.fetchOne(statement, arguments: [container.id]).map { row in
            Search(start: Key(row), position: row["newest"])
        }
    }

    /// Looks at the next records of the container.
    func slice(_ search: Search, in db: Database) throws -> Slice {
        let id: StatementArguments = [container.id]
        let rows = try Row.fetchCursor(
            db.cachedStatement(sql: Self.sliceStatement(db.dialect)),
            arguments: id + search.start.arguments + [Self.rowsLookedAt])
        var slice = Slice(search: search)
        var seen = 0
        var bytes = 0
        while let row = try rows.next() {
            seen += 1
            let key = Key(row)
            slice.end = key
            let size = row["bytes"] as Int
            guard size > 0 else { continue }
            slice.records.append(key)
            bytes += size
            let isFull = slice.records.count == Self.recordsAtOnce || bytes >= Self.bytesAtOnce
            if isFull { return slice }
        }
        if seen < Self.rowsLookedAt { slice.end = nil }
        return slice
    }

    static func sliceStatement(_ dialect: Dialect) -> String {
        """
        SELECT \(key),
            CASE WHEN \(isOne()) AND isKept = 1
                THEN 256 + coalesce(\(dialect.bytes(of: "fields")), 0)
                    + coalesce(\(dialect.bytes(of: "wire")), 0)
                ELSE 0 END AS bytes
        FROM shadowRecord
        WHERE container = ? AND (\(key)) > (?, ?, ?, ?, ?, ?)
        ORDER BY \(key) LIMIT ?
        """
    }

    /// Forgets what a look has found; the versions stay for the sake of stale changes.
    ///
    /// Whoever syncs their zones begins anew: they are too many to be told of one by one, and none
    /// was deleted.
    ///
    /// Somebody else may have gone on meanwhile, and the type be kept again: then nothing is done.
    func forget(_ slice: Slice, in db: Database) throws {
        let id: StatementArguments = [container.id]
        let position: StatementArguments = [slice.search.position]
        let forget = try db.cachedStatement(sql: Self.forgetting)
        let expire = try db.cachedStatement(
            sql: """
                UPDATE recordZone
                SET prunedTo = max(recordZone.prunedTo, ?),
                    position = max(recordZone.position, ?)
                WHERE \(ShadowRows.zoneCondition)
                """)
        var last: Key?
        for record in slice.records {
            try forget.execute(arguments: id + record.arguments + position)
            if let last, record.isInZone(of: last) { continue }
            try expire.execute(arguments: position + position + id + record.zone)
            last = record
        }
        let start = slice.search.start.arguments
        guard let end = slice.end?.arguments else {
            try db.cachedStatement(sql: "DELETE FROM forgottenType \(Self.reached)")
                .execute(arguments: id + position + start)
            return
        }
        try db.cachedStatement(sql: Self.advancing)
            .execute(arguments: end + id + position + start + end)
    }

    private static let forgetting = """
        UPDATE shadowRecord SET isKept = 0, isDeleted = 0, fields = NULL, wire = NULL,
            deletedWith = NULL
        WHERE \(ShadowRows.zoneCondition) AND recordType = ? AND recordName = ? AND isKept = 1
            AND \(isOne(of: "shadowRecord", " AND gone.position <= ?"))
        """

    /// The types whose records have been looked at up to where a search began, or further.
    private static let reached =
        "WHERE container = ? AND position <= ? AND (\(cursor)) >= (?, ?, ?, ?, ?, ?)"

    private static let advancing = """
        UPDATE forgottenType
        SET database = ?, owner = ?, zoneOwner = ?, zoneName = ?, lastType = ?, lastName = ?
        \(reached) AND (\(cursor)) < (?, ?, ?, ?, ?, ?)
        """
}
