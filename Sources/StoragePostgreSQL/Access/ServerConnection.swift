import PostgresLink
import StorageSQL

/// A connection to a server, as the shared steps speak to it.
///
/// What nobody asks the result of is queued, and goes with the next statement that is asked for
/// one: a commit of many small statements costs few round trips.
final class ServerConnection: SQLConnection {
    let pipeline: PostgresPipeline
    /// How statements are said to the server, by how the steps say them.
    private var spelled: [String: String] = [:]
    private var isOpen = false
    /// Cursors since the beginning: each has its own name, because several may be read at once.
    private var cursors = 0
    private var plans: PlanAge

    /// How many texts are remembered; those of the relay are fewer.
    private static let mostSpelled = 2000

    init(_ pipeline: PostgresPipeline) {
        self.pipeline = pipeline
        plans = PlanAge(at: pipeline.connection.watch())
    }

    var dialect: Dialect { .postgresql }

    /// The server undoes nothing by itself but with the connection.
    var isInsideTransaction: Bool { isOpen && !pipeline.isBroken }

    /// Whether the connection can be used no more.
    var isBroken: Bool { pipeline.isBroken }

    func prepare(_ sql: String, keeping: Bool) throws -> any SQLStatement {
        ServerStatement(spell(sql), self, keeping: keeping)
    }

    func settle() throws {
        try pipeline.settle()
    }

    /// Queues the beginning of a transaction.
    func begin(_ mode: String = "") throws {
        isOpen = true
        try pipeline.queue("BEGIN\(mode)", keeping: false)
        // Within the transaction, because it takes a snapshot, after which none of a kind begins.
        if plans.isOver(at: pipeline.connection.watch()) {
            try pipeline.queue("DISCARD PLANS", keeping: false)
        }
    }

    /// Ends the transaction, after all that is queued; returns what the server says it did.
    ///
    /// - Throws: What failed of what was queued; then nothing was committed, unless
    ///   ``isBroken``: then nobody knows.
    func commit() throws -> String {
        defer { isOpen = false }
        return try pipeline.fetch("COMMIT", keeping: false).tag
    }

    /// Undoes the transaction.
    func rollBack() {
        isOpen = false
        guard !isBroken else { return }
        // What was queued failed already, and is undone with the rest.
        _ = try? pipeline.settle()
        _ = try? pipeline.fetch("ROLLBACK", keeping: false)
    }

    /// Queues the beginning of a query of which some rows at a time are sent; a transaction must be
    /// open.
    func cursor(_ sql: String, _ values: [PostgresValue]) throws -> ServerCursor {
        cursors += 1
        return try ServerCursor("rows\(cursors)", of: sql, values, on: pipeline)
    }

    private func spell(_ sql: String) -> String {
        if let known = spelled[sql] { return known }
        let text = dialect.spelled(sql)
        if spelled.count < Self.mostSpelled { spelled[sql] = text }
        return text
    }
}

extension PostgresError: SQLFailure {}
