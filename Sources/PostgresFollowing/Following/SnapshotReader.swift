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
            shape = nil
        }
    }

    /// Rows of the table that fill a request, or all that are left; `nil` if none is.
    private func read() throws -> RowBatch? {
        guard let shape else { return nil }
        var builder = RowBuilder(shape)
        defer { valuesLeftOut += builder.leftOut }
        var batch = RowBatch()
        var bytes = 0
        while batch.rows.count < RowBuffer.maximumChanges, bytes < RowBuffer.maximumBytes,
            let written = try connection.nextRow()
        {
            let values = written.map { $0.map { ColumnValue.text($0[...]) } ?? .null }
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
        return batch.rows.isEmpty ? nil : batch
    }

    private func begin(_ published: Catalogue.PublishedTable) throws {
        let shape = TableShape(published.relation, namingKey: published.namingKey, types: types)
        table = "\(published.relation.schema).\(published.relation.name)"
        // Not by a cursor: how large so many rows would be is not known before they are here.
        try connection.beginRows(published.select)
        self.shape = shape
    }
}
