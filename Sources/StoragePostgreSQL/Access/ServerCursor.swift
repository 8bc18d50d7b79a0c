import PostgresLink

/// A query whose rows the server sends some at a time.
///
/// A reader that stops early neither waits for all rows nor holds them in memory. The cursor ends
/// with its transaction, or when the last row was sent.
final class ServerCursor {
    /// The number of rows of the first answer; each row may be as large as a webhook.
    static let firstRows = 16
    /// The approximate size in bytes and the maximum number of rows of later answers.
    private static let answers = (bytes: 1 << 20, rows: 4096)
    /// How much larger an answer may be than the one before, in rows; readers that stop early need
    /// few.
    private static let growth = 8

    private let name: String
    private let pipeline: PostgresPipeline
    /// The number of rows of the next answer.
    private var size = ServerCursor.firstRows
    /// Whether the last row was sent.
    private(set) var isDone = false

    /// Queues the declaration, which is sent with the first fetch.
    init(
        _ name: String, of sql: String, _ values: [PostgresValue], on pipeline: PostgresPipeline
    ) throws {
        self.name = name
        self.pipeline = pipeline
        try pipeline.queue(
            "DECLARE \(name) NO SCROLL CURSOR FOR \(sql)", values, keeping: false)
    }

    /// Fetches the next rows.
    func fetch() throws -> PostgresRows {
        let rows = try pipeline.fetch("FETCH \(size) FROM \(name)", keeping: false)
        guard rows.count == size else {
            isDone = true
            // Closed at once, because a transaction that runs many queries must not keep all their
            // cursors.
            try pipeline.queue("CLOSE \(name)", keeping: false)
            return rows
        }
        // The next rows are assumed to be as large as these.
        let fitting = rows.count * Self.answers.bytes / max(1, rows.bytes)
        size = max(1, min(size * Self.growth, fitting, Self.answers.rows))
        return rows
    }
}
