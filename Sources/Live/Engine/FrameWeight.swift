import RelayModel

/// How much has been written of changes and not been sent.
///
/// Each group has a text of its own, with the fields that its queries ask for: so the queries of
/// one user, each of another form, would make gigabytes of one large record.
struct FrameWeight {
    /// What is written beyond this is sent as soon as a request ends, and makes room.
    private static let mostAtOnce = 8 * 1024 * 1024
    /// What is written of one request beyond this is sent in pieces: thousands of queries are told
    /// each of its thousand changes.
    private static let mostOfRequest = 64 * 1024 * 1024
    /// What a frame takes besides its text, and what is noted of a record that coalesces, about.
    private static let overhead = 256

    /// The bytes that wait to be sent, about.
    private var bytes = 0
    /// Those of the change that is told now, by users for whose queries they were written.
    private var users: [UserID: Int] = [:]
    /// Those of them that are not among those of the users yet: all of a change is nearly always
    /// less than one user may have, and then whose it is makes no difference.
    private var uncounted: [(user: UserID, bytes: Int)] = []
    private var bytesOfChange = 0
    /// Groups that are not told of it, because too much was written for all who see them.
    var refused: [LiveGroup] = []

    /// Whether what is there is to be sent.
    var isFull: Bool { bytes > Self.mostAtOnce }
    /// Whether it is to be sent although its request goes on.
    var isOverfull: Bool { bytes > Self.mostOfRequest }

    /// Whether more may be written of the change for a user.
    mutating func hasRoom(for user: UserID, most: Int) -> Bool {
        guard bytesOfChange > most else { return true }
        for part in uncounted { users[part.user, default: 0] += part.bytes }
        uncounted.removeAll(keepingCapacity: true)
        return users[user, default: 0] <= most
    }

    /// Counts what a group is told.
    mutating func add(_ told: LiveGroupFrame, for user: UserID) {
        let size = told.bytes
        bytes += size + Self.overhead
        bytesOfChange += size
        uncounted.append((user, size))
    }

    /// Counts what is noted of a record, to be written once all has been read.
    mutating func addNote() { bytes += Self.overhead }

    /// The change is told.
    mutating func finishChange() {
        users.removeAll(keepingCapacity: true)
        uncounted.removeAll(keepingCapacity: true)
        bytesOfChange = 0
        refused = []
    }

    /// What waited is sent.
    mutating func send() { bytes = 0 }
}
