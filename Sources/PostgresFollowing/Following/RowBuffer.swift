import ChangeSources

/// Rows that wait to be posted: whole transactions where they fit, and parts of larger ones.
struct RowBuffer {
    private struct Entry {
        let row: FollowedRow
        let place: RowPlace
        let bytes: Int
    }

    /// Rows of one request: half of what it may hold, because a row whose key changed is two
    /// changes.
    static let maximumRows = 500
    /// What the rows of one request have in PostgreSQL's own form, if it is not one row alone.
    static let maximumBytes = 1024 * 1024

    private var entries: [Entry] = []
    private var bytes = 0
    /// How many of the rows belong to transactions that are complete, and where those end.
    private var whole = 0
    private var end: PostgresPosition?

    var isFull: Bool { entries.count >= Self.maximumRows || bytes >= Self.maximumBytes }
    var isEmpty: Bool { entries.isEmpty && end == nil }
    /// Whether something can be posted, or confirmed.
    var hasSomething: Bool { end != nil || isFull }

    mutating func add(_ row: FollowedRow, at place: RowPlace, bytes: Int) {
        entries.append(Entry(row: row, place: place, bytes: bytes))
        self.bytes += bytes
    }

    /// Notes that all rows so far belong to transactions that are complete.
    mutating func complete(end: PostgresPosition) {
        whole = entries.count
        self.end = end
    }

    /// Takes what is to be posted next: the transactions that are complete, or a part of one that
    /// is too large to be posted at once.
    mutating func take() -> RowBatch {
        let count = end == nil ? entries.count : whole
        var batch = RowBatch()
        batch.rows = entries[..<count].map(\.row)
        batch.last = count > 0 ? entries[count - 1].place : nil
        batch.end = end
        entries.removeFirst(count)
        bytes = entries.reduce(0) { $0 + $1.bytes }
        (whole, end) = (0, nil)
        return batch
    }
}
