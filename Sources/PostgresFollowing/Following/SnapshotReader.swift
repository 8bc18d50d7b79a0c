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
    private var builder: RowBuilder?
    private var shape: TableShape?
    private var fetched = 1
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
            let rows = try connection.rows("FETCH \(fetched) FROM belfry_rows").map { row in
                row.map { $0.map { ColumnValue.text($0[...]) } ?? .null }
            }
            guard !rows.isEmpty, let shape, var builder else {
                try connection.query("CLOSE belfry_rows")
                self.shape = nil
                continue
            }
            var batch = RowBatch()
            var bytes = 0
            for values in rows {
                for case .text(let text) in values { bytes += text.count }
                var row = FollowedRow(
                    .create, schema: shape.relation.schema, table: shape.relation.name,
                    key: shape.key, position: "\(origin)/\(count)")
                row.database = connection.database
                row.version = version
                row.isSnapshot = true
                row.after = try builder.row(values)
                batch.rows.append(row)
                count += 1
            }
            // As many as fit a request by what these were; few at first, because nothing is known.
            let average = max(bytes / rows.count, 1)
            fetched = min(max(RowBuffer.maximumBytes / average, 1), RowBuffer.maximumChanges)
            return batch
        }
    }

    private func begin(_ published: Catalogue.PublishedTable) throws {
        let shape = TableShape(published.relation, namingKey: published.namingKey, types: types)
        table = "\(published.relation.schema).\(published.relation.name)"
        try connection.query(
            "DECLARE belfry_rows NO SCROLL CURSOR FOR \(published.select)", within: nil)
        self.shape = shape
        builder = RowBuilder(shape)
        fetched = 10
    }
}
