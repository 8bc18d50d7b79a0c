import RelayModel
import Storage

/// Finds the position up to which the log has exceeded its retention.
struct LogCutoff {
    let db: Database

    private var size: SizeCutoff {
        SizeCutoff(db: db, table: "logEntry", number: "position", rowBytes: 48)
    }

    /// Returns the first existing position, or `nil` if the log is empty.
    func first() throws -> Int64? { try size.bounds()?.lowerBound }

    /// Returns the first existing position, or the next one to be appended if the log is empty.
    func firstOrNext() throws -> Int64 {
        if let first = try self.first() { return first }
        return try Int64.fetchOne(db, sql: "SELECT position + 1 FROM shardHead WHERE shard = 0")
            ?? 1
    }

    /// Returns the last position to delete, or `nil` if there is none.
    func position(_ retention: Retention, at now: Timestamp) throws -> Int64? {
        let byAge = try retention.logAge.flatMap {
            try lastPosition(appendedBy: now.advanced(by: .zero - $0))
        }
        return [byAge, try retention.logBytes.flatMap(size.last(beyond:))].compactMap(\.self).max()
    }

    /// Returns the last entry that was appended by `moment`, or `nil`, in O(log n).
    ///
    /// Positions have no gaps and are approximately in the order of time.
    func lastPosition(appendedBy moment: Timestamp) throws -> Int64? {
        guard let bounds = try size.bounds() else { return nil }
        var (low, high) = (bounds.lowerBound - 1, bounds.upperBound)
        let statement = try db.cachedStatement(
            sql: "SELECT appendedAt FROM logEntry WHERE position = ?")
        while low < high {
            let middle = low + (high - low + 1) / 2
            let at = try Int64.fetchOne(statement, arguments: [middle]) ?? .max
            if at <= moment.stored { low = middle } else { high = middle - 1 }
        }
        return low < bounds.lowerBound ? nil : low
    }
}
