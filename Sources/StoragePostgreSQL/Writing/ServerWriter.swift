import FoundationEssentials
import Platform
import PostgresLink
import RelayModel
import Storage
import StorageSQL
import Synchronization

/// The one writer of a store on a server, which commits the requests of many callers together.
///
/// It has a thread of its own, because libpq blocks. Each commit locks the shard, checks the
/// ownership, and inserts a numbered mark, which shows whether an unanswered commit took place.
///
/// Concurrency: other threads read only atomics and mutexes; the rest belongs to the thread.
final class ServerWriter: @unchecked Sendable {
    private let session: PostgresSession
    private let epoch: Int64
    private let inbox: WriteInbox
    private let horizon: LogHorizon
    private let endedDevices: EndedDevices
    private let settings: StoreSettings
    private let commits = Atomic<UInt64>(0)
    /// The time at which the current commit began.
    private let begun = Mutex<Duration?>(nil)
    /// This and the following properties belong to the thread.
    private var connection: ServerConnection?
    private var number: Int64 = 0
    /// The last mark that is known to be durable; 0 before the first.
    private var lastMark: Int64 = 0
    /// Whether the server of the current connection is known to have that mark.
    private var isProven = false
    /// The last mark that was deleted; the next deletion begins there.
    ///
    /// While a session holds a snapshot, deleted entries stay in the index and would be scanned.
    private var clearedTo: Int64 = 0

    /// How often a commit is tried after a conflict or a lost connection.
    private static let attempts = 4
    /// How long after its first lost connection a batch keeps reconnecting.
    ///
    /// In a network that drops all packets, each attempt takes seconds for each host, and callers
    /// do not wait long.
    private static let reconnecting = Duration.seconds(5)
    /// The pause before a reconnection, multiplied by the number of the attempt.
    private static let pause = Duration.milliseconds(100)
    /// How long a commit may take before the store is reported as not ready.
    private static let patience = Duration.seconds(3)
    /// How long an orderly end waits for the outcome of a commit that was not answered.
    private static let inquiry = Duration.seconds(60)
    /// The number of marks that are kept; only the last is ever queried.
    private static let marksKept: Int64 = 256

    init(
        _ session: PostgresSession, epoch: Int64, inbox: WriteInbox, opened: OpenedStore,
        settings: StoreSettings
    ) {
        self.session = session
        self.epoch = epoch
        self.inbox = inbox
        horizon = opened.horizon
        endedDevices = opened.endedDevices
        self.settings = settings
    }

    /// The number of successful commits since the store was opened.
    var commitCount: UInt64 { commits.load(ordering: .relaxed) }

    /// Starts the thread; it calls `ended` and ends when the inbox was ended and is empty.
    func start(ended: @escaping @Sendable () -> Void) {
        startThread(named: "belfry.writer") { [self] in
            // The first change after a takeover need not connect then; a failure is retried.
            _ = try? connected()
            var lastCount = 1
            while let batch = inbox.nextBatch(after: lastCount) {
                lastCount = batch.count(where: \.answersCaller)
                begun.withLock { $0 = session.watch() }
                commit(batch)
                begun.withLock { $0 = nil }
            }
            connection = nil
            ended()
        }
    }

    /// Why the store is not ready, once the current commit takes too long; otherwise `nil`.
    var standstill: String? {
        guard let begun = begun.withLock({ $0 }), session.watch() - begun > Self.patience else {
            return nil
        }
        return "the database does not confirm commits; a synchronous standby may be away"
    }

    /// Why writing has ended without a request to end; `nil` while the store is written to.
    var failure: StorageError? { horizon.closed }

    /// Ends all writing, because another process owns the store, or it is unknown what was written.
    func giveUp(_ error: StorageError) {
        inbox.refuse(error)
        horizon.close(error)
    }

    // MARK: Commits

    private func commit(_ batch: [WriteRequest]) {
        do {
            let finished = try finish(batch)
            commits.wrappingAdd(1, ordering: .relaxed)
            inbox.takeBack(batch, after: finished.answers.count)
            endedDevices.note(finished.appended)
            horizon.advance(to: finished.head, appended: finished.appended)
            for answer in finished.answers { answer() }
        } catch let error as WriterEnd {
            giveUp(error.reason)
            for request in batch { request.fail(error.reason) }
        } catch {
            if batch.count > 1, (error as? PostgresError)?.verdict.concernsAll != true {
                // Each is tried alone: valid ones are committed, others get their own error.
                for request in batch { commit([request]) }
            } else {
                for request in batch { request.fail(error) }
                guard (error as? PostgresError)?.verdict == .lost else { return }
                // Requests that came meanwhile have waited as long, and would wait as long again.
                inbox.turnAway(.unavailable("the database cannot be reached"))
            }
        }
    }

