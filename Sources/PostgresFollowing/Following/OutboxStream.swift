import ChangeSources
import PostgresLink
import RelayModel

/// Reads an outbox: posts each row once no earlier one can appear any more, and deletes it when the
/// relay has taken it.
///
/// Numbers are assigned before transactions commit, so a lower number may appear later. A
/// transaction that has taken a number holds the table's lock until it ends. Once all transactions
/// that held the lock when a number was seen have ended, nothing below that number is missing.
/// Transactions are sent in the order of their last numbers. If two transactions change one record,
/// the later one waits for the end of the earlier one, and takes its number then. So each record's
/// changes come in the order of their commits.
///
/// Concurrency: only the follower's thread uses it.
final class OutboxStream: RowStream, @unchecked Sendable {
    private let catalogue: Catalogue
    /// The identity of the outbox.
    private let identity: String
    private let memory: FollowMemory
    private let settings: FollowSettings
    private let watch: @Sendable () -> Duration
    private var reader: OutboxReader
    private var plan = OutboxPlan()
    /// The rows of one request.
    private struct Part {
        var numbers: [Int64] = []
        /// Rows to read again if the follower ends before the rest of their transaction was posted.
        var kept: [Int64] = []
        /// Whether the rows end with their transaction.
        var isWhole = true
    }

    /// The next batch, which is read while the previous one is posted.
    private var next: (part: Part, batch: RowBatch)?
    /// The rows that are being posted, or were posted and are not deleted.
    private var handed = Part()
    /// Rows of earlier parts of the same transaction that the relay has, and that are not deleted
    /// yet.
    private var kept: [Int64] = []
    /// The barrier: up to its number nothing is missing once its writers have ended.
    private var barrier: (number: Int64, writers: Set<String>, since: Duration)?
    /// How many rows are considered for a plan.
    private var window = OutboxStream.smallestWindow
    private var pause = OutboxStream.pauses.first
    private var isAsleep = false
    /// The number of left-out values that the status includes already.
    private var leftOutNoted: UInt64 = 0
    /// The process that held the lock of a sleeping follower at the last check.
    private var obstructor: String?
    private var lastLooked = Duration.zero - OutboxStream.lookPause

    private var connection: PostgresConnection { catalogue.connection }

    /// The usual number of rows in a plan, which keeps 24 bytes of each.
    private static let smallestWindow = 50_000
    /// The waits for open transactions; they add half of the wait to the lag.
    private static let pauses = (
        first: Duration.milliseconds(2), longest: Duration.milliseconds(50)
    )
    /// A notification can be lost only with its connection, so this limit is for unforeseen cases.
    private static let longestSleep = Duration.seconds(30)
    private static let lookPause = Duration.seconds(10)
    /// How long a transaction may hold up others before a warning.
    private static let patience = Duration.seconds(15)

    init(
        _ catalogue: Catalogue, types: TypeCatalogue, identity: String, base: Int64,
        memory: FollowMemory, settings: FollowSettings, watch: @escaping @Sendable () -> Duration
    ) {
        self.catalogue = catalogue
        self.identity = identity
        self.memory = memory
        self.settings = settings
        self.watch = watch
        reader = OutboxReader(
            identity: identity, base: base, database: catalogue.connection.database, types: types)
    }

    func nextBatch() throws -> RowBatch {
        while true {
            if memory.isStopped { throw CancellationError() }
            try look()
            let isIdle = memory.isIdle
            if isIdle {
                try forget()
                if let (part, batch) = next {
                    next = nil
                    handed = part
                    memory.change { $0.outstanding += 1 }
                    return batch
                }
            }
            if next == nil, try read() {
                pause = Self.pauses.first
            } else if isIdle {
                try rest()
            } else if !memory.isIdle, !memory.isStopped {
                // The end of the posting wakes this wait, unless it came before the last query,
                // whose own wait took the signal.
                connection.wait(toRead: false, for: Self.longestSleep)
            }
        }
    }

    /// Does nothing: a batch is handed out only when the previous one was taken.
    func awaitTurn() {}

    // MARK: Reading

