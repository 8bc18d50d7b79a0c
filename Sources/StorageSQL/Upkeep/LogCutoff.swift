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

    /// Entries that are looked at to know about how large the log is, and whether that is right.
    private static let samples = (few: 512, many: 8192)
    /// Entries that one statement looks at.
    private static let batch = 64
    /// What a row has besides its body.
    private static let rowBytes = 48

    /// The last entry beyond the newest of `bytes` altogether, about.
    ///
    /// Entries all over the log stand for those around them: of the newest alone, a few hundred
    /// large ones of one container would push out what the others have there. Before anything goes,
    /// many are looked at: of few, in a log of ten millions, one that is large stands for more than
    /// the log may have, and each minute others are looked at.
    private func positionBySize(_ bytes: Int) throws -> Int64? {
        guard let bounds = try bounds(),
            try lastBeyond(bytes, in: bounds, Self.samples.few) != nil
        else { return nil }
        return try lastBeyond(bytes, in: bounds, Self.samples.many)
    }

    private func lastBeyond(
        _ bytes: Int, in bounds: ClosedRange<Int64>, _ samples: Int
    ) throws -> Int64? {
        let stride = Int64(max(1, (bounds.count + samples - 1) / samples))
        var room = bytes
        var next = bounds.upperBound
        while next >= bounds.lowerBound {
            let positions = (0..<Int64(Self.batch)).map { next - $0 * stride }
            let sizes = try sizes(at: positions)
            for position in positions where position >= bounds.lowerBound {
                let size = sizes[position, default: 0] + Self.rowBytes
                let count = Int(min(stride, position - bounds.lowerBound + 1))
                guard size * count <= room else {
                    let cutoff = position - Int64(max(0, room) / size)
                    return cutoff < bounds.lowerBound ? nil : cutoff
                }
                room -= size * count
            }
            next -= Int64(Self.batch) * stride
        }
        return nil
    }

    /// The bytes of the bodies at these positions, as many as a batch has.
    private func sizes(at positions: [Int64]) throws -> [Int64: Int] {
        let marks = Array(repeating: "?", count: Self.batch).joined(separator: ", ")
        let statement = try db.cachedStatement(
            sql: """
                SELECT position, \(db.dialect.bytes(of: "body")) FROM logEntry
                WHERE position IN (\(marks))
                """)
        let rows = try Row.fetchAll(statement, arguments: StatementArguments(positions))
        return Dictionary(
            rows.map { ($0[0] as Int64, $0[1] as Int) }, uniquingKeysWith: { first, _ in first })
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
