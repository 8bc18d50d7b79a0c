import CSQLite
import FoundationEssentials
import Glibc
import Storage
import StorageSQL

/// Does every checkpoint, and keeps the write-ahead log bounded.
///
/// SQLite's own checkpoints are off: they keep a failed sync to themselves, and after it a later
/// one would seem to succeed, and let go of frames that are not in the file. It belongs to the
/// writer's thread.
struct LogTrimmer: ~Copyable {
    private static let commitsBetweenLooks = 32

    private let pool: EmbeddedPool
    private let path: String
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

    /// The frames of the write-ahead log up to the last commit.
    var frames: Int { watch.map { Int(belfry_wal_frames($0)) } ?? 0 }

    /// Copies what was committed into the file when it has become much, and now and then looks
    /// whether the write-ahead log has outgrown its bound.
    ///
    /// The writer does nothing else meanwhile: while several containers write, a checkpoint copies
    /// less at a time.
    ///
    /// - Throws: `EmbeddedError` if a checkpoint failed so that it is unknown what is on the disk.
    mutating func afterCommit(isContended: Bool) throws {
        let most = isContended ? pages.besideOthers : pages.alone
        if isCheckpointDue(after: most) { _ = try checkpoint(.passive) }
        commits += 1
        guard commits >= Self.commitsBetweenLooks else { return }
        commits = 0
        let size = Self.size(of: path)
        if size > bound { try startAnew(size) }
    }

    /// As SQLite would, except that a reader in the way does not make every commit try again.
    private mutating func isCheckpointDue(after pages: Int) -> Bool {
        guard pages > 0, let watch else { return false }
        let frames = Int(belfry_wal_frames(watch))
        if frames < framesAtLast { framesAtLast = 0 }
        guard frames >= pages, frames - framesAtLast >= pages / 8 else { return false }
        framesAtLast = frames
        return true
    }

    /// New readers then read the file itself; those that read the log already are waited for: up to
    /// 100 ms, or a second once it is four times too large, and ever more seldom while they stay.
    private mutating func startAnew(_ size: Int) throws {
        guard pace.isDue(at: .now) else { return }
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
        pace.ended(at: .now, isDone: try checkpoint(.truncate))
    }

    /// Says whether it was done; what passes is tried again with the next.
    private func checkpoint(_ kind: EmbeddedConnection.CheckpointKind) throws -> Bool {
        spool?.copyBeforeCheckpoint(frames)
        return try pool.write { try Self.checkpoint(kind, of: $0) }
    }

    /// Checkpoints; says whether it was done, or a reader or a full disk was in the way.
    ///
    /// - Throws: `EmbeddedError` if it failed so that it is unknown what is on the disk.
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

    /// The size of a file in bytes; 0 if there is none.
    static func size(of path: String) -> Int {
        var answer = stat()
        return stat(path, &answer) == 0 ? Int(answer.st_size) : 0
    }
}

/// When the writer may wait for readers again.
///
/// A copy, or a check, reads for minutes, and the writer must not spend them waiting: an attempt
/// that failed doubles the pause, which counts from its end.
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
