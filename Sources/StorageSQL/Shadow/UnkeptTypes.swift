import RelayModel
import Storage

/// The record types that a container no longer keeps and that may still have records.
///
/// The records are hidden from the transaction that changes the schema on, and are deleted in
/// portions: they may be millions, lie anywhere among the container's records, and other requests
/// write meanwhile.
struct UnkeptTypes {
    /// The key of a record within its container: database, owner, zone, type and name.
    struct Key: Sendable {
        let texts: [String]

        init(_ row: Row) { texts = (0..<6).map { row[$0] as String } }

        var arguments: StatementArguments { StatementArguments(texts) }
        /// The arguments for the zone: database, owner, and both names of the zone.
        var zone: StatementArguments { StatementArguments(texts.prefix(4)) }

        func isInZone(of other: Key) -> Bool {
            zip(texts, other.texts).prefix(4).allSatisfy { $0.utf8.elementsEqual($1.utf8) }
        }
    }

    /// The place at which the search for records of the types continues.
    struct Search: Sendable {
        /// The key after which the search continues.
        let start: Key
        /// The position up to which tokens are invalid, because the types were dropped from the
        /// schema by then.
        ///
        /// A type that was dropped after the search began has a later position.
        let position: Int64
    }

    /// The result of looking at one portion of records.
    struct Slice: Sendable {
        let search: Search
        /// The records of the types.
        var records: [Key] = []
        /// The last record that was looked at; `nil` if there are no more.
        var end: Key?
    }

    let container: StoredContainer

    /// The number of rows that one read transaction looks at, which takes some hundredths of a
    /// second and blocks no writer.
    private static let rowsLookedAt = 5000
    /// The number of records deleted together, which is one turn at the writer, and their maximum
    /// size, because they are read again to update the quotas.
    private static let recordsAtOnce = WriteLines.changesPerTurn
    private static let bytesAtOnce = 4 * 1024 * 1024

    private static let key = "database, owner, zoneOwner, zoneName, recordType, recordName"
    private static let cursor = "database, owner, zoneOwner, zoneName, lastType, lastName"

    /// Returns the condition that a row of `shadowRecord` belongs to none of the types.
    ///
    /// `row` is the table's name in the statement.
    static func isNone(of row: String = "shadowRecord") -> String { "NOT \(isOne(of: row))" }

    private static func isOne(of row: String = "shadowRecord", _ more: String = "") -> String {
        """
        EXISTS (SELECT 1 FROM forgottenType AS gone WHERE gone.container = \(row).container
            AND gone.recordType = \(row).recordType\(more))
        """
    }

    /// Returns the types.
    func names(in db: Database) throws -> Set<RecordType> {
        let statement = try db.cachedStatement(
            sql: "SELECT recordType FROM forgottenType WHERE container = ?")
        return Set(
            try Row.fetchAll(statement, arguments: [container.id]).map { row -> RecordType in
                try StoredRow(row: row, table: "forgottenType").identifier("recordType")
            })
    }

    /// Checks that none of the types to keep still has records from before.
    ///
    /// - Throws: ``StorageError/bounded(_:reason:)`` if one has.
    func refuse(_ kept: some Sequence<RecordType>, in db: Database) throws {
        let names = try names(in: db)
        guard !names.isEmpty, let type = kept.first(where: { names.contains($0) })
        else { return }
        throw StorageError.bounded(
            .waiting,
            reason:
                "the records of \(type) are still being forgotten, because the type was not kept "
                + "for a while"
        )
    }

    /// Records types that are no longer kept.
    ///
    /// `head` is the last position of the log.
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

    /// Returns the place at which the search continues, or `nil` if all records are deleted.
    ///
    /// All types are searched together, from the place that the least advanced of them has reached.
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

    /// Deletes the content of the found records.
    ///
    /// Their versions stay, so that stale changes are still recognised.
    ///
    /// Clients that sync the zones must start anew: the records are too many to be reported one by
    /// one, and they were not deleted.
    ///
    /// If another call has continued the deletion meanwhile, and a type is kept again, nothing
    /// happens.
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

    /// The condition for the types whose search has reached the place where this search began, or
    /// further.
    private static let reached =
        "WHERE container = ? AND position <= ? AND (\(cursor)) >= (?, ?, ?, ?, ?, ?)"

    private static let advancing = """
        UPDATE forgottenType
        SET database = ?, owner = ?, zoneOwner = ?, zoneName = ?, lastType = ?, lastName = ?
        \(reached) AND (\(cursor)) < (?, ?, ?, ?, ?, ?)
        """
}
