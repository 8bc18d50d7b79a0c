import RelayModel
import Storage

/// Up to where the log has outlived its retention.
struct LogCutoff {
    let db: Database

    /// The last position to delete; `nil` if there is none.
    func position(_ retention: Retention, at now: Timestamp) throws -> Int64? {
        let byAge = try retention.logAge.flatMap {
            try lastPosition(appendedBy: now.advanced(by: .zero - $0))
        }
        return [byAge, try retention.logBytes.flatMap(positionBySize)].compactMap(\.self).max()
    }

    /// The last entry that was appended by `moment`, in O(log n): positions have no gaps, and are
    /// in the order of time, about.
    func lastPosition(appendedBy moment: Timestamp) throws -> Int64? {
        guard let bounds = try bounds() else { return nil }
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

    /// Entries that are looked at to know how large the log is.
    private static let samples = 512
    /// What a row has besides its body.
    private static let rowBytes = 48

    /// The last entry beyond the newest of `bytes` altogether, about.
    ///
    /// Entries all over the log stand for those around them: of the newest alone, a few hundred
    /// large ones of one container would push out what the others have there.
    private func positionBySize(_ bytes: Int) throws -> Int64? {
        guard let bounds = try bounds() else { return nil }
        let statement = try db.cachedStatement(
            sql: "SELECT \(db.dialect.bytes(of: "body")) FROM logEntry WHERE position = ?")
        let stride = max(1, (bounds.count + Self.samples - 1) / Self.samples)
        var room = bytes
        var position = bounds.upperBound
        while position >= bounds.lowerBound {
            let size = (try Int.fetchOne(statement, arguments: [position]) ?? 0) + Self.rowBytes
            let count = min(stride, Int(position - bounds.lowerBound) + 1)
            guard size * count <= room else {
                let cutoff = position - Int64(max(0, room) / size)
                return cutoff < bounds.lowerBound ? nil : cutoff
            }
            room -= size * count
            position -= Int64(count)
        }
        return nil
    }

    private func bounds() throws -> ClosedRange<Int64>? {
        let row = try Row.fetchOne(
            db,
            sql: """
                SELECT (SELECT min(position) FROM logEntry), (SELECT max(position) FROM logEntry)
                """)
        guard let first = row?[0] as Int64?, let last = row?[1] as Int64? else { return nil }
        return first...max(first, last)
    }
}
