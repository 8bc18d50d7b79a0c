import PostgresLink

/// A query of which the server sends some rows at a time: who stops early has not waited for all
/// that there are, nor had them in memory.
///
/// It ends with its transaction, or when the last row was sent.
final class ServerCursor {
    /// Rows of one answer, about as many as a page has; each may be as large as a record.
    static let rowsAtATime = 100

    private let name: String
    private let pipeline: PostgresPipeline
    /// Whether the last row was sent.
    private(set) var isDone = false

    /// Queues its beginning, which goes with the first rows.
    init(
        _ name: String, of sql: String, _ values: [PostgresValue], on pipeline: PostgresPipeline
    ) throws {
        self.name = name
        self.pipeline = pipeline
        try pipeline.queue(
            "DECLARE \(name) NO SCROLL CURSOR FOR \(sql)", values, keeping: false)
    }

    /// The next rows.
    func fetch() throws -> PostgresRows {
        let rows = try pipeline.fetch("FETCH \(Self.rowsAtATime) FROM \(name)", keeping: false)
        if rows.count < Self.rowsAtATime {
            isDone = true
            // A transaction that asks for each of many things keeps none of them.
            try pipeline.queue("CLOSE \(name)", keeping: false)
        }
        return rows
    }
}
