import Storage
import StorageSQL

extension StoreConnections {
    /// Whether a file is part of a move; after a crash its write-ahead log says it, and its header
    /// does not yet.
    static func isMoved(_ db: EmbeddedConnection) throws -> Bool {
        try Int32.fetchOne(db.database, sql: "PRAGMA application_id") == StoreSchema.movedID
    }

    /// Why no relay may have a file that is part of a move.
    func movedRefusal() -> StorageError {
        let found = try? inspect { try MoveMark.find(in: $0.database) }
        guard let mark = found ?? nil else {
            return .inaccessible(
                path: path, reason: "it is part of a move, and does not say of which")
        }
        return mark.refusal(at: path)
    }
}
