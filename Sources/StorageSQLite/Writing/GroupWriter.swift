import FoundationEssentials
import Platform
import RelayModel
import Storage
import StorageSQL
import Synchronization

/// The one writer: takes what callers want written, and commits it together.
///
/// It owns a thread, because SQLite and the disk block. Callers are answered after the commit is
/// durable. Whatever one of them does wrong is undone by itself. After a failure that leaves it
/// unknown what is on the disk, nothing is written any more, though the last commit can still be
/// read: a new process must read the file again.
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

    /// Commits that succeeded since the store was opened.
    var commitCount: UInt64 { commits.load(ordering: .relaxed) }

    /// Starts the thread; it ends, and calls `ended`, when the inbox is at its end and empty.
    func start(ended: @escaping @Sendable () -> Void) {
        startThread(named: "belfry.writer") { [self] in
            run()
            ended()
        }
    }

    private func run() {
        var lastCount = 1
        var trimmer = LogTrimmer(pool, settings: settings, spool: spool)
        while let batch = inbox.nextBatch(after: lastCount) {
            lastCount = batch.count(where: \.answersCaller)
            commit(batch, trimmer)
            guard horizon.closed == nil else { continue }
            do {
                try trimmer.afterCommit(isContended: inbox.isContended)
            } catch {
                let reason = StorageError.translate(error, path: pool.path)
                giveUp(.closed("a checkpoint failed: \(reason)"))
            }
        }
    }

    /// Ends all writing: a new process must read the file again.
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
            endedDevices.note(finished.appended)
            horizon.advance(to: finished.head, appended: finished.appended)
            for answer in finished.answers { answer() }
        case .failure(let error):
            answer(batch, afterFailure: error, trimmer)
        }
    }

    /// Notes beside the file what is durable in it; returns why that failed.
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

    /// One at a time, what fits still goes in; what does not is answered for itself.
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
        /// The commits so far, if this one changed anything.
        let count: Int64?
        let appended: [StoredEntry]
        let answers: [@Sendable () -> Void]
    }

    /// A request failed by itself, and nothing separates it from the others.
    private struct FailureOfOne: Error {}

    private func transact(
        _ batch: [WriteRequest], _ isolation: WriteIsolation, _ db: EmbeddedConnection
    ) throws -> Finished {
        if let closed = horizon.closed { throw closed }
        let start = horizon.head
        var commit = OpenCommit(db.database, head: start, quotas: settings.quotas)
        var answers: [@Sendable () -> Void] = []
        answers.reserveCapacity(batch.count)
        let changes = db.totalChangesCount
        var count: Int64?
        try db.begin(.immediate)
        do {
            for request in batch {
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
            // What concerns the whole transaction is not this request's own failure.
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
