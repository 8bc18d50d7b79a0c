import FoundationEssentials
import Platform
import PostgresLink
import RelayModel
import Storage
import StorageSQL
import Synchronization

/// The one writer of a store on a server: takes what callers want written, and commits it together.
///
/// It owns a thread, because libpq waits. Each commit locks the shard, sees whether it is owned
/// still, and leaves a mark: so a commit that nobody answered is found out, and never guessed.
final class ServerWriter: @unchecked Sendable {
    private let session: PostgresSession
    private let epoch: Int64
    private let inbox: WriteInbox
    private let horizon: LogHorizon
    private let endedDevices: EndedDevices
    private let settings: StoreSettings
    private let commits = Atomic<UInt64>(0)
    /// When the commit began that goes on.
    private let begun = Mutex<Duration?>(nil)
    /// What follows belongs to the thread.
    private var connection: ServerConnection?
    private var number: Int64 = 0
    /// The last mark that is known to be durable; 0 before the first.
    private var lastMark: Int64 = 0
    /// Whether the server to which the connection is has that mark.
    private var isProven = false
    /// Up to which mark they were deleted.
    ///
    /// Deleting begins there, and not at the first: while somebody keeps a snapshot, what was
    /// deleted lies in the index still, and would be walked over.
    private var clearedTo: Int64 = 0

    /// How often a commit is tried that stood in another's way, or whose connection was lost.
    private static let attempts = 4
    /// How long after its first loss a group makes the connection anew: in a network that swallows
    /// everything each attempt takes seconds for each host, and whoever waits has not many.
    private static let reconnecting = Duration.seconds(5)
    /// How long passes before a lost connection is made anew, times the attempts.
    private static let pause = Duration.milliseconds(100)
    /// How long a commit may take before the store is called not ready.
    private static let patience = Duration.seconds(3)
    /// How long a commit that nobody answered is asked about at the least; then an end that was
    /// asked for comes first.
    private static let inquiry = Duration.seconds(60)
    /// How many marks of commits stay, of which the last is ever asked for.
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

    /// Commits that succeeded since the store was opened.
    var commitCount: UInt64 { commits.load(ordering: .relaxed) }

    /// Starts the thread; it ends, and calls `ended`, when the inbox is at its end and empty.
    func start(ended: @escaping @Sendable () -> Void) {
        startThread(named: "belfry.writer") { [self] in
            // The first change after a takeover need not wait for it; who fails is asked again.
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

    /// That a commit waits for an answer; `nil` while commits are answered.
    var standstill: String? {
        guard let begun = begun.withLock({ $0 }), session.watch() - begun > Self.patience else {
            return nil
        }
        return "the database does not confirm what is written to it; a synchronous standby may be "
            + "away"
    }

    /// Why nothing is written any more, although nobody asked for an end.
    var failure: StorageError? { horizon.closed }

    /// Ends all writing: it is another's to write, or nobody knows what was written.
    func giveUp(_ error: StorageError) {
        inbox.refuse(error)
        horizon.close(error)
    }

    // MARK: Commits

    private func commit(_ batch: [WriteRequest]) {
        do {
            let finished = try finish(batch)
            commits.wrappingAdd(1, ordering: .relaxed)
            endedDevices.note(finished.appended)
            horizon.advance(to: finished.head, appended: finished.appended)
            for answer in finished.answers { answer() }
        } catch let error as WriterEnd {
            giveUp(error.reason)
            for request in batch { request.fail(error.reason) }
        } catch {
            if batch.count > 1, (error as? PostgresError)?.verdict.concernsAll != true {
                // One at a time, what is right still goes in; what is not is answered for itself.
                for request in batch { commit([request]) }
            } else {
                for request in batch { request.fail(error) }
                guard (error as? PostgresError)?.verdict == .lost else { return }
                // Whoever came meanwhile has waited as long, and would wait as long again.
                inbox.turnAway(.unavailable("the database cannot be reached"))
            }
        }
    }

    /// Commits the requests, again if need be.
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
                // What loses each connection anew must not keep the others from writing for ever.
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

    /// Whether a group whose connection was lost for the first time then goes on trying.
    private func isRecent(_ lost: Duration?) -> Bool {
        lost.map { session.watch() - $0 < Self.reconnecting } ?? true
    }

    private struct Finished {
        let head: LogPosition
        let appended: [StoredEntry]
        let answers: [@Sendable () -> Void]
    }

    /// A request failed by itself, and nothing separates it from the others.
    private struct FailureOfOne: Error {}

    /// Nothing may be written any more.
    private struct WriterEnd: Error {
        let reason: StorageError
    }

    /// The server was asked to commit, and did not say what became of it.
    private struct UnknownOutcome: Error {
        let number: Int64
        let finished: Finished

        /// What is told of it once it is known that nothing was committed.
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
            var commit = OpenCommit(Database(connection), head: head, quotas: settings.quotas)
            var answers: [@Sendable () -> Void] = []
            answers.reserveCapacity(batch.count)
            for request in batch {
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

    /// Locks the shard, and returns where its log ends.
    ///
    /// The lock is a statement of its own: what the next one sees is newer than all that earlier
    /// holders committed.
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
        // A server that lacks the end of the log may give the number of this owner to another one.
        guard isOwned == 1 else {
            throw WriterEnd(reason: .closed("another relay owns the store now"))
        }
        guard LogPosition(stored: head) == horizon.head else {
            // The server went back, by a failover to a standby that did not have it all.
            throw WriterEnd(
                reason: .closed("the log ends at \(head), and not at \(horizon.head.rawValue)"))
        }
        try prove(connection)
        return LogPosition(stored: head)
    }

    /// Sees whether the server of a new connection has the last commit, also one of which nothing
    /// stands in the log.
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
            // What concerns the whole transaction is not this request's own failure.
            if let failure = error as? PostgresError, failure.verdict != .refused { throw error }
            guard commit.db.isInsideTransaction else { throw error }
            if isolation == .together { throw FailureOfOne() }
            return { request.fail(error) }
        }
    }

    /// Commits.
    ///
    /// A warning while the server commits tells that a standby was not waited for to the end: then
    /// the commit is durable once a later one is.
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
            // What is queued goes with it: where that fails, the server does not come to commit.
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
        guard connection.pipeline.connection.warnings == warnings else {
            throw UnknownOutcome(number: number, finished: finished)
        }
        if isClearing { clearedTo = clears }
        lastMark = number
        return finished
    }

    // MARK: What nobody answered

    /// Asks the server whether a commit is there, until it says so, and sees to it that it stays.
    ///
    /// That takes as long as the server is away, which a full disk may keep it for hours. What else
    /// waits to be written is not kept waiting: nothing of it has begun.
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
                // Who waits for the commit may be waited for before the inbox is told of the end.
                let isEnding = inbox.isEnding || session.isEndExpected
                guard horizon.closed == nil, !isEnding || waited < Self.inquiry else {
                    throw WriterEnd(
                        reason: .closed(
                            "nobody knows whether the last commit is durable: the database did "
                                + "not answer for \(waited.components.seconds) s"))
                }
                inbox.turnAway(.unavailable("what became of a commit is not known yet"))
                pauseThread(for: pause)
                pause = min(pause * 2, .seconds(2))
            }
        }
    }

    /// Looks for the mark, with a commit of its own: all before it is as durable as that.
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
                connection.pipeline.connection.warnings == warnings
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
