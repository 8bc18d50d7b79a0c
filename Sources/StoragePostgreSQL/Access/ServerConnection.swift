import PostgresLink
import StorageSQL

/// A connection to a server, which implements the shared `SQLConnection`.
///
/// A statement whose result is not needed is queued, and sent with the next statement whose result
/// is. So a commit of many small statements costs few round trips.
final class ServerConnection: SQLConnection {
    let pipeline: PostgresPipeline
    /// The statements in PostgreSQL's dialect, by their shared text.
    private var spelled: [String: String] = [:]
    private var isOpen = false
    /// The number of cursors so far; each gets a name of its own, because several may be open at
    /// once.
    private var cursors = 0
    private var plans: PlanAge

    /// The maximum number of remembered texts; the relay has fewer.
    private static let mostSpelled = 2000

    init(_ pipeline: PostgresPipeline) {
        self.pipeline = pipeline
        plans = PlanAge(at: pipeline.connection.watch())
    }

    var dialect: Dialect { .postgresql }

    /// The server never rolls back on its own, except when the connection is lost.
    var isInsideTransaction: Bool { isOpen && !pipeline.isBroken }

    /// Whether the connection can no longer be used.
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
        // Within the transaction, because the statement takes a snapshot.
        if plans.isOver(at: pipeline.connection.watch()) {
            try pipeline.queue("DISCARD PLANS", keeping: false)
        }
    }

    /// Commits the transaction after everything that is queued; returns the server's command tag.
    ///
    /// - Throws: The failure of a queued statement or of the commit. Nothing was committed then,
    ///   unless ``isBroken``: in that case it is unknown.
    func commit() throws -> String {
        defer { isOpen = false }
        return try pipeline.fetch("COMMIT", keeping: false).tag
    }

    /// Rolls the transaction back.
    func rollBack() {
        isOpen = false
        pipeline.dropGathered()
        guard !isBroken else { return }
        // A queued statement may have failed already; it is rolled back with the others.
        _ = try? pipeline.settle()
        _ = try? pipeline.fetch("ROLLBACK", keeping: false)
    }

    /// Queues the declaration of a cursor, whose rows are sent some at a time.
    ///
    /// A transaction must be open.
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
