import ChangeSources
import RelayModel

/// Rows that wait to be posted: whole transactions if they fit, and parts of larger ones.
struct RowBuffer {
    private struct Entry {
        let row: FollowedRow
        let place: RowPlace
        let bytes: Int
        let changes: Int
    }

    /// The maximum number of changes in one request.
    static let maximumChanges = Limits.maximumChangesPerRequest
    /// The maximum size of a request's rows in PostgreSQL's text format, in bytes, unless it is a
    /// single row.
    static let maximumBytes = 1024 * 1024

    private var entries: [Entry] = []
    private var bytes = 0
    private var changes = 0
    /// How many of the rows belong to complete transactions, and where the last of these ends.
    private var whole = 0
    private var end: PostgresPosition?

    /// Whether a request is full; the row that filled it may have too many changes, and then waits.
    var isFull: Bool { changes >= Self.maximumChanges || bytes >= Self.maximumBytes }
    var isEmpty: Bool { entries.isEmpty && end == nil }
    /// Whether there is something to post or to confirm.
    var hasSomething: Bool { end != nil || isFull }

    /// A row whose key changed becomes a deletion and a creation.
    private static let mostChangesOfARow = 2

    mutating func add(_ row: FollowedRow, at place: RowPlace, bytes: Int) {
        // Without the row's former image, its key cannot have changed.
        let mayMove = row.operation == .update && row.before != nil
        let changes = mayMove ? Self.mostChangesOfARow : 1
        entries.append(Entry(row: row, place: place, bytes: bytes, changes: changes))
        self.bytes += bytes
        self.changes += changes
    }

    /// Notes that all rows so far belong to complete transactions.
    mutating func complete(end: PostgresPosition) {
        whole = entries.count
        self.end = end
    }

    /// Takes what is posted next: the complete transactions, or a part of one that is too large for
    /// one request.
    ///
    /// A batch from a full buffer always has rows. So an end without rows before it is not
    /// confirmed while others are being posted.
    mutating func take() -> RowBatch {
        let takesWhole = end != nil && (whole > 0 || !isFull)
        let wanted = takesWhole ? whole : entries.count
        let count = fitting(wanted)
        var batch = RowBatch()
        batch.rows = entries[..<count].map(\.row)
        batch.last = count > 0 ? entries[count - 1].place : nil
        if takesWhole, count < wanted {
            whole -= count
        } else {
            batch.end = end
            (whole, end) = (0, nil)
        }
        entries.removeFirst(count)
        bytes = entries.reduce(0) { $0 + $1.bytes }
        changes = entries.reduce(0) { $0 + $1.changes }
        return batch
    }

    /// Returns how many of the first `count` rows fit into a request.
    ///
    /// These are nearly all, and usually all. Only a message of the log about several tables, such
    /// as a `TRUNCATE`, adds several rows without a check in between.
    private func fitting(_ count: Int) -> Int {
        guard changes > Self.maximumChanges else { return count }
        var sum = 0
        for (index, entry) in entries.prefix(count).enumerated() {
            sum += entry.changes
            if sum > Self.maximumChanges { return index }
        }
        return count
    }
}
