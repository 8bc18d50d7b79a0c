import Foundation
import GRDB

/// Keeps the write-ahead log bounded: SQLite's own checkpoints cannot start it anew while readers
/// come and go without a pause.
///
/// It belongs to the writer's thread, which does every checkpoint.
struct LogTrimmer {
    private static let commitsBetweenLooks = 32

    private let path: String
    private let bound: Int
    private var commits = 0
    private var nextAttempt: ContinuousClock.Instant?

    init(databasePath: String, bound: Int) {
        path = databasePath + "-wal"
        self.bound = bound
    }

    /// Looks at the write-ahead log now and then, and starts it anew when it has outgrown its
    /// bound.
    ///
    /// New readers then read the file itself; those that read the log already are waited for: up to
    /// 100 ms, or a second once it is four times too large, and four times a second at most.
    mutating func afterCommit(_ db: Database) {
        commits += 1
        guard commits >= Self.commitsBetweenLooks else { return }
        commits = 0
        let size = Self.size(of: path)
        guard size > bound else { return }
        let now = ContinuousClock.now
        if let nextAttempt, now < nextAttempt { return }
        nextAttempt = now.advanced(by: .milliseconds(250))
        CrashPoint.checkpoint.reach()
        let patience = try? Int.fetchOne(db, sql: "PRAGMA busy_timeout")
        try? db.execute(sql: "PRAGMA busy_timeout = \(size > 4 * bound ? 1000 : 100)")
        // A reader that stays longer is waited for next time; a failed write shows at the commit.
        _ = try? db.checkpoint(.truncate)
        try? db.execute(sql: "PRAGMA busy_timeout = \(patience ?? 5000)")
    }

    /// The size of a file in bytes; 0 if there is none.
    static func size(of path: String) -> Int {
        var answer = stat()
        return stat(path, &answer) == 0 ? Int(answer.st_size) : 0
    }
}
