#if PostgreSQL
    import CPQ
#else
    import CNoPQ
#endif

/// Statements that are sent to the server together, and answered together.
///
/// A statement whose answer is not needed is queued, and sent with the next one whose answer is. So
/// many small statements cost one round trip. Each round trip ends with a synchronisation, after
/// which an open transaction is *idle* for the server. If its client is paused then,
/// `idle_in_transaction_session_timeout` ends the session, and it blocks no other for ever.
///
/// Concurrency: only one thread may use it.
package final class PostgresPipeline: @unchecked Sendable {
    /// A statement with the types of its parameters.
    private struct Statement: Hashable {
        let sql: String
        let types: [UInt32]
    }

    /// The maximum number of statements that are kept prepared; the relay has fewer.
    private static let mostPrepared = 2000
    /// The size at which queued statements are sent, so that no transaction is in memory twice.
    private static let mostQueuedBytes = 1 << 20
    /// The size at which gathered rows are sent, so that the server works on them meanwhile.
    private static let mostGatheredBytes = 1 << 16
    /// How many executions of one statement are sent together; all their answers are in memory at
    /// once.
    private static let mostTogether = 64

    /// The connection, which must not be used for anything else.
    package let connection: PostgresConnection
    private let patience: Duration
    private var prepared: [Statement: String] = [:]
    /// The statements that were prepared since the last synchronisation, and may have failed.
    private var unproven: [Statement] = []
    private var nextName = 0
    private var queuedBytes = 0
    /// Rows to be inserted by statements that are not queued yet, in the order of the first ones.
    private var gathered: [GatheredRows] = []
    /// The statements of queries that run for many sets of values, by the query.
    private var repeated: [Statement: String] = [:]
    private var queued = 0
    /// The number of synchronisations whose answers were not read yet.
    private var unanswered = 0
    /// The number of round trips so far.
    package private(set) var roundTrips = 0

    /// Takes over a connection.
    ///
    /// - Parameters:
    ///   - connection: A connection on which nothing is in progress.
    ///   - patience: How long one round trip may take before the connection is given up.
    /// - Throws: ``PostgresError`` if the connection cannot be used.
    package init(_ connection: PostgresConnection, patience: Duration) throws {
        self.connection = connection
        self.patience = patience
        guard PQenterPipelineMode(connection.handle) == 1 else { throw connection.failure }
        // Earlier queries used single-row mode, which libpq leaves only with the second result in a
        // pipeline. So the first round trip is empty.
        _ = try exchange(within: patience, keeping: 0)
        roundTrips = 0
    }

    /// Whether the connection can no longer be used.
    package private(set) var isBroken = false

    /// Whether a transaction was open after the last round trip.
    package var isInsideTransaction: Bool {
        let status = PQtransactionStatus(connection.handle)
        return status == PQTRANS_INTRANS || status == PQTRANS_INERROR
    }

    /// Queues a statement whose answer is not needed.
    ///
    /// Its error is thrown by the next ``fetch(_:_:)`` or ``settle(within:)``.
    ///
    /// - Parameters:
    ///   - sql: One statement.
    ///   - values: The values of its parameters.
    ///   - keeping: Whether it is prepared once, and reused by its text.
    /// - Throws: ``PostgresError`` of an earlier queued statement, if the queue had to be sent.
    package func queue(
        _ sql: String, _ values: [PostgresValue] = [], keeping: Bool = true
    ) throws {
        try enqueue(sql, values, keeping: keeping)
        if queuedBytes > Self.mostQueuedBytes { try settle() }
    }

    /// Gathers a row that is inserted together with others, before the next other statement.
    ///
    /// Rows of different statements may be inserted in another order than they were gathered in.
    /// Those of one statement keep their order.
    ///
    /// - Parameters:
    ///   - sql: An INSERT statement whose parameters are all in `VALUES ($1, $2, …)`.
    ///   - row: The values of the row.
    ///   - keyColumns: How many of the first values distinguish rows, where the statement says what
    ///     a conflict does: a second row with the same ones is inserted by a statement of its own,
    ///     after the first. 0 if rows are never in conflict.
    /// - Throws: ``PostgresError`` of an earlier queued statement, if the queue had to be sent.
    package func gather(_ sql: String, _ row: [PostgresValue], keyColumns: Int) throws {
        guard let place = gathered.firstIndex(where: { $0.sql == sql }) else {
            gathered.append(GatheredRows(sql, from: row, keyColumns: keyColumns))
            return
        }
        if !gathered[place].add(row, keyColumns: keyColumns) {
            let before = gathered[place]
            gathered[place] = GatheredRows(sql, from: row, keyColumns: keyColumns)
            try enqueue(before.statement, before.parameters, keeping: true)
        }
        guard gathered[place].byteCount > Self.mostGatheredBytes else { return }
        try enqueueGathered()
        guard queuedBytes <= Self.mostQueuedBytes else { return try settle() }
        guard PQflush(connection.handle) >= 0 else { throw broken() }
    }

    /// Forgets rows that were gathered and not sent yet.
    package func dropGathered() {
        gathered.removeAll()
    }

    private func enqueueGathered() throws {
        let all = gathered
        gathered.removeAll()
        for rows in all { try enqueue(rows.statement, rows.parameters, keeping: true) }
    }

    private func enqueue(_ sql: String, _ values: [PostgresValue], keeping: Bool) throws {
        try enqueueGathered()
        try enqueue(sql, PostgresParameters(values), keeping: keeping)
    }

    private func enqueue(
        _ sql: String, _ parameters: PostgresParameters, keeping: Bool
    ) throws {
        let statement = Statement(sql: sql, types: parameters.types)
        let name = try keeping ? prepare(statement) : nil
        let isSent = parameters.withPointers { pointers, lengths, formats in
            guard let name else {
                return PQsendQueryParams(
                    connection.handle, sql, Int32(parameters.count), parameters.types,
                    pointers, lengths, formats, 1)
            }
            return PQsendQueryPrepared(
                connection.handle, name, Int32(parameters.count), pointers, lengths, formats, 1)
        }
        guard isSent == 1 else { throw broken() }
        queued += 1
        queuedBytes += parameters.byteCount + 64
    }

    /// Runs a statement after everything that is queued, and returns its answer.
    package func fetch(
        _ sql: String, _ values: [PostgresValue] = [], keeping: Bool = true,
        within patience: Duration? = nil
    ) throws -> PostgresRows {
        // It is queued whatever the size of the queue is: if it were sent alone, its answer would
        // be lost.
        try enqueue(sql, values, keeping: keeping)
        return try lastAnswer(within: patience ?? self.patience)
    }

    private func lastAnswer(within patience: Duration) throws -> PostgresRows {
        guard let rows = try exchange(within: patience, keeping: 1).last else {
            throw Self.silence
        }
        return rows
    }

    /// Runs a statement once for each set of values, after everything that is queued.
    ///
    /// Many executions are sent together. The answers are in the order of `sets`.
    package func fetchEach(
        _ sql: String, _ sets: [[PostgresValue]], keeping: Bool = true
    ) throws -> [PostgresRows] {
        var found: [PostgresRows] = []
        found.reserveCapacity(sets.count)
        var rest = sets[...]
        while !rest.isEmpty {
            let part = rest.prefix(Self.mostTogether)
            rest = rest.dropFirst(part.count)
            if keeping, part.count > 1, let query = RepeatedQuery(sql, part) {
                found += try fetch(query).split(into: part.count)
                continue
            }
            // Preparing has an answer of its own, which must not come between these.
            if keeping {
                for values in part {
                    _ = try prepare(Statement(sql: sql, types: values.map(\.kind.type)))
                }
            }
            for values in part { try enqueue(sql, values, keeping: keeping) }
            let rows = try exchange(within: patience, keeping: part.count)
            guard rows.count == part.count else { throw Self.silence }
            found += rows
        }
        return found
    }

    private func fetch(_ query: RepeatedQuery) throws -> PostgresRows {
        try enqueueGathered()
        let parameters = query.parameters
        let statement = Statement(sql: query.sql, types: parameters.types)
        let text = repeated[statement] ?? query.statement
        if repeated.count < Self.mostPrepared { repeated[statement] = text }
        try enqueue(text, parameters, keeping: true)
        return try lastAnswer(within: patience)
    }

    private static let silence = PostgresError(
        state: "", message: "the server did not answer a statement")

    /// Waits until everything that is queued is done.
    package func settle(within patience: Duration? = nil) throws {
        try enqueueGathered()
        guard queued > 0 || unanswered > 0 else { return }
        _ = try exchange(within: patience ?? self.patience, keeping: 0)
    }

    /// Sends what is queued without waiting.
    ///
    /// An error is thrown by the next ``fetch(_:_:keeping:)`` or ``settle(within:)``.
    package func send() throws {
        try enqueueGathered()
        guard queued > 0 else { return }
        try synchronise()
        unanswered += 1
        guard PQflush(connection.handle) >= 0 else { throw broken() }
    }

    /// Marks the connection as broken, so that nothing more is sent or awaited.
    package func giveUp() {
        isBroken = true
    }

    private func broken() -> PostgresError {
        isBroken = true
        return connection.failure
    }

    // MARK: Sending

    /// Prepares a statement if needed and returns its name; `nil` if too many are prepared.
    private func prepare(_ statement: Statement) throws -> String? {
        if let name = prepared[statement] { return name }
        guard prepared.count < Self.mostPrepared else { return nil }
        nextName += 1
        let name = "b\(nextName)"
        guard
            PQsendPrepare(
                connection.handle, name, statement.sql, Int32(statement.types.count),
                statement.types) == 1
        else { throw broken() }
        prepared[statement] = name
        unproven.append(statement)
        return name
    }

    // MARK: Receiving

    /// Sends what is queued, reads all answers, and returns the last `count` of them.
    private func exchange(within patience: Duration, keeping count: Int) throws -> [PostgresRows] {
        try synchronise()
        var last: [PostgresRows] = []
        var refusal: PostgresError?
        let start = connection.watch()
        while let result = try nextResult(since: start, within: patience) {
            switch PQresultStatus(result) {
            case PGRES_PIPELINE_SYNC:
                PQclear(result)
                guard unanswered == 0 else {
                    unanswered -= 1
                    continue
                }
                try finish(refusal)
                return last
            case PGRES_TUPLES_OK, PGRES_COMMAND_OK:
                last.append(PostgresRows(result))
                if last.count > count { last.removeFirst() }
            case PGRES_PIPELINE_ABORTED: PQclear(result)
            case PGRES_COPY_IN, PGRES_COPY_OUT, PGRES_COPY_BOTH:
                PQclear(result)
                isBroken = true
                throw PostgresConnection.unasked
            default:
                refusal = refusal ?? PostgresConnection.error(of: result)
                PQclear(result)
            }
        }
        // The server says why before it ends a connection.
        _ = broken()
        throw refusal ?? connection.failure
    }

    private func synchronise() throws {
        guard !isBroken else {
            throw PostgresError(state: "08006", message: "the connection was given up")
        }
        guard PQpipelineSync(connection.handle) == 1 else { throw broken() }
        queued = 0
        queuedBytes = 0
        roundTrips += 1
    }

    private func finish(_ refusal: PostgresError?) throws {
        guard let refusal else {
            unproven.removeAll()
            return
        }
        for statement in unproven { prepared[statement] = nil }
        unproven.removeAll()
        throw refusal
    }

    /// Returns the next result; `nil` if the connection has ended.
    private func nextResult(
        since start: Duration, within patience: Duration
    ) throws -> OpaquePointer? {
        let handle = connection.handle
        while true {
            while PQflush(handle) > 0 || PQisBusy(handle) != 0 {
                guard connection.watch() - start < patience, !connection.isStopped() else {
                    isBroken = true
                    throw PostgresError.noAnswer(within: patience)
                }
                connection.wake.wait(
                    socket: PQsocket(handle), toRead: true, toWrite: PQflush(handle) > 0,
                    for: .milliseconds(250))
                // What arrived before the end of a connection is still read.
                if !connection.takeInput() { break }
            }
            if let result = PQgetResult(handle) { return result }
            // Between two statements of a pipeline, PQgetResult returns a null pointer once.
            if PQstatus(handle) == CONNECTION_BAD { return nil }
        }
    }
}
