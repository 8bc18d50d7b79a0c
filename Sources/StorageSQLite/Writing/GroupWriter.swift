import FoundationEssentials
import Platform
import RelayModel
import Storage
import StorageSQL
import Synchronization

/// The one writer, which takes the requests of many callers and commits them together.
///
/// It has a thread of its own, because SQLite and the disk block. Callers are answered after the
/// commit is durable. A request that fails is rolled back alone. After a failure that leaves the
/// state of the disk unknown, nothing more is written, though the last commit can still be read. A
/// new process must then read the file again.
final class GroupWriter: Sendable {
    private let pool: EmbeddedPool
    private let inbox: WriteInbox
    private let horizon: LogHorizon
    private let endedDevices: EndedDevices
    private let settings: StoreSettings
    private let ledger: CommitLedger
    private let spool: LogSpool?
    private let commits = Atomic<UInt64>(0)

    init(
        pool: EmbeddedPool, inbox: WriteInbox, horizon: LogHorizon,
        ledger: CommitLedger, endedDevices: EndedDevices, settings: StoreSettings,
        spool: LogSpool?
    ) {
        self.spool = spool
        self.ledger = ledger
        self.endedDevices = endedDevices
        self.settings = settings
        self.pool = pool
        self.inbox = inbox
        self.horizon = horizon
    }

    /// The number of successful commits since the store was opened.
    var commitCount: UInt64 { commits.load(ordering: .relaxed) }

    /// Starts the thread; it calls `ended` and ends when the inbox was ended and is empty.
    func start(ended: @escaping @Sendable () -> Void) {
        startThread(named: "belfry.writer") { [self] in
            run()
            ended()
        }
    }

    private func run() {
        var lastCount = 1
        var smallFirst = false
        var trimmer = LogTrimmer(pool, settings: settings, spool: spool)
        while let batch = inbox.nextBatch(after: lastCount, smallFirst: smallFirst) {
            lastCount = batch.count(where: \.answersCaller)
            smallFirst = false
            commit(batch, trimmer)
            guard horizon.closed == nil else { continue }
            // Small requests that waited for a large commit do not also wait for its checkpoint.
            if batch.first?.isLarge == true, inbox.hasSmallBesideOthers { continue }
            do {
                smallFirst = try trimmer.afterCommit(isContended: inbox.isContended)
            } catch let error as StorageError {
                giveUp(error)
            } catch {
                let reason = StorageError.translate(error, path: pool.path)
                giveUp(.closed("a checkpoint failed: \(reason)"))
            }
        }
    }

    /// Ends all writing; a new process must read the file again.
    func giveUp(_ error: StorageError) {
        inbox.refuse(error)
        horizon.close(error)
    }

    private func commit(_ batch: [WriteRequest], _ trimmer: borrowing LogTrimmer) {
        let result = pool.write { db in
            Result {
                do {
                    return try transact(batch, .together, db)
                } catch is FailureOfOne {
                    return try transact(batch, .each, db)
                }
            }
        }
        switch result {
        case .success(let finished):
            commits.wrappingAdd(1, ordering: .relaxed)
            if let failure = note(finished, frames: trimmer.frames) {
                giveUp(failure)
                for request in batch { request.fail(failure) }
                return
            }
            inbox.takeBack(batch, after: finished.answers.count)
            endedDevices.note(finished.appended)
            horizon.advance(to: finished.head, appended: finished.appended)
            for answer in finished.answers { answer() }
        case .failure(let error):
            answer(batch, afterFailure: error, trimmer)
        }
    }

    /// Records a durable commit in the spool and the witness; returns why that failed.
    private func note(_ finished: Finished, frames: Int) -> StorageError? {
        guard let count = finished.count else { return nil }
        spool?.note(frames: frames, commits: count, head: finished.head)
        do {
            try ledger.note(count, head: finished.head)
            return nil
        } catch {
            return error as? StorageError ?? .closed("\(error)")
        }
    }

    /// Answers a batch whose commit failed.
    ///
    /// Unless the failure is fatal, each request is tried alone: some may still fit, and the others
    /// get an error of their own.
    private func answer(
        _ batch: [WriteRequest], afterFailure error: any Error, _ trimmer: borrowing LogTrimmer
    ) {
        let translated = StorageError.translate(error, path: pool.path)
        guard let failure = error as? EmbeddedError, StorageError.verdict(on: failure) == .fatal
        else {
            if batch.count > 1 {
                for request in batch { commit([request], trimmer) }
            } else {
                for request in batch { request.fail(translated) }
            }
            return
        }
        let closed = StorageError.closed("a write failed: \(translated)")
        giveUp(closed)
        for request in batch { request.fail(closed) }
    }

    private struct Finished {
        let head: LogPosition
        /// The number of commits so far; `nil` if this one changed nothing.
        let count: Int64?
        let appended: [StoredEntry]
        /// The answers of the requests that ran, which are the first of the batch.
        let answers: [@Sendable () -> Void]
    }

    /// One request of a batch failed, and no savepoint isolates it from the others.
    private struct FailureOfOne: Error {}

    private func transact(
        _ batch: [WriteRequest], _ isolation: WriteIsolation, _ db: EmbeddedConnection
    ) throws -> Finished {
        if let closed = horizon.closed { throw closed }
        let start = horizon.head
        var commit = OpenCommit(
            db.database, head: start, quotas: settings.quotas, most: inbox.mostBytes)
        var answers: [@Sendable () -> Void] = []
        answers.reserveCapacity(batch.count)
        let changes = db.totalChangesCount
        var count: Int64?
        try db.begin(.immediate)
        do {
            for request in batch where !commit.isFull {
                answers.append(try perform(request, isolation, in: &commit))
            }
            if commit.head != start || db.totalChangesCount != changes {
                count = ledger.next
                try db.database.cachedStatement(
                    sql: "UPDATE shardHead SET position = ?, commits = ? WHERE shard = 0"
                ).execute(arguments: [commit.head.stored, count])
            }
            CrashPoint.commit.reach()
            try db.commit()
            CrashPoint.committed.reach()
        } catch {
            try? db.rollBack()
            throw error
        }
        return Finished(
            head: commit.head, count: count, appended: commit.appended, answers: answers)
    }

    private func perform(
        _ request: WriteRequest, _ isolation: WriteIsolation, in commit: inout OpenCommit
    ) throws -> @Sendable () -> Void {
        do {
            return try commit.run(request, isolation)
        } catch {
            // An error of the whole transaction is not this request's own.
            if let failure = error as? EmbeddedError, StorageError.verdict(on: failure) != .refused
            {
                throw error
            }
            guard commit.db.isInsideTransaction else { throw error }
            if isolation == .together { throw FailureOfOne() }
            return { request.fail(error) }
        }
    }
}
