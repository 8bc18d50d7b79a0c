import PostgresLink

/// A query of which the server sends some rows at a time: who stops early has not waited for all
/// that there are, nor had them in memory.
///
/// It ends with its transaction, or when the last row was sent.
final class ServerCursor {
    /// Rows of the first answer: each may be as large as a webhook.
    static let firstRows = 16
    /// What an answer has after that, about, and how many rows at the most.
    private static let answers = (bytes: 1 << 20, rows: 4096)
    /// How many times as many rows an answer may have as the one before: who stops early needs few.
    private static let growth = 8

    private let name: String
    private let pipeline: PostgresPipeline
    /// How many rows the next answer has.
    private var size = ServerCursor.firstRows
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
        let rows = try pipeline.fetch("FETCH \(size) FROM \(name)", keeping: false)
        guard rows.count == size else {
            isDone = true
            // A transaction that asks for each of many things keeps none of them.
            try pipeline.queue("CLOSE \(name)", keeping: false)
            return rows
        }
        // If the next rows are as large as these.
        let fitting = rows.count * Self.answers.bytes / max(1, rows.bytes)
        size = max(1, min(size * Self.growth, fitting, Self.answers.rows))
        return rows
    }
}