    /// Reads the next batch; returns whether there is one.
    private func read() throws -> Bool {
        if plan.isEmpty {
            // The last part of their transaction is being posted, and they are deleted with it.
            // They may be too many to exclude them from the next plan.
            guard kept.isEmpty else { return false }
            try makePlan()
        }
        let (numbers, isWhole) = plan.take()
        guard !numbers.isEmpty else { return false }
        let unread = reader.authorsUnread
        let (batch, movable) = try reader.batch(of: numbers, catalogue)
        next = (Part(numbers: numbers, kept: isWhole ? [] : movable, isWhole: isWhole), batch)
        let new = reader.authorsUnread - unread
        if new > 0 { memory.change { $0.status.authorsUnread += new } }
        return true
    }

    /// Plans the rows to post, once it is certain that none is missing before them.
    private func makePlan() throws {
        guard try isComplete(), let barrier else { return }
        // The rows that are being posted are not deleted yet, so they are excluded.
        let rows = try connection.query(
            """
            SELECT number, last,
                coalesce(octet_length(before), 0) + coalesce(octet_length(after), 0)
            FROM belfry.outbox JOIN (
                SELECT transaction, (SELECT max(number) FROM belfry.outbox AS own
                    WHERE own.transaction = seen.transaction) AS last
                FROM (SELECT DISTINCT transaction FROM belfry.outbox
                    WHERE number <= $1::bigint) AS seen) AS ended USING (transaction)
            WHERE number <= $1::bigint AND last <= $1::bigint AND number <> ALL ($2::bigint[])
            ORDER BY last, number
            """, [String(barrier.number), handed.numbers.arrayText], within: nil)
        self.barrier = nil
        plan = OutboxPlan(
            rows.compactMap { row in
                guard let number = row.text(0).flatMap({ Int64($0) }),
                    let last = row.text(1).flatMap({ Int64($0) })
                else { return nil }
                return OutboxPlan.Entry(
                    number: number, last: last, bytes: row.text(2).flatMap { Int($0) } ?? 0)
            })
        // A transaction that is larger than the window can be planned only with a larger one.
        window = plan.isEmpty ? window * 2 : Self.smallestWindow
    }

    /// Returns whether nothing can appear any more below the barrier's number.
    private func isComplete() throws -> Bool {
        if barrier == nil {
            let found = try connection.query(
                """
                SELECT max(number) FROM (SELECT number FROM belfry.outbox
                    WHERE number <> ALL ($1::bigint[]) ORDER BY number LIMIT \(window)) AS seen
                """, [handed.numbers.arrayText])
            guard let number = found.first?.first?.flatMap({ Int64($0) }) else { return false }
            // Queried after the number was seen: a transaction that took a lower one is among these
            // writers, or its row is visible from now on.
            barrier = (number, try catalogue.outboxWriters(), watch())
        }
        guard let barrier else { return false }
        if barrier.writers.isEmpty { return true }
        let left = barrier.writers.intersection(try catalogue.outboxWriters())
        self.barrier?.writers = left
        return left.isEmpty
    }

    /// Deletes the posted rows from the outbox.
    ///
    /// If a transaction is posted in parts, rows of tables with a `DEFERRABLE` key stay until the
    /// last part, because one of them may have taken the name of another row. A follower that
    /// starts again in between reads them again, so it knows which names left by later rows are
    /// taken. The relay recognises the repeated rows by their positions.
    private func forget() throws {
        guard !handed.numbers.isEmpty else { return }
        if handed.isWhole {
            try delete(kept + handed.numbers)
            kept = []
        } else {
            let staying = Set(handed.kept)
            try delete(handed.numbers.filter { !staying.contains($0) })
            kept += handed.kept
        }
        handed = Part()
    }

    private func delete(_ numbers: [Int64]) throws {
        guard !numbers.isEmpty else { return }
        try connection.query(
            "DELETE FROM belfry.outbox WHERE number = ANY ($1::bigint[])", [numbers.arrayText],
            within: nil)
    }

    // MARK: Waiting

    /// Waits until there may be something: sleeps if no transaction writes, and otherwise checks
    /// again soon.
    private func rest() throws {
        if barrier == nil, try sleeps() {
            // A notification that arrived with an answer is not sent again.
            if !connection.takeNotifications(), !memory.isStopped {
                connection.wait(toRead: true, for: Self.longestSleep)
                try connection.receive()
                connection.takeNotifications()
            }
            try wakeUp()
            return
        }
        connection.wait(toRead: false, for: pause)
        pause = min(pause * 2, Self.pauses.longest)
    }

