import CSQLite
import FoundationEssentials
import Glibc
import Storage
import StorageSQL

/// Runs all checkpoints, and keeps the write-ahead log bounded.
///
/// SQLite's automatic checkpoints are off, because they do not report a failed sync. A later
/// checkpoint would then seem to succeed, and drop frames that are not in the file. The value
/// belongs to the writer's thread.
struct LogTrimmer: ~Copyable {
    private static let commitsBetweenLooks = 32

    private let pool: EmbeddedPool
    private let path: String
    /// The log as it was at the start; no connection makes another while one is open.
    private let log: FileIdentity?
    private let bound: Int
    private let pages: (alone: Int, besideOthers: Int)
    private let watch: OpaquePointer?
    private let spool: LogSpool?
    private var commits = 0
    private var framesAtLast = 0
    private var pace = TrimmingPace()

    init(_ pool: EmbeddedPool, settings: StoreSettings, spool: LogSpool? = nil) {
        self.pool = pool
        self.spool = spool
        path = pool.path + "-wal"
        log = FileIdentity(path: path)
        spool?.follow(log)
        bound = settings.walBytes
        pages = (
            settings.checkpointPages,
            min(settings.checkpointPages, settings.checkpointPagesBesideOthers)
        )
        watch = pool.write { belfry_sqlite_watch_wal($0.pointer) }
    }

    deinit {
        guard let watch else { return }
        pool.write { belfry_sqlite_unwatch_wal($0.pointer, watch) }
    }

    /// The number of frames of the write-ahead log up to the last commit.
    var frames: Int { watch.map { Int(belfry_wal_frames($0)) } ?? 0 }

    /// Checks the write-ahead log's place, checkpoints if enough was committed, and sometimes
    /// checks the log's size.
    ///
    /// The writer is blocked meanwhile, so a checkpoint copies less at a time while several
    /// containers write.
    ///
    /// - Returns: Whether other writes have waited for what it did.
    /// - Throws: `EmbeddedError` if a checkpoint failed and the state of the disk is unknown now,
    ///   and ``StorageError/closed(_:)`` if the log has lost its name and is folded into the file.
    mutating func afterCommit(isContended: Bool) throws -> Bool {
        // One call of `stat` is nothing beside the commit's sync.
        guard isLogInPlace else {
            // After a crash nobody would find it. A new one is made only at the next start.
            guard try startAnew(bound) else { return false }
            // What the spool had not copied is in the file alone.
            spool?.end(because: SpoolFailure.logExchanged.description)
            throw StorageError.closed(
                "the write-ahead log was moved, removed or exchanged; all that was in it is in the "
                    + "file now, so the next start lacks nothing")
        }
        let most = isContended ? pages.besideOthers : pages.alone
        let isDue = isCheckpointDue(after: most)
        if isDue { _ = try checkpoint(.passive) }
        commits += 1
        guard commits >= Self.commitsBetweenLooks else { return isDue }
        commits = 0
        let size = Self.size(of: path)
        guard size > bound else { return isDue }
        _ = try startAnew(size)
        return true
    }

    private var isLogInPlace: Bool {
        guard let log else { return true }
        return log.isStill(at: path) ?? true
    }

    /// Returns whether a checkpoint is due, by SQLite's own rule.
    ///
    /// Unlike SQLite, it does not retry at every commit while a reader is in the way.
    private mutating func isCheckpointDue(after pages: Int) -> Bool {
        guard pages > 0, let watch else { return false }
        let frames = Int(belfry_wal_frames(watch))
        if frames < framesAtLast { framesAtLast = 0 }
        guard frames >= pages, frames - framesAtLast >= pages / 8 else { return false }
        framesAtLast = frames
        return true
    }

    /// Truncates the log, after which new readers read the file itself.
    ///
    /// It waits for the readers that use the log: up to 100 ms, or up to a second once the log is
    /// four times too large. While such readers remain, the attempts become rarer.
    ///
    /// - Returns: Whether the file holds everything that was in the log.
    private mutating func startAnew(_ size: Int) throws -> Bool {
        guard pace.isDue(at: .now) else { return false }
        CrashPoint.checkpoint.reach()
        let patience = pool.write { db in
            let patience = try? Int.fetchOne(db.database, sql: "PRAGMA busy_timeout")
            try? db.execute(sql: "PRAGMA busy_timeout = \(size > 4 * bound ? 1000 : 100)")
            return patience ?? 5000
        }
        defer {
            pool.write {
                try? $0.execute(sql: "PRAGMA busy_timeout = \(patience)")
            }
        }
        let isDone = try checkpoint(.truncate)
        pace.ended(at: .now, isDone: isDone)
        return isDone
    }

    /// Runs a checkpoint; returns `false` if a passing obstacle prevented it.
    private func checkpoint(_ kind: EmbeddedConnection.CheckpointKind) throws -> Bool {
        spool?.copyBeforeCheckpoint(frames)
        return try pool.write { try Self.checkpoint(kind, of: $0) }
    }

    /// Runs a checkpoint; returns `false` if a reader or a full disk prevented it.
    ///
    /// - Throws: `EmbeddedError` if it failed and the state of the disk is unknown now.
    static func checkpoint(
        _ kind: EmbeddedConnection.CheckpointKind, of db: EmbeddedConnection
    ) throws -> Bool {
        do {
            try db.checkpoint(kind)
            return true
        } catch let error as EmbeddedError where StorageError.verdict(on: error) != .fatal {
            return false
        }
    }

    /// Returns the size of a file in bytes, or 0 if there is none.
    static func size(of path: String) -> Int {
        var answer = stat()
        return stat(path, &answer) == 0 ? Int(answer.st_size) : 0
    }
}

/// Decides when the writer may wait for readers again.
///
/// A copy or a check may read for minutes, and the writer must not spend them waiting. So a failed
/// attempt doubles the pause, which is counted from the attempt's end.
struct TrimmingPace: Sendable {
    static let least = Duration.milliseconds(250)
    static let most = Duration.seconds(32)

    private var pause = Self.least
    private var next: ContinuousClock.Instant?

    func isDue(at now: ContinuousClock.Instant) -> Bool {
        next.map { $0 <= now } ?? true
    }

    mutating func ended(at now: ContinuousClock.Instant, isDone: Bool) {
        if isDone { pause = Self.least }
        next = now.advanced(by: pause)
        if !isDone { pause = min(pause * 2, Self.most) }
    }
}
