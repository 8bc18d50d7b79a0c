/// The rows of an outbox to post, ordered by the last number of their transaction and then by their
/// own.
struct OutboxPlan: Sendable, Hashable {
    /// A row that waits to be posted.
    struct Entry: Sendable, Hashable {
        /// Its number in the outbox.
        let number: Int64
        /// The last number of its transaction.
        let last: Int64
        /// The size of its images in bytes.
        let bytes: Int
    }

    private var entries: ArraySlice<Entry>

    /// The maximum number of rows in a request: half of its changes, because a row whose key
    /// changed is two changes.
    private static let maximumRows = RowBuffer.maximumChanges / 2

    init(_ entries: [Entry] = []) {
        self.entries = entries[...]
    }

    var isEmpty: Bool { entries.isEmpty }

    /// Takes the numbers of the rows to post next: whole transactions if they fit, or a part of one
    /// that is too large for one request.
    ///
    /// - Returns: The numbers, and whether the rows end with their transaction.
    mutating func take() -> (numbers: [Int64], isWhole: Bool) {
        var count = 0
        var whole = 0
        var bytes = 0
        for (index, entry) in zip(1..., entries) {
            guard count == 0 || bytes + entry.bytes <= RowBuffer.maximumBytes,
                count < Self.maximumRows
            else { break }
            count = index
            bytes += entry.bytes
            let next = entries.startIndex + index
            if next == entries.endIndex || entries[next].last != entry.last { whole = index }
        }
        let taken = entries.prefix(whole > 0 ? whole : count)
        entries = entries.dropFirst(taken.count)
        return (taken.map(\.number), whole > 0)
    }
}
