import ChangeSources
import PostgresLink
import RelayModel

/// Reads the rows as they were when a slot was created, table by table.
///
/// Concurrency: only the follower's thread uses it.
final class SnapshotReader: @unchecked Sendable {
    private let connection: PostgresConnection
    private let origin: String
    private let version: Int64
    private var tables: ArraySlice<Catalogue.PublishedTable>
    private var types: TypeCatalogue
    private let renewed: (UInt32) throws -> RenewedTable?
    /// The OIDs of tables that were rewritten since, so that the snapshot no longer sees their
    /// rows.
    private var rewritten: ArraySlice<UInt32> = []
    private var shape: TableShape?
    /// The number of rows in one fetch.
    private var fetched = 1
    /// Whether rows of the current fetch are still unread, and how many were read.
    private var isFetching = false
    private var ofFetch = 0
    /// Whether there is a savepoint to return to after each table.
    private var hasSavepoint = false
    private var count = 0
    /// Whether deletions of rows are reported.
    private let reportsDeletions: Bool
    /// The tables that were read completely.
    private var ended: [SnapshotEnd.Table] = []

    /// A table as it is now, and the types that users created.
    typealias RenewedTable = (table: Catalogue.PublishedTable, types: TypeCatalogue)

    /// Creates a reader on a connection within a transaction, which it ends.
    ///
    /// - Parameters:
    ///   - connection: A connection in a transaction whose snapshot does not change.
    ///   - origin: The prefix of the rows' positions.
    ///   - version: The version of all rows, which is lower than those of later changes.
    ///   - tables: The tables to read.
    ///   - types: The types that users created.
    ///   - reportsDeletions: Whether deletions of rows are reported.
    ///   - renewed: Returns a table's present state by its OID; `nil` if it is no longer followed.
    init(
        _ connection: PostgresConnection, origin: String, version: Int64,
        tables: [Catalogue.PublishedTable], types: TypeCatalogue, reportsDeletions: Bool = true,
        renewed: @escaping (UInt32) throws -> RenewedTable?
    ) {
        self.connection = connection
        self.origin = origin
        self.version = version
        self.tables = tables[...]
        self.types = types
        self.reportsDeletions = reportsDeletions
        self.renewed = renewed
    }

    /// The name of the table that is being read.
    private(set) var table = ""
    /// The number of values that were left out because their row is too large.
    private(set) var valuesLeftOut: UInt64 = 0

    /// Returns the next rows; `nil` at the end, after the transaction was ended.
    func next() throws -> RowBatch? {
        while true {
            if shape == nil {
                guard let published = tables.popFirst() else {
                    try connection.query("COMMIT")
                    hasSavepoint = false
                    guard let table = rewritten.popFirst() else { return nil }
                    try renew(table)
                    continue
                }
                guard try begin(published) else {
                    rewritten.append(published.relation.id)
                    continue
                }
            }
            if let batch = try read() { return batch }
            try leave()
            if let relation = shape?.relation {
                ended.append(SnapshotEnd.Table(schema: relation.schema, name: relation.name))
            }
            shape = nil
        }
    }

    /// The end of the snapshot, which is reported once the relay has all rows.
    ///
    /// A table that could not be read any more, for example because it was dropped, is not in it.
    /// If the publication leaves out deletions, no table is: the operator wants the records of
    /// deleted rows to stay.
    var end: SnapshotEnd {
        SnapshotEnd(
            database: connection.database, tables: reportsDeletions ? ended : [], version: version)
    }

    /// Returns rows of the table, at most as many as fit a request; `nil` if there are no more.
    ///
    /// The number of rows in a fetch is estimated from the size of earlier ones. If they are
    /// larger, the rest is read with the next call.
    private func read() throws -> RowBatch? {
        guard let shape else { return nil }
        var builder = RowBuilder(shape)
        defer { valuesLeftOut += builder.leftOut }
        var batch = RowBatch()
        var bytes = 0
        repeat {
            if !isFetching {
                try connection.beginRows("FETCH \(fetched) FROM belfry_rows")
                (isFetching, ofFetch) = (true, 0)
            }
            while bytes < RowBuffer.maximumBytes {
                guard let written = try connection.nextRow() else {
                    isFetching = false
                    break
                }
                ofFetch += 1
                let values = written.map { $0.map { ColumnValue.text($0[...]) } ?? .null }
                for case .text(let text) in values { bytes += text.count }
                batch.rows.append(row(of: shape, try builder.row(values)))
            }
            // The fetch must be read to its end, and the table ends where a fetch brings nothing.
        } while batch.rows.isEmpty && ofFetch > 0
        guard !batch.rows.isEmpty else { return nil }
        let average = max(bytes / batch.rows.count, 1)
        fetched = min(max(RowBuffer.maximumBytes / average, 1), RowBuffer.maximumChanges)
        return batch
    }

    private func row(of shape: TableShape, _ image: RecordImage) -> FollowedRow {
        var row = FollowedRow(
            .create, schema: shape.relation.schema, table: shape.relation.name,
            key: shape.key, position: "\(origin)/\(count)")
        row.database = connection.database
        row.version = version
        row.isSnapshot = true
        row.after = image
        count += 1
        return row
    }

    /// Begins to read a table; returns whether its rows of that time are still visible.
    ///
    /// A command that rewrites a table, such as `ALTER TABLE … TYPE` or `TRUNCATE`, leaves it empty
    /// for older snapshots. The cursor holds a lock against that until the table is left.
    private func begin(_ published: Catalogue.PublishedTable) throws -> Bool {
        if !hasSavepoint {
            try connection.query("SAVEPOINT belfry_table")
            hasSavepoint = true
        }
        let shape = TableShape(published.relation, namingKey: published.namingKey, types: types)
        table = "\(published.relation.schema).\(published.relation.name)"
        try connection.query(
            "DECLARE belfry_rows NO SCROLL CURSOR FOR \(published.select)", within: nil)
        guard try !isRewritten(published.relation.id) else {
            try leave()
            return false
        }
        self.shape = shape
        // Few rows at first, because their size is unknown.
        fetched = 10
        return true
    }

    /// Ends the cursor, and releases the locks on the table and its indexes.
    ///
    /// Otherwise the transaction would keep them. The server's lock table has space for some
    /// thousand locks in all, and those of many tables could fill it.
    private func leave() throws {
        try connection.query("ROLLBACK TO SAVEPOINT belfry_table")
    }

    /// Returns whether a table, or one of its partitions, was rewritten.
    ///
    /// The rows of the catalogue are as of the snapshot, while its functions return the present
    /// state.
    private func isRewritten(_ table: UInt32) throws -> Bool {
        try !connection.query(
            """
            SELECT FROM pg_class
            WHERE (oid = $1::oid OR oid IN (SELECT relid FROM pg_partition_tree($1::oid)))
            AND relkind = 'r' AND relfilenode IS DISTINCT FROM pg_relation_filenode(oid) LIMIT 1
            """, [String(table)], within: nil
        ).isEmpty
    }

    /// Reads a rewritten table as it is now.
    ///
    /// Its changes since the beginning are sent afterwards, as those of all tables, and lead to the
    /// same result.
    private func renew(_ table: UInt32) throws {
        try connection.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        guard let now = try renewed(table) else { return }
        types = now.types
        tables = [now.table]
    }
}
