import ChangeSources
import PostgresLink
import RelayModel

/// Reads an outbox: posts each row once it is certain that none can appear before it, and deletes
/// it when the relay has it.
///
/// Numbers are taken before transactions commit, so that a lower one may appear later. Whoever
/// has taken one holds the table's lock until its transaction has ended: once all who held it
/// when a number was seen have let go, nothing below that number is missing. Transactions are
/// told in the order of their last numbers. Of two that change one record, the later one waits
/// for the end of the earlier one and takes its number then: so each record's changes come as
/// they were committed.
///
/// It is used by the follower's thread alone, and that protects it.
final class OutboxStream: RowStream, @unchecked Sendable {
    private let catalogue: Catalogue
    /// What the outbox says that it is.
    private let identity: String
    private let memory: FollowMemory
    private let settings: FollowSettings
    private let watch: @Sendable () -> Duration
    private var reader: OutboxReader
    private var plan = OutboxPlan()
    /// Rows that are posted together.
    private struct Part {
        var numbers: [Int64] = []
        /// Those that must be read once more if the follower ends before their transaction does.
        var kept: [Int64] = []
        /// Whether the rows end with their transaction.
        var isWhole = true
    }

    /// The next batch, read while the one before is posted.
    private var next: (part: Part, batch: RowBatch)?
    /// What is being posted, or was and is not deleted.
    private var handed = Part()
    /// Rows of earlier parts of the same transaction that the relay has, and that are not deleted.
    private var kept: [Int64] = []
    /// Up to which number all is there once these have ended.
    private var barrier: (number: Int64, writers: Set<String>, since: Duration)?
    /// How many rows are looked at for a plan.
    private var window = OutboxStream.smallestWindow
    private var pause = OutboxStream.pauses.first
    private var isAsleep = false
    /// How many of the values that were left out the status has.
    private var leftOutNoted: UInt64 = 0
    /// The process that held the lock of a sleeping follower when it was last looked at.
    private var obstructor: String?
    private var lastLooked = Duration.zero - OutboxStream.lookPause

    private var connection: PostgresConnection { catalogue.connection }

    /// As many rows are planned at once; a plan keeps 24 bytes of each.
    private static let smallestWindow = 50_000
    /// The waits for transactions that have not ended: lag is theirs and half of the wait.
    private static let pauses = (
        first: Duration.milliseconds(2), longest: Duration.milliseconds(50)
    )
    /// A notification can be lost with its connection only; this is for what nobody thought of.
    private static let longestSleep = Duration.seconds(30)
    private static let lookPause = Duration.seconds(10)
    /// How long a transaction may hold up others before it is said.
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
                // The end of the post wakes, unless it was before this question: the wait for an
                // answer takes its signal then.
                connection.wait(toRead: false, for: Self.longestSleep)
            }
        }
    }

    /// A batch is handed out only when the one before is taken.
    func awaitTurn() {}

    // MARK: Reading

    /// Reads the next batch; returns whether there is one.
    private func read() throws -> Bool {
        if plan.isEmpty {
            // They may be many, and go with the part that is being posted.
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

    /// Finds out what is to be posted, if it is certain.
    private func makePlan() throws {
        guard try isComplete(), let barrier else { return }
        // What is handed over is not deleted yet.
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
        // A transaction that is longer than the window is seen with a larger one only.
        window = plan.isEmpty ? window * 2 : Self.smallestWindow
    }

    /// Whether nothing can appear any more below the number of the barrier.
    private func isComplete() throws -> Bool {
        if barrier == nil {
            let found = try connection.query(
                """
                SELECT max(number) FROM (SELECT number FROM belfry.outbox
                    WHERE number <> ALL ($1::bigint[]) ORDER BY number LIMIT \(window)) AS seen
                """, [handed.numbers.arrayText])
            guard let number = found.first?.first?.flatMap({ Int64($0) }) else { return false }
            // Looked at after the number was seen: whoever took a lower one is among them, or is
            // seen from here on.
            barrier = (number, try catalogue.outboxWriters(), watch())
        }
        guard let barrier else { return false }
        if barrier.writers.isEmpty { return true }
        let left = barrier.writers.intersection(try catalogue.outboxWriters())
        self.barrier?.writers = left
        return left.isEmpty
    }

    /// Deletes what the relay has.
    ///
    /// Of a transaction that goes in parts, rows that may have come to the name of another one stay
    /// until its end. A follower that begins anew in between reads them again: it knows then whose
    /// names the rest of the rows have left, and the relay knows them by their positions.
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

    /// Waits until there may be something: sleeps where nobody writes, and otherwise looks again
    /// soon.
    private func rest() throws {
        if barrier == nil, try sleeps() {
            // What has come with an answer does not come again.
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

    /// Says that whoever writes from here on must notify, unless somebody writes already.
    private func sleeps() throws -> Bool {
        let said = try connection.query(
            "SELECT pg_try_advisory_lock(\(OutboxSQL.lockClass), \(OutboxSQL.sleepLock))")
        guard said.first?.first == "t" else { return false }
        isAsleep = true
        // Who wrote before it was said has ended, and is seen now.
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

    /// Looks at how large the outbox has become.
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

    /// What is said of a transaction that holds up others.
    private func heldUp() throws -> String? {
        guard let barrier, watch() - barrier.since > Self.patience else { return nil }
        let holder = try catalogue.outboxWriter(among: barrier.writers)
        return "A transaction that has changed followed tables (\(holder)) is "
            + "open for more than \((watch() - barrier.since).components.seconds) s: what was "
            + "committed after it began waits for its end."
    }

    /// What is said of somebody else who holds the lock of a follower that sleeps: meanwhile
    /// writers notify for nothing, and this one looks again and again.
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
        return "Somebody else (\(try catalogue.holder(process))) holds the advisory lock "
            + "\(OutboxSQL.lockClass), \(OutboxSQL.sleepLock), by which the follower sleeps: "
            + "changes are followed all the same, at a higher cost; have it let go."
    }

    /// What is said of tables that were named and have no trigger: nobody would notice that their
    /// changes never come.
    private func withoutTrigger() throws -> String? {
        let missing = try catalogue.tablesWithoutTrigger(settings.tables)
        guard !missing.isEmpty else { return nil }
        return "Tables that were named have not the outbox's triggers "
            + "(\(missing.joined(separator: ", "))), and nothing is told of them: say --make, run "
            + "what --print-sql shows, or name others."
    }

    private func large(_ size: UInt64) -> String? {
        guard size > settings.retainedWarning else { return nil }
        return "The outbox takes \(size / 1_048_576) MB: look why the relay is behind, or for "
            + "transactions that are open for long."
    }
}

extension [Int64] {
    /// As PostgreSQL writes an array of numbers.
    var arrayText: String { "{\(map(String.init).joined(separator: ","))}" }
}
