import RelayModel
import Storage

extension ProgressMark {
    /// Reads the mark of the shard.
    init(storedIn db: Database) throws {
        let row = try Row.fetchOne(
            db, sql: "SELECT position, \"offset\" FROM progress WHERE shard = 0")
        guard let row else {
            throw StorageError.damaged(path: "progress", reason: "the shard has no progress")
        }
        self.init(
            position: LogPosition(stored: row[0]), offset: UInt32(clamping: row[1] as Int64))
    }
}