    /// Commits the requests, with retries.
    private func finish(_ batch: [WriteRequest]) throws -> Finished {
        var isolation = WriteIsolation.together
        var attempt = 1
        var lost: Duration?
        while true {
            do {
                return try transact(batch, isolation)
            } catch is FailureOfOne {
                isolation = .each
            } catch let unknown as UnknownOutcome {
                if try wasCommitted(unknown.number) { return unknown.finished }
                // A batch that loses every connection must not block the others for ever.
                guard attempt < Self.attempts else { throw unknown.loss }
                attempt += 1
            } catch let error as PostgresError {
                switch error.verdict {
                case .damaged:
                    throw WriterEnd(reason: .closed("damage was found: \(error.message)"))
                case .again where attempt < Self.attempts:
                    attempt += 1
                case .outdated where attempt < Self.attempts:
                    attempt += 1
                    connection = nil
                case .lost where attempt < Self.attempts && isRecent(lost):
                    lost = lost ?? session.watch()
                    attempt += 1
                    pauseThread(for: Self.pause * attempt)
                default: throw error
                }
            }
        }
    }

    /// Returns whether a batch whose connection was first lost at that time may keep trying.
    private func isRecent(_ lost: Duration?) -> Bool {
        lost.map { session.watch() - $0 < Self.reconnecting } ?? true
    }

    private struct Finished {
        let head: LogPosition
        let appended: [StoredEntry]
        let answers: [@Sendable () -> Void]
    }

    /// One request of a batch failed, and no savepoint isolates it from the others.
    private struct FailureOfOne: Error {}

    /// Nothing may be written any more.
    private struct WriterEnd: Error {
        let reason: StorageError
    }

    /// The server was asked to commit, and did not report the outcome.
    private struct UnknownOutcome: Error {
        let number: Int64
        let finished: Finished

        /// The error of the requests once it is known that nothing was committed.
        var loss: PostgresError {
            PostgresError(state: "08006", message: "the connection was lost in a commit")
        }
    }

    private func transact(
        _ batch: [WriteRequest], _ isolation: WriteIsolation
    ) throws -> Finished {
        if let closed = horizon.closed { throw WriterEnd(reason: closed) }
        let connection = try connected()
        do {
            try connection.begin()
            let head = try PostgresError.concerningAll { try lock(connection) }
            var commit = OpenCommit(
                Database(connection), head: head, quotas: settings.quotas, most: inbox.mostBytes)
            var answers: [@Sendable () -> Void] = []
            for (index, request) in batch.enumerated() where !commit.isFull {
                if isolation == .together { try commit.lookAhead(batch[index...]) }
                answers.append(try perform(request, isolation, in: &commit))
            }
            return try end(
                Finished(head: commit.head, appended: commit.appended, answers: answers),
                isolation, connection)
        } catch {
            connection.rollBack()
            if connection.isBroken { self.connection = nil }
            throw error
        }
    }

    /// Locks the shard, and returns the end of its log.
    ///
    /// The lock is a statement of its own, so the snapshot of the next one includes everything that
    /// earlier holders committed.
    private func lock(_ connection: ServerConnection) throws -> LogPosition {
        try connection.pipeline.queue("SELECT shard FROM shard WHERE shard = 0 FOR NO KEY UPDATE")
        let rows = try connection.pipeline.fetch(
            """
            SELECT epoch = $1 AND owner IS NOT DISTINCT FROM $2, position
            FROM ownership, shardHead WHERE ownership.shard = 0
            """, [.integer(epoch), .text(session.name)])
        guard rows.count == 1, case .integer(let isOwned) = rows[0, 0],
            case .integer(let head) = rows[0, 1]
        else {
            throw WriterEnd(
                reason: .damaged(path: "ownership", reason: "the shard has no owner's row"))
        }
        // The epoch alone does not identify the owner: a server that lacks the end of the log may
        // give the same epoch to another.
        guard isOwned == 1 else {
            throw WriterEnd(reason: .closed("another relay owns the store now"))
        }
        guard LogPosition(stored: head) == horizon.head else {
            // The server lost the end of the log, by a failover to a standby that did not have it.
            throw WriterEnd(
                reason: .closed("the log ends at \(head) instead of \(horizon.head.rawValue)"))
        }
        try prove(connection)
        return LogPosition(stored: head)
    }

    /// Checks that the server of a new connection has the last commit.
    ///
    /// The check covers commits that added nothing to the log.
    private func prove(_ connection: ServerConnection) throws {
        guard !isProven else { return }
        if lastMark > 0 {
            let rows = try connection.pipeline.fetch(
                "SELECT number FROM commitMark WHERE epoch = $1 AND number = $2",
                [.integer(epoch), .integer(lastMark)])
            guard rows.count == 1 else {
                throw WriterEnd(
                    reason: .closed(
                        "the database lacks the last commit, which was durable: a standby was "
                            + "promoted that did not have it"))
            }
        }
        isProven = true
    }

