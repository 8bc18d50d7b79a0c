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
    private let types: TypeCatalogue
    private var shape: TableShape?
    /// How many rows are asked for at once.
    private var fetched = 1
    /// Whether rows that were asked for are still to be read, and how many were.
    private var isFetching = false
    private var ofFetch = 0
    private var count = 0

    /// Reads on a connection within a transaction that sees the rows as they were, and ends it.
    ///
    /// - Parameters:
    ///   - connection: within a transaction whose snapshot does not change.
    ///   - origin: begins the positions of the rows.
    ///   - version: of all rows; lower than those of changes that come after them.
    ///   - tables: what is read.
    ///   - types: the types that users made.
    init(
        _ connection: PostgresConnection, origin: String, version: Int64,
        tables: [Catalogue.PublishedTable], types: TypeCatalogue
    ) {
        self.connection = connection
        self.origin = origin
        self.version = version
        self.tables = tables[...]
        self.types = types
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
                    return nil
                }
                try begin(published)
            }
            if let batch = try read() { return batch }
            try connection.query("CLOSE belfry_rows")
            shape = nil
        }
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

    private func begin(_ published: Catalogue.PublishedTable) throws {
        let shape = TableShape(published.relation, namingKey: published.namingKey, types: types)
        table = "\(published.relation.schema).\(published.relation.name)"
        try connection.query(
            "DECLARE belfry_rows NO SCROLL CURSOR FOR \(published.select)", within: nil)
        self.shape = shape
        // Few at first, because nothing is known of them.
        fetched = 10
    }
}
