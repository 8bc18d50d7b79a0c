import RelayModel

/// Counts the frames that have been written for changes and not been sent yet.
///
/// Each group has its own text, with the fields that its queries request. Without a bound, one
/// user's queries in many different forms could turn one large record into gigabytes.
struct FrameWeight {
    /// The bytes beyond which frames are sent as soon as a request ends, to free their memory.
    private static let mostAtOnce = 8 * 1024 * 1024
    /// The bytes beyond which frames are sent even within a request, because thousands of queries
    /// may each be sent all of its thousand changes.
    private static let mostOfRequest = 64 * 1024 * 1024
    /// The estimated bytes of a frame besides its text, and of the note of a coalesced record.
    private static let overhead = 256

    /// The estimated bytes that wait to be sent.
    private var bytes = 0
    /// The bytes of the current change, by the users for whose queries they were written.
    private var users: [UserID: Int] = [:]
    /// The bytes that are not in `users` yet.
    ///
    /// A whole change is nearly always below the limit of one user, and then the split by user does
    /// not matter.
    private var uncounted: [(user: UserID, bytes: Int)] = []
    private var bytesOfChange = 0
    /// The groups that do not get the current change, because too much was written for all their
    /// users.
    var refused: [LiveGroup] = []

    /// Whether the waiting frames are to be sent at the end of the request.
    var isFull: Bool { bytes > Self.mostAtOnce }
    /// Whether they are to be sent even within the request.
    var isOverfull: Bool { bytes > Self.mostOfRequest }

    /// Returns whether more of the current change may be written for a user.
    mutating func hasRoom(for user: UserID, most: Int) -> Bool {
        guard bytesOfChange > most else { return true }
        for part in uncounted { users[part.user, default: 0] += part.bytes }
        uncounted.removeAll(keepingCapacity: true)
        return users[user, default: 0] <= most
    }

    /// Counts a frame that was written for a user.
    mutating func add(_ told: LiveGroupFrame, for user: UserID) {
        let size = told.bytes
        bytes += size + Self.overhead
        bytesOfChange += size
        uncounted.append((user, size))
    }

    /// Counts the note of a record whose frame is written once all entries have been read.
    mutating func addNote() { bytes += Self.overhead }

    /// Ends the current change.
    mutating func finishChange() {
        users.removeAll(keepingCapacity: true)
        uncounted.removeAll(keepingCapacity: true)
        bytesOfChange = 0
        refused = []
    }

    /// Notes that the waiting frames have been sent.
    mutating func send() { bytes = 0 }
}