    private func perform(
        _ request: WriteRequest, _ isolation: WriteIsolation, in commit: inout OpenCommit
    ) throws -> @Sendable () -> Void {
        do {
            return try commit.run(request, isolation)
        } catch {
            // An error of the whole transaction is not this request's own.
            if let failure = error as? PostgresError, failure.verdict != .refused { throw error }
            guard commit.db.isInsideTransaction else { throw error }
            if isolation == .together { throw FailureOfOne() }
            return { request.fail(error) }
        }
    }

    /// Inserts the mark and commits.
    ///
    /// A warning during the commit means that the server stopped waiting for a synchronous standby.
    /// The commit is durable then once a later one is.
    private func end(
        _ finished: Finished, _ isolation: WriteIsolation, _ connection: ServerConnection
    ) throws -> Finished {
        number += 1
        try connection.pipeline.queue(
            "INSERT INTO commitMark (epoch, number) VALUES ($1, $2)",
            [.integer(epoch), .integer(number)])
        let clears = max(clearedTo, number - Self.marksKept)
        let isClearing = number.isMultiple(of: Self.marksKept)
        if isClearing {
            try connection.pipeline.queue(
                "DELETE FROM commitMark WHERE epoch = $1 AND number > $2 AND number <= $3",
                [.integer(epoch), .integer(clearedTo), .integer(clears)])
        }
        CrashPoint.commit.reach()
        let warnings = connection.pipeline.connection.warnings
        let said: String
        do {
            // Queued statements are sent with it; if one fails, the server does not commit.
            said = try connection.commit()
        } catch let error as PostgresError {
            guard !connection.isBroken, error.verdict != .lost else {
                throw UnknownOutcome(number: number, finished: finished)
            }
            if error.verdict == .refused, isolation == .together { throw FailureOfOne() }
            throw error
        }
        CrashPoint.committed.reach()
        guard said == "COMMIT" else {
            throw PostgresError(state: "40000", message: "the server undid a transaction")
        }
        guard connection.pipeline.connection.warnings == warnings,
            session.hasStandby(connection.pipeline)
        else { throw UnknownOutcome(number: number, finished: finished) }
        if isClearing { clearedTo = clears }
        lastMark = number
        return finished
    }

    // MARK: What nobody answered

    /// Asks the server until it says whether a commit took place, and makes that durable.
    ///
    /// This takes as long as the server is unavailable, which a full disk may extend to hours.
    /// Other requests are refused meanwhile, because none of them has begun.
    private func wasCommitted(_ number: Int64) throws -> Bool {
        connection = nil
        let start = session.watch()
        var pause = Duration.milliseconds(100)
        while true {
            do {
                return try inquire(number)
            } catch let end as WriterEnd {
                throw end
            } catch {
                connection = nil
                let waited = session.watch() - start
                // A process may wait for this commit before it ends the inbox.
                let isEnding = inbox.isEnding || session.isEndExpected
                guard horizon.closed == nil, !isEnding || waited < Self.inquiry else {
                    throw WriterEnd(
                        reason: .closed(
                            "it is unknown whether the last commit is durable: the database did "
                                + "not answer for \(waited.components.seconds) s"))
                }
                inbox.turnAway(.unavailable("it is not known yet whether a commit is durable"))
                pauseThread(for: pause)
                pause = min(pause * 2, .seconds(2))
            }
        }
    }

    /// Looks for the mark, and commits another one, which makes everything before it durable too.
    private func inquire(_ number: Int64) throws -> Bool {
        let connection = try connected()
        do {
            try connection.begin()
            try connection.pipeline.queue(
                "SELECT shard FROM shard WHERE shard = 0 FOR NO KEY UPDATE")
            let rows = try connection.pipeline.fetch(
                """
                SELECT epoch = $1 AND owner IS NOT DISTINCT FROM $3,
                    EXISTS (SELECT 1 FROM commitMark AS mark
                        WHERE mark.epoch = $1 AND mark.number = $2)
                FROM ownership WHERE shard = 0
                """, [.integer(epoch), .integer(number), .text(session.name)])
            guard rows.count == 1, rows[0, 0] == .integer(1) else {
                throw WriterEnd(reason: .closed("another relay owns the store now"))
            }
            try prove(connection)
            self.number += 1
            try connection.pipeline.queue(
                "INSERT INTO commitMark (epoch, number) VALUES ($1, $2)",
                [.integer(epoch), .integer(self.number)])
            try connection.settle()
            let warnings = connection.pipeline.connection.warnings
            guard try connection.commit() == "COMMIT",
                connection.pipeline.connection.warnings == warnings,
                session.hasStandby(connection.pipeline)
            else { throw PostgresError(state: "", message: "a standby was not waited for") }
            lastMark = self.number
            return rows[0, 1] == .integer(1)
        } catch {
            connection.rollBack()
            throw error
        }
    }

    private func connected() throws -> ServerConnection {
        if let connection, session.isCurrent(connection.pipeline.connection) { return connection }
        isProven = false
        let connection = try session.connectAgain(limits: PostgresSession.writingPlans)
        self.connection = connection
        return connection
    }
}