    /// Requests a notification from later writers; returns `false` if there are rows or open
    /// writers already.
    private func sleeps() throws -> Bool {
        let said = try connection.query(
            "SELECT pg_try_advisory_lock(\(OutboxSQL.lockClass), \(OutboxSQL.sleepLock))")
        guard said.first?.first == "t" else { return false }
        isAsleep = true
        // A transaction that wrote before the lock was taken either has ended, so that its rows are
        // visible now, or is among the writers.
        let left = try connection.query("SELECT EXISTS (SELECT FROM belfry.outbox)")
        if left.first?.first == "f", try catalogue.outboxWriters().isEmpty { return true }
        try wakeUp()
        return false
    }

    private func wakeUp() throws {
        guard isAsleep else { return }
        isAsleep = false
        try connection.query(
            "SELECT pg_advisory_unlock(\(OutboxSQL.lockClass), \(OutboxSQL.sleepLock))")
    }

    /// Checks the size of the outbox, and for problems.
    private func look() throws {
        guard watch() - lastLooked >= Self.lookPause else { return }
        lastLooked = watch()
        let size = try connection.query("SELECT pg_total_relation_size('belfry.outbox')")
            .first?.first.flatMap { $0 }.flatMap { UInt64($0) }
        let leftOut = reader.valuesLeftOut - leftOutNoted
        leftOutNoted = reader.valuesLeftOut
        memory.note(try catalogue.members(ofOutbox: identity))
        let warning = try heldUp() ?? obstructed() ?? large(size ?? 0) ?? withoutTrigger()
        memory.change { memory in
            memory.status.retainedBytes = size
            memory.status.valuesLeftOut += leftOut
            memory.status.warning = warning
        }
    }

    /// The warning about a transaction that holds up others.
    private func heldUp() throws -> String? {
        guard let barrier, watch() - barrier.since > Self.patience else { return nil }
        let holder = try catalogue.outboxWriter(among: barrier.writers)
        return "A transaction that has changed followed tables (\(holder)) has been open for more "
            + "than \((watch() - barrier.since).components.seconds) s: what was committed after it "
            + "began waits for its end."
    }

    /// The warning about another session that holds the lock of a sleeping follower.
    ///
    /// Meanwhile writers notify needlessly, and this follower keeps checking.
    private func obstructed() throws -> String? {
        let rows = try connection.query(
            """
            SELECT pid FROM pg_locks WHERE locktype = 'advisory'
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
            AND classid = \(OutboxSQL.lockClass) AND objid = \(OutboxSQL.sleepLock)
            AND objsubid = 2 AND granted AND mode = 'ExclusiveLock'
            AND pid IS DISTINCT FROM pg_backend_pid() LIMIT 1
            """)
        guard let process = rows.first?.text(0) else {
            obstructor = nil
            return nil
        }
        defer { obstructor = process }
        guard obstructor == process else { return nil }
        return "Another client (\(try catalogue.holder(process))) holds the advisory lock "
            + "\(OutboxSQL.lockClass), \(OutboxSQL.sleepLock), which the follower needs for "
            + "sleeping: changes are still followed, but at a higher cost; make that client "
            + "release it."
    }

    /// The warning about configured tables without a trigger, because no error would show that
    /// their changes never come.
    private func withoutTrigger() throws -> String? {
        let missing = try catalogue.tablesWithoutTrigger(settings.tables)
        guard !missing.isEmpty else { return nil }
        return "Tables that were named do not have the outbox's triggers "
            + "(\(missing.joined(separator: ", "))), so their changes are not reported: use "
            + "--make, run what --print-sql shows, or name others."
    }

    private func large(_ size: UInt64) -> String? {
        guard size > settings.retainedWarning else { return nil }
        return "The outbox takes \(size / 1_048_576) MB: find out why the relay is behind, or end "
            + "transactions that are open for long."
    }
}

extension [Int64] {
    /// The numbers in PostgreSQL's notation for an array.
    var arrayText: String { "{\(map(String.init).joined(separator: ","))}" }
}
