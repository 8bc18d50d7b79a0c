import ChangeSources
import PostgresLink
import RelayModel

/// Reads the rows as they were when a slot was made, table by table.
///
/// It is used by the follower's thread alone, and that protects it.
final class SnapshotReader: @unchecked Sendable {
    private let connection: PostgresConnection
    private let origin: String
    private let version: Int64
    private var tables: ArraySlice<Catalogue.PublishedTable>
    private var types: TypeCatalogue
    private let renewed: (UInt32) throws -> RenewedTable?
    /// Tables whose rows of then are gone, by their numbers.
    private var rewritten: ArraySlice<UInt32> = []
    private var shape: TableShape?
    /// How many rows are asked for at once.
    private var fetched = 1
    /// Whether rows that were asked for are still to be read, and how many were.
    private var isFetching = false
    private var ofFetch = 0
    /// Whether there is something to go back to behind each table.
    private var hasSavepoint = false
    private var count = 0
    /// The tables that were read to their end.
    private var ended: [SnapshotEnd.Table] = []

    /// A table as it is now, and the types that users made.
    typealias RenewedTable = (table: Catalogue.PublishedTable, types: TypeCatalogue)

    /// Reads on a connection within a transaction that sees the rows as they were, and ends it.
    ///
    /// - Parameters:
    ///   - connection: within a transaction whose snapshot does not change.
    ///   - origin: begins the positions of the rows.
    ///   - version: of all rows; lower than those of changes that come after them.
    ///   - tables: what is read.
    ///   - types: the types that users made.
    ///   - renewed: what a table is by now, by its number; `nil` if it is told no more.
    init(
        _ connection: PostgresConnection, origin: String, version: Int64,
        tables: [Catalogue.PublishedTable], types: TypeCatalogue,
        renewed: @escaping (UInt32) throws -> RenewedTable?
    ) {
        self.connection = connection
        self.origin = origin
        self.version = version
        self.tables = tables[...]
        self.types = types
        self.renewed = renewed
    }

    /// The table that is read.
    private(set) var table = ""
    /// Values that were left out because their row is too large.
    private(set) var valuesLeftOut: UInt64 = 0

    /// The next rows, or `nil` at the end; the transaction is ended then.
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

    /// What is said of the tables once all rows are in the relay.
    ///
    /// A table that could not be read any more, as one that was dropped meanwhile, is not among
    /// them.
    var end: SnapshotEnd {
        SnapshotEnd(database: connection.database, tables: ended, version: version)
    }

    /// Rows of the table, at most as many as a request holds; `nil` if there are no more.
    ///
    /// As many are asked for as fit by what those before them were. Where they are larger, the rest
    /// is not read before it is wanted.
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
            // Nothing may be left of what was asked for; the table ends where nothing came.
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

    /// Begins to read a table; returns whether its rows of then are still there.
    ///
    /// Who rewrites a table, as `ALTER TABLE … TYPE` and `TRUNCATE` do, leaves it empty for all who
    /// see an earlier moment. The cursor holds a lock against that until the table is left.
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
        // Few at first, because nothing is known of them.
        fetched = 10
        return true
    }

    /// Ends the cursor and gives back the locks of the table and of its indexes.
    ///
    /// A transaction keeps its locks, and the server has room for some thousand of them in all:
    /// those of many tables would take everybody's.
    private func leave() throws {
        try connection.query("ROLLBACK TO SAVEPOINT belfry_table")
    }

    /// Whether the files of a table, or of one of its partitions, are others than they were: the
    /// catalogue's rows are of then, and what its functions say is of now.
    private func isRewritten(_ table: UInt32) throws -> Bool {
        try !connection.query(
            """
            SELECT FROM pg_class
            WHERE (oid = $1::oid OR oid IN (SELECT relid FROM pg_partition_tree($1::oid)))
            AND relkind = 'r' AND relfilenode IS DISTINCT FROM pg_relation_filenode(oid) LIMIT 1
            """, [String(table)], within: nil
        ).isEmpty
    }

    /// Reads a table that was rewritten as it is now: what changed of its rows since then is told
    /// after them, as of all others, and ends in the same.
    private func renew(_ table: UInt32) throws {
        try connection.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        guard let now = try renewed(table) else { return }
        types = now.types
        tables = [now.table]
    }
}
