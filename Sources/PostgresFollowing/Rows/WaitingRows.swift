import ChangeSources

/// Rows of one place in the log, whose author the next message may still declare.
///
/// A message's place is where it ends, which is where the change after it begins. If one of the two
/// is in a subtransaction, the server may send them in either order.
struct WaitingRows {
    struct Entry {
        var row: FollowedRow
        let place: RowPlace
        let bytes: Int
    }

    private var entries: [Entry] = []
    private var bytes = 0
    private var start = PostgresPosition.zero

    /// The size at which rows no longer wait: `COPY` writes many rows at one place.
    private static let mostBytes = 64 * 1024

    /// Takes the waiting rows, unless the next message has the same place.
    mutating func take(before next: PostgresPosition? = nil) -> [Entry] {
        guard next != start || bytes > Self.mostBytes else { return [] }
        defer { (entries, bytes) = ([], 0) }
        return entries
    }

    mutating func add(_ entry: Entry, from start: PostgresPosition) {
        entries.append(entry)
        bytes += entry.bytes
        self.start = start
    }

    /// Sets the author of the waiting rows.
    mutating func name(_ author: ChangeAuthor?) {
        for index in entries.indices {
            entries[index].row.deviceID = author?.deviceID
            entries[index].row.userID = author?.userID
        }
    }
}
