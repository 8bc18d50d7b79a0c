import ChangeSources

/// Rows of one place in the log, of which the next message may still say who made them.
///
/// A message counts as being where it ends, which is where the change behind it begins. Where one
/// of both is in a subtransaction, the server tells them in either order.
struct WaitingRows {
    struct Entry {
        var row: FollowedRow
        let place: RowPlace
        let bytes: Int
    }

    private var entries: [Entry] = []
    private var bytes = 0
    private var start = PostgresPosition.zero

    /// `COPY` writes many rows at one place: more than this do not wait.
    private static let mostBytes = 64 * 1024

    /// Takes those that wait, unless what comes next is of the same place.
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

    /// Notes who made them.
    mutating func name(_ author: ChangeAuthor?) {
        for index in entries.indices {
            entries[index].row.deviceID = author?.deviceID
            entries[index].row.userID = author?.userID
        }
    }
}
