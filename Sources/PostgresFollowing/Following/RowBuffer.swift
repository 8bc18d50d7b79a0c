import ChangeSources
import RelayModel

/// Rows that wait to be posted: whole transactions where they fit, and parts of larger ones.
struct RowBuffer {
    private struct Entry {
        let row: FollowedRow
        let place: RowPlace
        let bytes: Int
        let changes: Int
    }

    /// The changes of one request.
    static let maximumChanges = Limits.maximumChangesPerRequest
    /// What the rows of one request have in PostgreSQL's own form, if it is not one row alone.
    static let maximumBytes = 1024 * 1024

    private var entries: [Entry] = []
    private var bytes = 0
    private var changes = 0
    /// How many of the rows belong to transactions that are complete, and where those end.
    private var whole = 0
    private var end: PostgresPosition?

    /// Whether a request holds no more; what came last may be too many changes, and waits then.
    var isFull: Bool { changes >= Self.maximumChanges || bytes >= Self.maximumBytes }
    var isEmpty: Bool { entries.isEmpty && end == nil }
    /// Whether something can be posted, or confirmed.
    var hasSomething: Bool { end != nil || isFull }

    /// A row whose key changed is a deletion and a creation.
    private static let mostChangesOfARow = 2

    mutating func add(_ row: FollowedRow, at place: RowPlace, bytes: Int) {
        // Where nothing is known of the row before, its key cannot have changed.
        let mayMove = row.operation == .update && row.before != nil
        let changes = mayMove ? Self.mostChangesOfARow : 1
        entries.append(Entry(row: row, place: place, bytes: bytes, changes: changes))
        self.bytes += bytes
        self.changes += changes
    }

    /// Notes that all rows so far belong to transactions that are complete.
    mutating func complete(end: PostgresPosition) {
        whole = entries.count
        self.end = end
    }

    /// Takes what is to be posted next: the transactions that are complete, or a part of one that
    /// is too large to be posted at once.
    ///
    /// There are rows in it if the buffer is full. So an end that has no rows before it is not
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

    /// How many of the first `count` rows a request holds.
    ///
    /// Nearly all, and usually all: only what one message of the log tells of several tables, as
    /// that they were emptied, comes without a look in between.
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
