import Storage
import StorageSQL

extension StoreConnections {
    /// Returns whether a file is part of a move.
    ///
    /// After a crash, the mark may be only in the write-ahead log and not in the file's header yet.
    static func isMoved(_ db: EmbeddedConnection) throws -> Bool {
        try Int32.fetchOne(db.database, sql: "PRAGMA application_id") == StoreSchema.movedID
    }

    /// Returns the error for a file that is part of a move, which no relay may open.
    func movedRefusal() -> StorageError {
        let found = try? inspect { try MoveMark.find(in: $0.database) }
        guard let mark = found ?? nil else {
            return .inaccessible(
                path: path, reason: "it is part of a move, but does not say of which one")
        }
        return mark.refusal(at: path)
    }
}
